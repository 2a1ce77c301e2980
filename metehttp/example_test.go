package metehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metehttp"
)

// A client that stays within its provider's limits.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "Paris")
	}))
	defer srv.Close()

	geo, err := mete.New(mete.Config{
		Name:        "geocoder",
		Concurrency: 20,
		Limits:      []mete.Limit{mete.Per(50, time.Second)},
		Retry:       mete.Retry{Attempts: 4},
		Timeout:     10 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: metehttp.New(geo)}
	defer client.CloseIdleConnections()

	resp, err := client.Get(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println("in use:", geo.Stats().InUse)
	text, err := io.ReadAll(resp.Body)
	fmt.Println(string(text), err)
	fmt.Println("in use:", geo.Stats().InUse)
	// Output:
	// in use: 1
	// Paris <nil>
	// in use: 0
}

// A crawler with the same limits for every host, which it asks one by one.
func ExampleNewSet() {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page") })
	one, two := httptest.NewServer(page), httptest.NewServer(page)
	defer one.Close()
	defer two.Close()

	hosts, err := mete.NewSet(mete.SetConfig{Gate: mete.Config{
		Concurrency: 2,
		Limits:      []mete.Limit{mete.Per(10, time.Second)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hosts.Close()
	client := &http.Client{Transport: metehttp.NewSet(hosts, 2)}
	defer client.CloseIdleConnections()

	for _, u := range []string{one.URL, two.URL, one.URL + "/more"} {
		resp, err := client.Get(u)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println("gates:", len(hosts.Gates()))
	// Output:
	// gates: 2
}

// A throttle and a server error are repeated, the body of the request too. The
// last response is returned whatever its status.
func ExampleTransport_retry() {
	statuses := []int{429, 503, 200}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		fmt.Printf("%s %q: %d\n", r.Method, text, statuses[0])
		w.Header().Set("Retry-After-Ms", "20")
		w.WriteHeader(statuses[0])
		statuses = statuses[1:]
	}))
	defer srv.Close()

	api, err := mete.New(mete.Config{Name: "api", Retry: mete.Retry{Attempts: 4, Delay: time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: metehttp.New(api)}
	defer client.CloseIdleConnections()

	req, _ := http.NewRequest(http.MethodPut, srv.URL, strings.NewReader("order 7"))
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, "attempts:", api.Stats().Attempts)
	// Output:
	// PUT "order 7": 429
	// PUT "order 7": 503
	// PUT "order 7": 200
	// 200 attempts: 3
}

// What a call that is refused after an attempt still knows.
func ExampleStatusError() {
	api, err := mete.New(mete.Config{Name: "api", Retry: mete.Retry{Attempts: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.Close() // the program ends while the call is out
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer srv.Close()
	client := &http.Client{Transport: metehttp.New(api)}
	defer client.CloseIdleConnections()

	_, err = client.Get(srv.URL)
	if status, ok := errors.AsType[*metehttp.StatusError](err); ok {
		fmt.Println(status.Status, status.RetryAfter, errors.Is(err, mete.ErrDraining))
	}
	// Output:
	// 429 7s true
}

// A request says by its context which lane it queues in, how many permits it
// holds and what it costs.
func ExampleWithCall() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "Hello!") }))
	defer srv.Close()
	llm, err := mete.New(mete.Config{
		Name:   "llm",
		Limits: []mete.Limit{{Unit: "tokens", N: 1000, Per: 24 * time.Hour, Burst: 1000, Bucket: true}},
		Lanes:  []mete.Lane{{Name: "chat", Weight: 4}, {Name: "batch", Weight: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: metehttp.New(llm)}
	defer client.CloseIdleConnections()

	ctx := metehttp.WithCall(context.Background(), mete.Call{Lane: "batch", Weight: 2, Costs: map[string]int64{"tokens": 300}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println("permits:", llm.Stats().InUse, "tokens left:", llm.Stats().Limits[0].Free)
	// Output: permits: 2 tokens left: 700
}
