package stub_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// A caller that does not know the limit is found out.
func Example() {
	s := stub.New(stub.Config{
		Limits:  []stub.Limit{{N: 3, Per: time.Hour}},
		Measure: []time.Duration{24 * time.Hour},
	})
	if err := s.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	for range 5 {
		res, err := http.Get(s.URL() + "/hello")
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()

	a := s.Audit()
	fmt.Println("accepted", a.Accepted, "rejected", a.Rejected)
	fmt.Println("most in any hour", a.MaxStarts["1h0m0s"], "in any day", a.MaxStarts["24h0m0s"])
	// Output:
	// 200
	// 200
	// 200
	// 429
	// 429
	// accepted 3 rejected 2
	// most in any hour 5 in any day 5
}
