package mete_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// A provider that says "come back later" is left alone by everybody. A call
// that cannot wait that long is told so at once.
func ExampleAfter() {
	g, err := mete.New(mete.Config{Name: "crm", MaxWait: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(context.Context) error {
		return mete.After(errors.New("429 Too Many Requests"), time.Hour)
	}
	fmt.Println(mete.Do(context.Background(), g, mete.Call{}, call))
	err = mete.Do(context.Background(), g, mete.Call{}, func(context.Context) error { return nil })
	var refused *mete.Rejected
	if errors.As(err, &refused) {
		fmt.Println(refused.Reason, refused.Bound, refused.RetryAfter > 59*time.Minute)
	}
	// Output:
	// 429 Too Many Requests (retry after 1h0m0s)
	// paused pause true
}
