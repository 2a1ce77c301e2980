package metetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete"
)

// failed is a test that records how it fails.
type failed struct {
	said     []string
	cleanups []func()
}

func (f *failed) Helper() {}
func (f *failed) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *failed) Fatalf(format string, args ...any) { f.Errorf("fatal: "+format, args...) }
func (f *failed) Cleanup(c func())                  { f.cleanups = append(f.cleanups, c) }
func (f *failed) end() {
	for i := range f.cleanups {
		f.cleanups[len(f.cleanups)-1-i]()
	}
	f.cleanups = nil
}

// want checks that there was one failure whose first line is that, with advice
// below it, or none.
func (f *failed) want(t *testing.T, first string) {
	t.Helper()
	f.end()
	if first == "" {
		if len(f.said) > 0 {
			t.Errorf("failed with %q", f.said)
		}
		return
	}
	if len(f.said) != 1 {
		t.Fatalf("%d failures, want 1: %q", len(f.said), f.said)
	}
	line, rest, _ := strings.Cut(f.said[0], "\n")
	if line != "metetest: "+first {
		t.Errorf("got  %s\nwant metetest: %s", line, first)
	}
	if !strings.Contains(rest, "look at: ") {
		t.Errorf("no advice in %q", f.said[0])
	}
}

// begin starts a call at each of the times, that takes as long as the provider
// wants, and waits for all.
func begin(t *testing.T, p *Provider, keys []string, at ...time.Duration) {
	t.Helper()
	done := make(chan error)
	for i, d := range at {
		go func() {
			time.Sleep(d)
			key := ""
			if i < len(keys) {
				key = keys[i]
			}
			done <- p.CallFor(t.Context(), key)
		}()
	}
	for range at {
		<-done
	}
}

const ms = time.Millisecond

func TestPeakInFlightFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Latency: 30 * ms}
		begin(t, p, nil, 0, 10*ms, 20*ms, 30*ms, 40*ms)
		var f failed
		PeakInFlight(&f, p, 3)
		// At 30 ms one ends and one starts; either may come first.
		if got := p.Audit().Peak; got == 3 {
			f.want(t, "")
		}
		f = failed{}
		PeakInFlight(&f, p, 2)
		f.want(t, fmt.Sprintf("%d calls were in flight together, at most 2 may be: %v after the first start", p.Audit().Peak, p.Audit().PeakAt))
	})
}

func TestMaxStartsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limits: []Limit{{N: 2, Per: 50 * ms}}}
		begin(t, p, nil, 0, 100*ms, 160*ms, 170*ms, 180*ms)
		var f failed
		MaxStarts(&f, p, 100*ms, 4)
		f.want(t, "")
		MaxStarts(&f, p, 100*ms, 3)
		f.want(t, "4 calls started in a window of 100ms, at most 3 may: numbers 2 to 5, 100ms to 180ms after the first start, 1 of them refused")
		if n, from := p.MostStarts(100 * ms); n != 4 || from != 100*ms {
			t.Errorf("%d from %v", n, from)
		}
	})
}

// Windows are half open, at the provider and in its books.
func TestWindowsAreHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limits: []Limit{{N: 1, Per: 100 * ms}}}
		begin(t, p, nil, 0, 100*ms, 200*ms)
		if a := p.Audit(); a.Refused != 0 {
			t.Errorf("%d refused", a.Refused)
		}
		for window, want := range map[time.Duration]int{100 * ms: 1, 100*ms + 1: 2, 200 * ms: 2, 201 * ms: 3} {
			if n, _ := p.MostStarts(window); n != want {
				t.Errorf("%d in %v, want %d", n, window, want)
			}
		}
		begin(t, p, nil, 100*ms-1) // after the last, at 200 ms
		if a := p.Audit(); a.Refused != 1 {
			t.Errorf("%d refused, want 1", a.Refused)
		}
	})
}

