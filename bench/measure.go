package main

import (
	"runtime"
	"slices"
	"time"
)

// contender is one way to do the thing that a comparison measures.
type contender struct {
	name string
	// sample measures it once, in the comparison's unit.
	sample func() float64
}

// comparison is one line of the table: mete beside its peers.
type comparison struct {
	name, unit string
	mete       contender
	peers      []contender
	target     target
	rounds     int    // 0 means those of the flag
	why        string // in one sentence, why the target is missed if it is
}

// result is what a comparison came to.
type result struct {
	comparison
	ours   series
	theirs []series // in the order of peers
	best   int      // the peer that counts
	figure float64  // what the target is about: a ratio, a difference or a value
}

// series is the samples of one contender.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func (s series) least() float64 { return slices.Min(s) }

// run takes the samples in turn, mete, peer, peer, mete, ..., so that whatever
// else the machine does meets all of them alike. Ratios and differences are
// taken within a round, and their median counts.
func (c comparison) run(rounds int) result {
	if c.rounds > 0 {
		rounds = min(rounds, c.rounds)
	}
	r := result{comparison: c, theirs: make([]series, len(c.peers))}
	for range rounds {
		r.ours = append(r.ours, clean(c.mete.sample))
		for i, p := range c.peers {
			r.theirs[i] = append(r.theirs[i], clean(p.sample))
		}
	}
	better := func(a, b float64) bool { return a < b }
	if c.target.more() {
		better = func(a, b float64) bool { return a > b }
	}
	for i := range r.theirs {
		if better(r.theirs[i].median(), r.theirs[r.best].median()) {
			r.best = i
		}
	}
	var figures series
	for i, own := range r.ours {
		peer := 0.0
		if len(r.theirs) > 0 {
			peer = r.theirs[r.best][i]
		}
		figures = append(figures, c.target.figure(own, peer))
	}
	r.figure = figures.median()
	return r
}

// ok reports whether the target is met.
func (r result) ok() bool { return r.target.met(r.figure) }

// ratio is mete divided by the best peer, whatever the target is about.
func (r result) ratio() float64 {
	if len(r.theirs) == 0 {
		return 0
	}
	var ratios series
	for i, own := range r.ours {
		ratios = append(ratios, own/r.theirs[r.best][i])
	}
	return ratios.median()
}

// clean measures with nothing left over from the sample before.
func clean(sample func() float64) float64 {
	runtime.GC()
	return sample()
}

// each returns a sample of the nanoseconds that one of n operations takes; do
// makes all of them.
func each(n int, do func(n int)) func() float64 {
	return timed(n, do, func() time.Duration { return time.Since(process) })
}

// alone is each for one caller that never waits, in the processor time of its
// thread: on a machine that does nothing else that is the time that passes, and
// on a busy one it still is. The garbage collector runs on the other processor.
func alone(n int, do func(n int)) func() float64 {
	return func() float64 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return timed(n, do, callerTime)()
	}
}

func timed(n int, do func(n int), clock func() time.Duration) func() float64 {
	return func() float64 {
		do(n / 20) // warm up: caches, free lists, branch predictors
		begun := clock()
		do(n)
		return float64((clock() - begun).Nanoseconds()) / float64(n)
	}
}

var process = time.Now()

// spread returns a do for each that n operations are made by g goroutines.
func spread(g int, do func(n int)) func(n int) {
	return func(n int) {
		done := make(chan struct{}, g)
		start := make(chan struct{})
		for range g {
			go func() {
				<-start
				do(n / g)
				done <- struct{}{}
			}()
		}
		close(start)
		for range g {
			<-done
		}
	}
}

// must stops the run: a contender that fails measures nothing.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// value is must for a function with a result.
func value[T any](v T, err error) T {
	must(err)
	return v
}
