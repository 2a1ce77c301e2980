package metetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metetest"
)

// printer stands for the *testing.T that an example does not have.
type printer struct{ cleanups []func() }

func (p *printer) Helper()                           {}
func (p *printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (p *printer) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (p *printer) Cleanup(f func())                  { p.cleanups = append(p.cleanups, f) }
func (p *printer) end() {
	for _, f := range p.cleanups {
		f()
	}
}

// together runs n calls at once.
func together(n int, call func(context.Context) error) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { _ = call(context.Background()) })
	}
	wg.Wait()
}

// A provider counts for itself what reaches it.
func ExampleProvider() {
	p := &metetest.Provider{Limits: []metetest.Limit{{N: 2, Per: time.Hour}}}
	for range 3 {
		fmt.Println(p.Call(context.Background()))
	}
	a := p.Audit()
	fmt.Println(a.Starts, "starts,", a.Refused, "refused, at most", a.Peak, "in flight")
	// Output:
	// <nil>
	// <nil>
	// the provider answered 429 Too Many Requests (retry after 1h0m0s)
	// 3 starts, 1 refused, at most 1 in flight
}

func ExampleProvider_RoundTrip() {
	p := &metetest.Provider{Reply: func(n int) metetest.Reply {
		if n == 1 {
			return metetest.Reply{Status: 503, RetryAfter: 1500 * time.Millisecond, Body: "busy"}
		}
		return metetest.Reply{Body: "Paris"}
	}}
	client := &http.Client{Transport: p}
	for range 2 {
		resp, err := client.Get("http://geo.test/?q=75001")
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s, Retry-After %q: %s\n", resp.Status, resp.Header.Get("Retry-After"), text)
	}
	// Output:
	// 503 Service Unavailable, Retry-After "2": busy
	// 200 OK, Retry-After "": Paris
}

func ExampleProvider_ServeHTTP() {
	p := &metetest.Provider{Limits: []metetest.Limit{{N: 1, Per: time.Hour}}}
	srv := httptest.NewServer(p)
	defer srv.Close()
	for range 2 {
		resp, err := http.Get(srv.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 200 OK
	// 429 Too Many Requests
}

func ExampleProvider_MostStarts() {
	p := &metetest.Provider{}
	together(5, p.Call)
	n, _ := p.MostStarts(time.Minute)
	fmt.Println(n, "in a minute")
	// Output: 5 in a minute
}

func ExampleGate() {
	t := &printer{} // a *testing.T
	gate := metetest.Gate(t, mete.Config{Name: "geo", Concurrency: 2})
	permit, _ := gate.Acquire(context.Background(), mete.Call{})
	permit.Release()
	permit.Release() // a mistake
	t.end()
	// Output:
	// metetest: gate "geo": 1 release of a permit that was released before
	//   look at: Release beside Cancel or Again, and deferred as well as called
}

func ExamplePeakInFlight() {
	t := &printer{}
	p := &metetest.Provider{Latency: 10 * time.Millisecond}
	gate := metetest.Gate(t, mete.Config{Name: "geo", Concurrency: 2})
	together(6, func(ctx context.Context) error { return mete.Do(ctx, gate, mete.Call{}, p.Call) })
	metetest.PeakInFlight(t, p, 2)
	fmt.Println("in flight at most:", p.Audit().Peak)
	t.end()
	// Output: in flight at most: 2
}

func ExampleMaxStarts() {
	t := &printer{}
	p := &metetest.Provider{}
	gate := metetest.Gate(t, mete.Config{Name: "geo", Limits: []mete.Limit{mete.Per(5, time.Hour)}})
	for range 7 {
		if permit, ok := gate.TryAcquire(mete.Call{}); ok {
			_ = p.Call(context.Background())
			permit.Release()
		}
	}
	metetest.MaxStarts(t, p, time.Hour, 5)
	fmt.Println("starts:", p.Audit().Starts)
	t.end()
	// Output: starts: 1
}

func ExampleUtilisation() {
	p := &metetest.Provider{}
	_ = p.Call(context.Background())
	metetest.Utilisation(&printer{}, p, metetest.Limit{N: 50, Per: time.Second}, 0.99)
	// Output:
	// metetest: utilisation needs calls at two times at least, there came 1 call
	//   look at: whether the calls reach this provider
}

func ExampleNoRepeats() {
	p := &metetest.Provider{}
	for range 2 {
		_ = p.CallFor(context.Background(), "order 17")
	}
	fmt.Println(p.Audit().Repeats, "repeat")
	// In a test: metetest.NoRepeats(t, p)
	// Output: 1 repeat
}

func ExamplePermitsConserved() {
	t := &printer{}
	gate, err := mete.New(mete.Config{Name: "geo", Concurrency: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	permit, _ := gate.Acquire(context.Background(), mete.Call{})
	metetest.PermitsConserved(t, gate)
	permit.Release()
	// Output:
	// metetest: gate "geo": 1 permit is still in use
	//   look at: a path without Release (an early return, a panic), a response's body that is neither read to its end nor closed, a call that still runs
}

func ExampleNoGoroutines() {
	p := &metetest.Provider{}
	together(3, p.Call)
	metetest.NoGoroutines(&printer{})
	fmt.Println("none")
	// Output: none
}

func ExampleBlocked() {
	t := &printer{}
	gate := metetest.Gate(t, mete.Config{Name: "geo", Concurrency: 1})
	together(2, func(ctx context.Context) error {
		return mete.Do(ctx, gate, mete.Call{}, func(context.Context) error {
			for gate.Stats().Waiting == 0 && gate.Stats().Attempts == 1 {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
	})
	metetest.Blocked(t, gate, "semaphore")
	fmt.Println(gate.Stats().Attempts, "calls, one after the other")
	t.end()
	// Output: 2 calls, one after the other
}
