package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A scenario is one run, in milliseconds. The cancellation comes half a
// millisecond after cancel, so that it meets nothing else.
type scenario struct {
	Workers, LookAhead, Window int // Window 0 is without order
	Gates                      int
	Items                      []item
	Body                       int // how long the loop takes for a result
	Cancel                     int // -1: never
	Deaf                       bool
}

type item struct{ Gap, Gate, Takes int }

func (s scenario) bound() int {
	if s.Window > 0 {
		return s.Window
	}
	return s.Workers + s.LookAhead
}

func drawScenario(t *rapid.T) scenario {
	small := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	s := scenario{
		Workers: small("workers", 1, 4), LookAhead: small("ahead", 0, 3), Window: small("window", 0, 7),
		Gates: small("gates", 1, 3), Body: small("body", 0, 5), Cancel: small("cancel", -20, 60), Deaf: rapid.Bool().Draw(t, "deaf"),
	}
	s.Cancel = max(s.Cancel, -1)
	for range small("items", 0, 30) {
		s.Items = append(s.Items, item{
			Gap:  max(0, small("gap", -10, 10)),
			Gate: small("gate", 0, s.Gates-1), Takes: small("takes", 0, 20),
		})
	}
	return s
}

// outcome is what can be seen of a run. Times are half milliseconds; -1 is not
// started and -2 is no result.
type outcome struct {
	Started   []int
	Delivered []int // the times of the results, in their order
	Order     []int // the indexes of the results, if they are ordered
	Ended     int
}

// oracle plays the scenario in steps of half a millisecond. late decides the one
// race there is: an item that is read, after the cancellation, at the very moment
// when the last result is done with.
func oracle(s scenario, late bool) outcome {
	const (
		unread = iota
		ready
		running
		done
		delivered
		dropped
	)
	n := len(s.Items)
	state, end := make([]int, n), make([]int, n)
	o := outcome{Started: slices.Repeat([]int{-2}, n)}
	next, nextAt := 0, 0 // the producer's item, and when it has it
	if n > 0 {
		nextAt = 2 * s.Items[0].Gap
	}
	current, freeAt, last := -1, 0, -1 // the item in the body, and when it is through
	canceled, stopped := false, false
	out := func() (k int) {
		for i, st := range state {
			if st == ready || st == running || st == done || i == current {
				k++
			}
		}
		return k
	}
	atGate := func(gate int) (k int) {
		for i, st := range state {
			if st == running && s.Items[i].Gate == gate {
				k++
			}
		}
		return k
	}
	for now := 0; ; now++ {
		canceled = canceled || s.Cancel >= 0 && now > 2*s.Cancel
		for changed := true; changed; {
			changed = false
			for i := range state {
				if state[i] == running && (end[i] <= now || canceled && !s.Deaf) {
					state[i], changed = done, true
				}
				if state[i] == ready && canceled {
					state[i], changed = done, true
				}
			}
			if current >= 0 && freeAt <= now {
				current, changed = -1, true
			}
			if current < 0 {
				pick := slices.Index(state, done)
				if s.Window > 0 && pick != last+1 {
					pick = -1
				}
				if pick >= 0 {
					state[pick], current, last, freeAt = delivered, pick, pick, now+2*s.Body
					o.Delivered = append(o.Delivered, now)
					if s.Window > 0 {
						o.Order = append(o.Order, pick)
					}
					changed = true
				}
			}
			if next < n && !stopped && nextAt <= now && (out() < s.bound() || canceled) && (late || !canceled || !changed) {
				switch {
				case canceled && out() == 0 && nextAt == now && !late:
					state[next] = dropped // the loop has ended, it waits for this
				case canceled:
					state[next], o.Started[next] = done, -1
				default:
					state[next], o.Started[next] = ready, -1
				}
				stopped = canceled
				if next++; next < n {
					nextAt = now + 2*s.Items[next].Gap
				}
				changed = true
			}
			for i := range state {
				if state[i] == ready && !canceled && atGate(s.Items[i].Gate) < s.Workers {
					state[i], end[i], o.Started[i], changed = running, now+2*s.Items[i].Takes, now, true
				}
			}
		}
		if out() == 0 && (next == n || stopped) {
			o.Ended = now
			return o
		}
	}
}

// play runs the scenario.
func play(t *testing.T, s scenario) (o outcome, err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if s.Cancel >= 0 {
			time.AfterFunc(time.Duration(s.Cancel)*time.Millisecond+time.Millisecond/2, cancel)
		}
		begun := time.Now()
		now := func() int { return int(time.Since(begun) / (time.Millisecond / 2)) }
		in := func(yield func(int) bool) {
			for i, it := range s.Items {
				time.Sleep(time.Duration(it.Gap) * time.Millisecond)
				if !yield(i) {
					return
				}
			}
		}
		var mu sync.Mutex
		o.Started = slices.Repeat([]int{-2}, len(s.Items))
		j := job[int, int, int]{
			options: newOptions([]Option{Workers(s.Workers), LookAhead(s.LookAhead)}),
			key:     func(i int) int { return s.Items[i].Gate },
			limit:   func(int) int { return 0 },
			call: func(ctx context.Context, _, i int) (int, error) {
				mu.Lock()
				o.Started[i] = now()
				mu.Unlock()
				takes := time.After(time.Duration(s.Items[i].Takes) * time.Millisecond)
				if s.Deaf {
					<-takes
					return i, nil
				}
				select {
				case <-takes:
					return i, nil
				case <-ctx.Done():
					return i, ctx.Err()
				}
			},
		}
		if s.Window > 0 {
			Ordered(s.Window)(&j.options)
		}
		j.run(ctx, in, func(r Result[int, int]) bool {
			o.Delivered = append(o.Delivered, now())
			if s.Window > 0 {
				o.Order = append(o.Order, r.In)
			}
			mu.Lock()
			at := o.Started[r.In]
			switch not := errors.Is(r.Err, ErrNotStarted); {
			case r.Index != int64(r.In):
				err = fmt.Errorf("item %d has index %d", r.In, r.Index)
			case not && at != -2:
				err = fmt.Errorf("item %d was started at %d or came twice: %v", r.In, at, r.Err)
			case not:
				o.Started[r.In] = -1
			case r.Err == nil && r.Out != r.In:
				err = fmt.Errorf("item %d has the result of %d", r.In, r.Out)
			}
			mu.Unlock()
			time.Sleep(time.Duration(s.Body) * time.Millisecond)
			return true
		})
		o.Ended = now()
	})
	return o, err
}

func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScenario(rt)
		got, err := play(t, s)
		if err != nil {
			rt.Fatal(err)
		}
		want := oracle(s, false)
		if !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, oracle(s, true)) {
			rt.Fatalf("%+v\n got %+v\nwant %+v", s, got, want)
		}
	})
}
