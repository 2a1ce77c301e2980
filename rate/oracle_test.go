package rate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/rate"
)

// oracle is a bucket with a line, kept as the list of all charges and replayed
// millisecond by millisecond. Levels are in thousandths of a unit; the rates
// are such that everything happens on a whole millisecond.
type oracle struct {
	n, burst int64
	from     int64 // the replay begins here, with level
	level    int64
	charges  []*charge
	line     []*charge
	now      int64
}

type charge struct {
	id, at, n int64
	granted   bool
}

// replay returns the level at now.
func (o *oracle) replay() int64 {
	level, t := o.level, o.from
	for _, c := range append(slices.Clone(o.charges), &charge{at: o.now}) {
		level = min(level+(c.at-t)*o.n, o.burst*1000)
		level, t = level-c.n*1000, c.at
	}
	return level
}

func (o *oracle) step() {
	for len(o.line) > 0 && o.replay() >= o.line[0].n*1000 {
		o.book(o.line[0])
		o.line = o.line[1:]
	}
}

func (o *oracle) book(c *charge) {
	c.at, c.granted = o.now, true
	o.charges = append(o.charges, c)
}

func (o *oracle) sleep(d int64) {
	for range d {
		o.now++
		o.step()
	}
}

// set changes the burst; what was charged before is final.
func (o *oracle) set(burst int64) {
	o.level, o.from = o.replay(), o.now
	o.level = min(o.level, burst*1000)
	o.burst, o.charges = burst, nil
}

type step struct {
	kind  string
	n, ms int64
	which int
}

var steps = rapid.Custom(func(t *rapid.T) step {
	return step{
		kind:  rapid.SampledFrom([]string{"allow", "wait", "wait", "plain", "cancel", "settle", "settle", "set"}).Draw(t, "kind"),
		n:     rapid.Int64Range(1, 8).Draw(t, "n"),
		ms:    rapid.SampledFrom([]int64{0, 0, 1, 2, 5, 17, 60}).Draw(t, "ms"),
		which: rapid.IntRange(0, 1000).Draw(t, "which"),
	}
})

// Whatever is asked for, given up, settled and changed in whatever order: the
// limiter grants what the oracle grants, to the same callers at the same time.
func TestHistoriesAgainstReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int64{1000, 500, 250, 200, 100, 50}).Draw(rt, "rate")
		burst := rapid.Int64Range(8, 20).Draw(rt, "burst")
		list := rapid.SliceOfN(steps, 1, 60).Draw(rt, "steps")
		var failure string
		synctest.Test(t, func(t *testing.T) { failure = history(t, n, burst, list) })
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

// caller is the limiter's side of a charge of the oracle.
type caller struct {
	*charge
	cancel  context.CancelFunc
	grant   *rate.Grant
	err     error
	through bool
	final   bool // it waits without a grant
}

func history(t *testing.T, n, burst int64, list []step) string {
	start := time.Now()
	l := must(t, rate.Bucket{N: n, Per: time.Second, Burst: burst})
	o := &oracle{n: n, burst: burst, level: burst * 1000}
	var callers []*caller
	defer func() {
		for _, c := range callers {
			c.cancel()
		}
	}()
	for i, s := range list {
		time.Sleep(time.Duration(s.ms) * ms)
		synctest.Wait() // what is due at this instant comes first
		o.sleep(s.ms)
		switch s.kind {
		case "allow":
			want := len(o.line) == 0 && o.replay() >= s.n*1000
			if want {
				o.book(&charge{n: s.n})
			}
			if got := l.Allow(s.n); got != want {
				return fmt.Sprintf("step %d: Allow(%d) is %v", i, s.n, got)
			}
		case "wait", "plain":
			ctx, cancel := context.WithCancel(context.Background())
			c := &caller{charge: &charge{id: int64(i), n: s.n}, cancel: cancel, final: s.kind == "plain"}
			callers = append(callers, c)
			o.line = append(o.line, c.charge)
			o.step()
			go func() {
				if c.final {
					c.err = l.Wait(ctx, s.n)
				} else {
					c.grant, c.err = l.Take(ctx, s.n)
				}
				c.through = true
			}()
		case "cancel":
			if len(o.line) > 0 {
				c := o.line[s.which%len(o.line)]
				o.line = slices.DeleteFunc(o.line, func(other *charge) bool { return other == c })
				for _, k := range callers {
					if k.charge == c {
						k.cancel()
					}
				}
				o.step()
			}
		case "settle":
			if len(callers) == 0 {
				continue
			}
			c := callers[s.which%len(callers)]
			if !c.granted || c.final {
				continue
			}
			actual := s.n * 2 % 11
			c.grant.Settle(actual)
			c.grant.Cancel() // changes nothing any more
			if actual > c.n {
				o.book(&charge{n: actual - c.n})
			} else {
				c.n = actual // without effect if a change has made it final
			}
			callers = slices.DeleteFunc(callers, func(k *caller) bool { return k == c })
			o.step()
		case "set":
			if err := l.Set(rate.Bucket{N: n, Per: time.Second, Burst: 8 + s.n}); err != nil {
				return err.Error()
			}
			if 8+s.n != o.burst {
				o.set(8 + s.n)
				o.step()
			}
		}
		synctest.Wait()
		for _, c := range callers {
			if c.granted != (c.through && c.err == nil) {
				return fmt.Sprintf("step %d at %v: caller %d granted %v, want %v", i, time.Since(start), c.id, c.through, c.granted)
			}
		}
		level := o.replay()
		if s := l.Stats(); s.Free*1000 > level || (s.Free+1)*1000 <= level || s.Waiting != len(o.line) {
			return fmt.Sprintf("step %d (%+v) at %v: %+v, want level %d, waiting %d", i, list[i], time.Since(start), s, level, len(o.line))
		}
	}
	return ""
}
