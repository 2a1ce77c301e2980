package mete_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// A failed attempt is repeated; each attempt is admitted on its own.
func ExampleGet() {
	geo, err := mete.New(mete.Config{
		Name:  "geocoder",
		Retry: mete.Retry{Attempts: 4, Delay: time.Millisecond},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt := 0
	place, err := mete.Get(context.Background(), geo, mete.Call{}, func(ctx context.Context) (string, error) {
		if attempt++; attempt < 3 {
			return "", errors.New("connection reset")
		}
		return "Bern", nil
	})
	fmt.Println(place, err, "after", attempt, "attempts")
	// Output:
	// Bern <nil> after 3 attempts
}