// No window of the books holds more than a count by hand finds, whatever the
// times and the window.
func TestMostStartsByHand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Provider
		base, at := time.Now(), time.Duration(0)
		steps := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 20).Draw(t, "steps")
		for _, s := range steps {
			at += time.Duration(s)
			if len(p.books.calls) == 0 {
				at = 0
			}
			p.books.room(base.Add(at), nil, 0)
			p.books.open(base.Add(at), "", false)
		}
		window := time.Duration(rapid.IntRange(1, 10).Draw(t, "window"))
		want, from := 0, time.Duration(0)
		for w := -window; w <= at; w++ {
			n, first := 0, time.Duration(-1)
			for _, c := range p.books.calls {
				if c.Start >= w && c.Start < w+window {
					if n++; first < 0 {
						first = c.Start
					}
				}
			}
			if n > want {
				want, from = n, first
			}
		}
		if n, first := p.MostStarts(window); n != want || first != from {
			t.Fatalf("%d from %v, want %d from %v", n, first, want, from)
		}
	})
}

func TestUtilisationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := Limit{N: 10, Per: time.Second}
		p := &Provider{}
		var f failed
		Utilisation(&f, p, limit, 0.5)
		f.want(t, "utilisation needs calls at two times at least, there came 0 calls")
		begin(t, p, nil, 0, 100*ms, 200*ms, 600*ms)
		f = failed{}
		Utilisation(&f, p, limit, 0.5)
		f.want(t, "")
		Utilisation(&f, p, limit, 0.9)
		f.want(t, "50.0 % of 10 per 1s was used, at least 90.0 % is to be: 4 starts in 600ms; the longest time without one was 400ms, from 200ms on")
	})
}

func TestNoRepeatsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Reply: func(n int) Reply {
			if n == 2 {
				return Reply{Status: 500} // done is only what was answered with success
			}
			return Reply{}
		}}
		begin(t, p, []string{"a", "b", "b", "a", "", ""}, 0, 10*ms, 20*ms, 30*ms, 40*ms, 50*ms)
		var f failed
		NoRepeats(&f, p)
		f.want(t, "1 call was answered with success more than once")
		if !strings.Contains(f.said[0], `"a", started at 0s 30ms`) {
			t.Errorf("does not say what and when: %s", f.said[0])
		}
	})
}

func TestBlockedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Gate(t, mete.Config{Name: "geo", Concurrency: 1, Limits: []mete.Limit{mete.Bucket(1, time.Second, 1)}})
		var f failed
		Blocked(&f, g, "pause")
		f.want(t, `gate "geo": nothing has waited, "pause" was to be the binding bound`)
		p := &Provider{Latency: 3 * time.Second}
		done := make(chan error)
		for range 3 {
			go func() { done <- mete.Do(t.Context(), g, mete.Call{}, p.Call) }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		f = failed{}
		Blocked(&f, g, "semaphore")
		f.want(t, "")
		Blocked(&f, g, "limit:1/s")
		f.want(t, `gate "geo": the binding bound is "semaphore", it was to be "limit:1/s"`)
		if !strings.Contains(f.said[0], "6s for semaphore") {
			t.Errorf("does not say for how long: %s", f.said[0])
		}
	})
}

func TestPermitsConservedFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failed
		g := Gate(&f, mete.Config{Name: "geo", Concurrency: 1})
		permit, err := g.Acquire(t.Context(), mete.Call{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := g.Acquire(ctx, mete.Call{})
			done <- err
		}()
		f2 := failed{}
		PermitsConserved(&f2, g)
		if want := []string{`geo": 1 permit is still in use`, `geo": 1 call still waits, for semaphore`}; len(f2.said) != 2 ||
			!strings.Contains(f2.said[0], want[0]) || !strings.Contains(f2.said[1], want[1]) {
			t.Errorf("got %q, want %q", f2.said, want)
		}
		cancel()
		if err := <-done; !errors.Is(err, mete.ErrCanceled) {
			t.Error(err)
		}
		permit.Release()
		permit.Release()
		f.want(t, `gate "geo": 1 release of a permit that was released before`)
	})
}

func lose(t *testing.T, g *mete.Gate) {
	if _, err := g.Acquire(t.Context(), mete.Call{}); err != nil {
		t.Fatal(err)
	}
}

