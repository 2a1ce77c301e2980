package rate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/rate"
)

// Estimates are settled exactly once: refunds never fill beyond the burst,
// debts are paid by those who come later (typedef-ai/fenic#313,
// gravitational/teleport#69116, vutran1710/PyrateLimiter#110).
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1000, Per: time.Minute, Burst: 1000})
		g := take(t, l, 400)
		g.Settle(100)
		free(t, l, 900)
		g = take(t, l, 400)
		g.Settle(900)
		free(t, l, 0)
		g.Settle(0)
		g.Cancel()
		free(t, l, 0)
		if d := peek(t, l, 100); d != 6*time.Second {
			t.Fatalf("100 in %v", d)
		}
		wait(l, 100).granted(t, 6*time.Second)
		g = take(t, l, 400)
		time.Sleep(time.Hour)
		g.Settle(0)
		free(t, l, 1000)
	})
}

// Taken and given back at once, over and over, leaves the limit full: there is
// no delay below which a refund is lost.
func TestCancelRestores(t *testing.T) {
	for _, limit := range []rate.Limit{
		rate.Window{N: 5, Per: time.Minute, Burst: 5}, rate.Bucket{N: 1, Per: time.Hour, Burst: 5},
		rate.Calendar{N: 5, Each: "day"},
	} {
		bubble(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			l := must(t, limit)
			for range 10 {
				g := take(t, l, 5)
				g.Cancel()
				g.Settle(3)
			}
			free(t, l, 5)
			for range 10 {
				take(t, l, 3).Settle(0)
			}
			free(t, l, 5)
			if !l.Allow(5) {
				t.Fatal("refused although it is full")
			}
		})
	}
}

// A refund reaches those in line, and an Allow, at once.
func TestRefundReachesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 10})
		g := take(t, l, 10)
		w := wait(l, 4)
		time.Sleep(time.Second)
		g.Settle(3)
		w.granted(t, time.Second)
		for _, n := range []int64{5, 3, 4} {
			if l.Allow(n) != (n == 3) {
				t.Fatalf("3 are left: Allow(%d)", n)
			}
		}
	})
}

// A denial that was remembered does not outlive what lifts it.
func TestDenialIsLifted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Window{N: 2, Per: time.Hour, Burst: 2})
		g := take(t, l, 2)
		denied := func() {
			t.Helper()
			for _, n := range []int64{1, 1, 2} {
				if l.Allow(n) {
					t.Fatal("allowed")
				}
			}
		}
		denied()
		g.Settle(1)
		if !l.Allow(1) {
			t.Fatal("refused after a refund")
		}
		denied()
		l.Set(rate.Window{N: 3, Per: time.Hour, Burst: 3})
		time.Sleep(time.Nanosecond) // due times are rounded up
		if !l.Allow(1) {
			t.Fatal("refused after the limit was raised")
		}
		denied()
		time.Sleep(2 * time.Hour)
		if !l.Allow(3) {
			t.Fatal("refused although the window has passed")
		}
		// A denial of many units says nothing about few.
		l = must(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 4})
		take(t, l, 2)
		if l.Allow(3) || l.Allow(4) || !l.Allow(2) {
			t.Fatal("2 are free")
		}
	})
}

// An estimate is charged when the call starts, so that concurrent calls cannot
// all pass on a budget that is charged at their end (BerriAI/litellm#18730,
// membrane/api-gateway#3210).
func TestEstimateIsChargedAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := must(t, rate.Bucket{N: 100, Per: time.Minute, Burst: 100})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var mu sync.Mutex
		var admitted []*rate.Grant
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if g, err := l.Take(ctx, 60); err == nil {
					mu.Lock()
					defer mu.Unlock()
					admitted = append(admitted, g)
				} else if !errors.Is(err, rate.ErrDeadline) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(admitted) != 1 {
			t.Fatalf("%d admitted", len(admitted))
		}
		admitted[0].Settle(130)
		free(t, l, -30)
		wait(l, 10).granted(t, 24*time.Second)
	})
}

