package main

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metehttp"
	"github.com/metehq/mete/rate"
	"github.com/metehq/mete/semaphore"
)

// The targets that are about allocations do not depend on the machine, so they
// are tests.
func TestAllocations(t *testing.T) {
	background := context.Background()
	cancelable, cancel := context.WithCancel(background)
	defer cancel()

	s := semaphore.New(10)
	acquire := func(ctx context.Context) func() {
		return func() {
			p, err := s.Acquire(ctx, 1)
			must(err)
			p.Release()
		}
	}
	yes := value(rate.New(rate.Bucket{N: plenty, Per: time.Second, Burst: plenty}))
	no := value(rate.New(rate.Bucket{N: 1, Per: time.Hour}))
	no.Allow(1)
	through := func(call func(context.Context) error) func() {
		return func() { must(call(cancelable)) }
	}

	for _, c := range []struct {
		name string
		most float64
		do   func()
	}{
		{"semaphore, background", 0, acquire(background)},
		{"semaphore, cancellable", 0, acquire(cancelable)},
		{"semaphore, TryAcquire", 0, func() { p, _ := s.TryAcquire(1); p.Release() }},
		{"rate, Allow", 0, func() { yes.Allow(1) }},
		{"rate, Allow denied", 0, func() { no.Allow(1) }},
		{"rate, Wait", 0, func() { must(yes.Wait(cancelable, 1)) }},
		{"stack with a bucket", 1, through(meteStack(gate(0, aBucket)))},
		{"stack with a window", 1, through(meteStack(gate(0, aWindow)))},
		{"stack with an attempt timeout", 1, through(meteStack(gate(time.Minute, aBucket)))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := testing.AllocsPerRun(1000, c.do); got > c.most {
				t.Errorf("%v allocations, want at most %v", got, c.most)
			}
		})
	}
}

// What metehttp allocates beyond the client: the permit with its context, the
// request with its body; the hooks of a stamp, or the watch of a context.
func TestClientAllocations(t *testing.T) {
	count := func(rt http.RoundTripper, req *http.Request) float64 {
		client := &http.Client{Transport: rt}
		return testing.AllocsPerRun(1000, func() {
			resp := value(client.Do(req))
			value(io.Copy(io.Discard, resp.Body))
			must(resp.Body.Close())
		})
	}
	for _, c := range []struct {
		name   string
		most   float64
		req    *http.Request
		limits []mete.Limit
	}{
		{"a request", 2, get, nil},
		{"cancellable", 5, getCancelable, nil},
		{"stamped", 5, get, []mete.Limit{aWindow}},
	} {
		rt := metehttp.New(value(mete.New(mete.Config{Concurrency: permits, Limits: c.limits})))
		rt.Base = instant{}
		if got := count(rt, c.req) - count(instant{}, c.req); got > c.most {
			t.Errorf("%s: %v allocations more, want at most %v", c.name, got, c.most)
		}
	}
}

// Nothing about the harness may turn a missed target into a met one.
func TestTargets(t *testing.T) {
	same := func(v float64) func() float64 { return func() float64 { return v } }
	for _, c := range []struct {
		target target
		mete   float64
		peers  []float64
		ok     bool
		best   int
	}{
		{target{kind: atMostOf, bound: 0.5}, 5, []float64{20, 10}, true, 1},
		{target{kind: atMostOf, bound: 0.5}, 5.1, []float64{20, 10}, false, 1},
		{target{kind: atLeastOf, bound: 1.2}, 12, []float64{10, 5}, true, 0},
		{target{kind: atLeastOf, bound: 1.2}, 11, []float64{5, 10}, false, 1},
		{target{kind: over, bound: 400}, 1400, []float64{1000}, true, 0},
		{target{kind: over, bound: 400}, 1401, []float64{1000}, false, 0},
		{target{kind: atMost, bound: 8}, 8.1, nil, false, 0},
		{target{kind: atLeast, bound: 0.98}, 0.99, []float64{0.5}, true, 0},
		{target{kind: between, bound: 0.999, upper: 1.001}, 1.0011, []float64{0.17}, false, 0},
	} {
		line := comparison{name: "test", unit: "ns", mete: contender{"mete", same(c.mete)}, target: c.target}
		for _, p := range c.peers {
			line.peers = append(line.peers, contender{"peer", same(p)})
		}
		if r := line.run(3); r.ok() != c.ok || r.best != c.best {
			t.Errorf("%v beside %v for %s: ok %v, best %d; want %v, %d", c.mete, c.peers, c.target.text("ns"), r.ok(), r.best, c.ok, c.best)
		}
	}
}