// A lost permit is reported with where it was taken, in and outside a bubble;
// the observer of the test's own configuration hears of it as well.
func TestLostPermits(t *testing.T) {
	check := func(t *testing.T) {
		var f failed
		var heard atomic.Int32
		g := Gate(&f, mete.Config{Name: "geo", Concurrency: 1, Observer: &mete.Observer{
			Leaked: func(string, string) { heard.Add(1) },
		}})
		lose(t, g)
		f.want(t, `gate "geo": 1 permit was lost: garbage-collected before they were released`)
		if !strings.Contains(f.said[0], "metetest.lose") || !strings.Contains(f.said[0], "failures_test.go:") {
			t.Errorf("does not say where: %s", f.said[0])
		}
		if heard.Load() != 1 {
			t.Errorf("the observer was told %d times", heard.Load())
		}
	}
	check(t)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, check) })
}

func TestGateWithAMistake(t *testing.T) {
	var f failed
	if g := Gate(&f, mete.Config{Limits: []mete.Limit{{N: -1, Per: time.Second}}}); g != nil {
		t.Error("a gate")
	}
	if len(f.said) != 1 || !strings.HasPrefix(f.said[0], "fatal: metetest: no gate: ") {
		t.Errorf("%q", f.said)
	}
}

func TestNoGoroutinesFails(t *testing.T) {
	check := func(t *testing.T) {
		g := Gate(t, mete.Config{Name: "geo", Concurrency: 1})
		permit, err := g.Acquire(t.Context(), mete.Call{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() {
			defer close(done)
			_, _ = g.Acquire(ctx, mete.Call{})
		}()
		for g.Stats().Waiting == 0 {
			time.Sleep(ms)
		}
		var f failed
		NoGoroutines(&f)
		f.want(t, "1 goroutine is still in a call of mete")
		if !strings.Contains(f.said[0], "(*Gate).Acquire") {
			t.Errorf("does not say where: %s", f.said[0])
		}
		cancel()
		<-done
		permit.Release()
		f = failed{}
		NoGoroutines(&f)
		f.want(t, "")
	}
	check(t)
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, check) })
}

// A body that is neither read nor closed is in flight, and its permit in use.
func TestBodyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Concurrency: 1, Reply: func(int) Reply { return Reply{Body: "x"} }}
		ask := func(want int) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://geo.test/", strings.NewReader("q"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := p.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != want {
				t.Errorf("%s, want %d", resp.Status, want)
			}
			return resp
		}
		first := ask(200)
		second := ask(429)
		if s := second.Header.Get("Retry-After"); s != "1" {
			t.Errorf("Retry-After %q", s)
		}
		first.Body.Close()
		first.Body.Close()
		ask(200).Body.Close()
		second.Body.Close()
		if a := p.Audit(); a.InFlight != 0 || a.Peak != 2 || a.Refused != 1 || a.Repeats != 1 {
			t.Errorf("%+v", a)
		}
		if ok, err := regexp.MatchString(`^POST http://geo.test/ with body [0-9a-f]{12}$`, p.Calls()[0].Key); err != nil || !ok {
			t.Errorf("key %q", p.Calls()[0].Key)
		}
	})
}

// A caller that leaves is booked as one that has left, and frees its place.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Concurrency: 1, Latency: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		if err := p.Call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://geo.test/", nil)
		if _, err := p.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		calls := p.Calls()
		if len(calls) != 1 || calls[0] != (Call{End: 300 * ms}) {
			t.Errorf("%+v", calls)
		}
		if err := p.Call(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A Reply that ends its goroutine, as FailNow does, or panics ends the call.
func TestReplyThatDoesNotReturn(t *testing.T) {
	p := &Provider{Concurrency: 1, Reply: func(n int) Reply {
		if n == 1 {
			runtime.Goexit()
		}
		panic("no")
	}}
	for range 2 {
		done := make(chan bool)
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_ = p.Call(t.Context())
		}()
		<-done
	}
	if a := p.Audit(); a.InFlight != 0 || a.Refused != 0 || a.Starts != 2 {
		t.Errorf("%+v", a)
	}
}