// Of two limits, the one that was taken first gets everything back when the
// other refuses (vutran1710/PyrateLimiter#189, vutran1710/PyrateLimiter#174).
func TestFirstOfTwoLimitsIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		requests := must(t, rate.Bucket{N: 10, Per: time.Minute, Burst: 10})
		tokens := must(t, rate.Bucket{N: 1000, Per: time.Minute, Burst: 1000})
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
			defer cancel()
			r, err := requests.Take(ctx, 1)
			if err != nil {
				return err
			}
			defer r.Cancel()
			g, err := tokens.Take(ctx, 100)
			if err != nil {
				return err
			}
			r.Settle(1)
			g.Settle(100)
			return nil
		}
		take(t, tokens, 1000)
		for range 5 {
			if err := call(); !errors.Is(err, rate.ErrDeadline) {
				t.Fatal(err)
			}
		}
		free(t, requests, 10)
		time.Sleep(time.Minute)
		for range 10 {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
		free(t, requests, 0)
		free(t, tokens, 0)
	})
}

// A grant is settled once, whoever is first.
func TestSettleConcurrently(t *testing.T) {
	l := must(t, rate.Bucket{N: 1, Per: time.Hour, Burst: 1000})
	var wg sync.WaitGroup
	for range 100 {
		g := take(t, l, 10)
		for range 4 {
			wg.Go(func() { g.Settle(5) })
		}
	}
	wg.Wait()
	free(t, l, 500)
	var none *rate.Grant
	none.Settle(7)
	none.Cancel()
}

// A cost that makes no sense creates no capacity, and no debt without end.
func TestSettleOutOfRange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, limit := range []rate.Limit{
			rate.Window{N: 10, Per: time.Second, Burst: 10},
			rate.Bucket{N: 10, Per: time.Second, Burst: 10},
			rate.Calendar{N: 10, Each: "day"},
		} {
			l := must(t, limit)
			take(t, l, 4)
			take(t, l, 5).Settle(-5)
			free(t, l, 6)
			take(t, l, 1).Settle(1 << 62)
			if got := l.Stats().Free; got > 0 || got < -rate.MaxUnits {
				t.Errorf("%v: %d free after the largest cost", limit, got)
			}
			if limit == l.Stats().Limit {
				continue
			}
			t.Errorf("%v is told as %v", limit, l.Stats().Limit)
		}
	})
}

// What a late start of a fast bucket has missed is made up to the worth of 5 ms,
// and no more, without a line as well.
func TestAllowCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			late time.Duration
			want int
		}{{time.Millisecond, 1}, {4 * time.Millisecond, 4}, {6 * time.Millisecond, 6}, {7 * time.Millisecond, 1}, {time.Minute, 1}} {
			l := must(t, rate.Bucket{N: 1000, Per: time.Second, Burst: 1})
			if !l.Allow(1) {
				t.Fatal("refused")
			}
			time.Sleep(c.late)
			n := 0
			for l.Allow(1) {
				n++
			}
			if n != c.want {
				t.Errorf("%d at once after %v, want %d", n, c.late, c.want)
			}
		}
	})
}

// Lumps are made up to a tenth of the window where that is asked for.
func TestBulk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for bulk, want := range map[bool]time.Duration{false: 10 * time.Second, true: 4 * time.Second} {
			l := must(t, rate.Window{N: 1000, Per: 100 * time.Second, Margin: time.Nanosecond, Bulk: bulk})
			take(t, l, 100)              // the next is due in 10 s
			time.Sleep(16 * time.Second) // and late by 6
			take(t, l, 100)
			if d := peek(t, l, 1).Round(time.Millisecond); d != want {
				t.Errorf("bulk %v: the next in %v, want %v", bulk, d, want)
			}
		}
	})
}
