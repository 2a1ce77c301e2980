package metetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/batch"
	"github.com/metehq/mete/metehttp"
	"github.com/metehq/mete/metetest"
)

// lookUpAll is a program under test: it asks for all addresses at once.
func lookUpAll(ctx context.Context, client *http.Client, addresses []string) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(addresses))
	for _, a := range addresses {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://geo.test/?q="+a, nil)
			if err != nil {
				errs <- err
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				errs <- err
				return
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				errs <- err
			} else if resp.StatusCode != http.StatusOK {
				errs <- fmt.Errorf("%s: %s", a, resp.Status)
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func addresses(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("street+%d", i)
	}
	return list
}

func through(g *mete.Gate, base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &metehttp.Transport{
		Gate: func(*http.Request) (*mete.Gate, error) { return g, nil },
		Base: base,
	}}
}

// The test of the manual.
func TestLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		geo := &metetest.Provider{
			Limits:      []metetest.Limit{{N: 50, Per: time.Second}},
			Concurrency: 8,
			Latency:     200 * time.Millisecond,
		}
		gate := metetest.Gate(t, mete.Config{
			Name:        "geo",
			Concurrency: 8,
			Limits:      []mete.Limit{mete.Per(50, time.Second)},
		})
		if err := lookUpAll(t.Context(), through(gate, geo), addresses(400)); err != nil {
			t.Fatal(err)
		}
		metetest.PeakInFlight(t, geo, 8)
		metetest.MaxStarts(t, geo, time.Second, 50)
		metetest.NoRepeats(t, geo)
		metetest.Blocked(t, gate, "semaphore")
		metetest.Utilisation(t, geo, metetest.Limit{N: 40, Per: time.Second}, 0.99)
		metetest.PermitsConserved(t, gate)
		metetest.NoGoroutines(t)
		if a := geo.Audit(); a.Starts != 400 || a.Refused != 0 || a.InFlight != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// With more permits than needed the limit binds, and is used to the margin.
func TestLimitBinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := metetest.Limit{N: 50, Per: time.Second}
		geo := &metetest.Provider{Limits: []metetest.Limit{limit}, Latency: 100 * time.Millisecond}
		gate := metetest.Gate(t, mete.Config{Name: "geo", Concurrency: 20, Limits: []mete.Limit{mete.Per(50, time.Second)}})
		for r := range batch.Map(t.Context(), gate, seq(500), func(ctx context.Context, i int) (int, error) {
			return i, geo.CallFor(ctx, fmt.Sprint(i))
		}) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
		metetest.MaxStarts(t, geo, time.Second, 50)
		metetest.Utilisation(t, geo, limit, 0.99)
		metetest.Blocked(t, gate, "limit:50/s")
		metetest.NoRepeats(t, geo)
		if a := geo.Audit(); a.Span < 9900*time.Millisecond || a.Span > 10500*time.Millisecond {
			t.Errorf("500 starts at 50/s in %v", a.Span)
		}
		for _, c := range geo.Calls() {
			if c.Status != 200 {
				t.Errorf("call %s has status %d", c.Key, c.Status)
			}
		}
		metetest.NoGoroutines(t)
	})
}

func seq(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// A call that is pushed back pauses the gate, and is made again.
func TestCallTellsTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &metetest.Provider{Reply: func(n int) metetest.Reply {
			return map[int]metetest.Reply{
				1: {Status: 429, RetryAfter: 1500 * time.Millisecond},
				2: {Status: 500},
				4: {Status: 404},
			}[n]
		}}
		gate := metetest.Gate(t, mete.Config{Name: "api", Concurrency: 1, Retry: mete.Retry{Attempts: 3, Delay: time.Second}})
		if err := mete.Do(t.Context(), gate, mete.Call{}, p.Call); err != nil {
			t.Error(err)
		}
		if err := mete.Do(t.Context(), gate, mete.Call{}, p.Call); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("got %v, want a 404", err)
		}
		calls := p.Calls()
		if len(calls) != 4 {
			t.Fatalf("%d calls, want 4: a 404 is not repeated", len(calls))
		}
		if at := calls[1].Start; at < 2*time.Second {
			t.Errorf("called again after %v, Retry-After was 1.5 s, in whole seconds 2", at)
		}
		metetest.NoRepeats(t, p) // a call without a key is no repeat
	})
}

// The same provider behind a socket, in real time.
func TestBehindASocket(t *testing.T) {
	geo := &metetest.Provider{Concurrency: 3, Reply: func(int) metetest.Reply { return metetest.Reply{Body: "here"} }}
	srv := httptest.NewServer(geo)
	defer srv.Close()
	gate := metetest.Gate(t, mete.Config{Name: "geo", Concurrency: 3})
	client := &http.Client{Transport: metehttp.New(gate)}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			resp, err := client.Post(fmt.Sprintf("%s/?i=%d", srv.URL, i), "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "here" || resp.StatusCode != 200 {
				t.Errorf("%s %q %v", resp.Status, text, err)
			}
		})
	}
	wg.Wait()
	metetest.PeakInFlight(t, geo, 3)
	metetest.NoRepeats(t, geo)
	metetest.PermitsConserved(t, gate)
	metetest.NoGoroutines(t)
}

// A request is what its Idempotency-Key says, or else method, URL and body.
func TestWhatARequestIsFor(t *testing.T) {
	p := &metetest.Provider{}
	post := func(url, body, key string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp, err := p.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	repeats := 0
	for _, step := range []struct {
		url, body, key string
		again          bool
	}{
		{"http://geo.test/a", "1", "", false},
		{"http://geo.test/a", "2", "", false},
		{"http://geo.test/b", "1", "", false},
		{"http://geo.test/a", "1", "", true},
		{"http://geo.test/a", "1", "k", false},
		{"http://geo.test/b", "2", "k", true},
	} {
		post(step.url, step.body, step.key)
		if step.again {
			repeats++
		}
		if got := p.Audit().Repeats; got != repeats {
			t.Errorf("%+v: %d repeats, want %d", step, got, repeats)
		}
	}
}

// A call that fails, hangs or is refused does not stop the others, and every
// permit comes back; in virtual time that takes none.
func TestFailuresOnPurpose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &metetest.Provider{Concurrency: 4, Latency: 50 * time.Millisecond}
		p.Reply = func(n int) metetest.Reply {
			switch {
			case n%7 == 0:
				return metetest.Reply{Status: 503, RetryAfter: time.Second}
			case n%11 == 0:
				return metetest.Reply{After: time.Minute}
			}
			return metetest.Reply{}
		}
		gate := metetest.Gate(t, mete.Config{Name: "api", Concurrency: 4, Timeout: time.Second, Retry: mete.Retry{Attempts: 10}})
		for r := range batch.Map(t.Context(), gate, seq(200), func(ctx context.Context, i int) (int, error) {
			return i, p.CallFor(ctx, fmt.Sprint(i))
		}) {
			if r.Err != nil {
				t.Errorf("item %d: %v", r.Index, r.Err)
			}
		}
		metetest.PeakInFlight(t, p, 4)
		metetest.NoRepeats(t, p)
		metetest.Blocked(t, gate, "pause")
		metetest.NoGoroutines(t)
	})
}
