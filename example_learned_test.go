package mete_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/quota"
)

// What responses say of the provider's quota holds calls back before they are
// refused, without any limit in the Config. Package metehttp does by itself
// what is done here by hand.
func ExampleConfig_learn() {
	g, err := mete.New(mete.Config{Name: "forge", MaxWait: time.Minute, Learn: mete.LearnCap})
	if err != nil {
		fmt.Println(err)
		return
	}
	tries := g.Tries(context.Background(), mete.Call{})
	permit, err := tries.Next()
	if err != nil {
		fmt.Println(err)
		return
	}
	header := http.Header{}
	header.Set("RateLimit", `"hourly";r=0;t=240`)
	said := quota.Parse(quota.Response{Status: http.StatusOK, Header: header, Now: time.Now()})
	tries.Again(mete.Outcome{Answered: true, Quotas: said.Quotas})
	permit.Release()

	known := g.Stats().Learned[0]
	fmt.Printf("%s: %d left, binds %v\n", known.Name, known.Remaining, known.Binds)
	_, err = g.Acquire(context.Background(), mete.Call{})
	var refused *mete.Rejected
	if errors.As(err, &refused) {
		fmt.Println(refused.Reason, refused.Bound, refused.RetryAfter.Round(time.Minute))
	}
	// Output:
	// hourly: 0 left, binds true
	// wait_timeout limit:hourly 4m0s
}
