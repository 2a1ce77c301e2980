package mete_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// account is what a provider saw start: its own books, in the order of time.
type account struct {
	mu     sync.Mutex
	starts []start
}

type start struct {
	at   time.Time
	cost int64
}

func (a *account) start(cost int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.starts = append(a.starts, start{time.Now(), cost})
}

// most is the most that any half-open window of that length held, of units and
// of starts.
func (a *account) most(window time.Duration) (units, starts int64) {
	var sum int64
	first := 0
	for i, s := range a.starts {
		sum += s.cost
		for s.at.Sub(a.starts[first].at) >= window {
			sum -= a.starts[first].cost
			first++
		}
		units, starts = max(units, sum), max(starts, int64(i-first+1))
	}
	return units, starts
}

// rate is what started per second from the first start to the last, whose own
// cost is paid by the time after it.
func (a *account) rate() (units, starts float64) {
	last := len(a.starts) - 1
	var sum int64
	for _, s := range a.starts[:last] {
		sum += s.cost
	}
	d := a.starts[last].at.Sub(a.starts[0].at).Seconds()
	return float64(sum) / d, float64(last) / d
}

// Costs are estimated three times too high, and paid back when the answer is
// there: the quota in tokens is used nevertheless, and never exceeded.
//
// What is in flight may cost what was estimated, so its excess is free quota
// that nobody may use: with e estimated and a true tokens a call, a limit of n
// per window w and an answer after t, a share of 1/(1 + (e-a)/a * t/w) is left,
// whoever limits. Of that a call at the head of the queue leaves unused what is
// not yet enough for it: about e²/2e of n, which is 1.5 %.
func TestTokensAreUsed(t *testing.T) {
	const rows, tpm, rpm = 1000, 90_000, 500
	for _, latency := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g, err := mete.New(mete.Config{Concurrency: 64, MaxWait: -1, Limits: []mete.Limit{
				{Name: "rpm", N: rpm, Per: time.Minute},
				{Name: "tpm", Unit: "tokens", N: tpm, Per: time.Minute},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			random := rand.New(rand.NewPCG(1, uint64(latency)))
			books := &account{}
			var wg sync.WaitGroup
			for range rows {
				est := 1 + random.Int64N(4000)
				act := max(1, int64(float64(est)*0.6*random.Float64())) // 30 % on average
				took := time.Duration(float64(latency) * (0.5 + random.Float64()))
				wg.Go(func() {
					p, err := g.Acquire(context.Background(), mete.Call{Wire: true, Patient: true, Costs: map[string]int64{"tokens": est}})
					if err != nil {
						t.Error(err)
						return
					}
					p.Sent()
					books.start(act)
					time.Sleep(took)
					p.Settle(map[string]int64{"tokens": act})
					p.Release()
				})
			}
			wg.Wait()
			slices.SortStableFunc(books.starts, func(a, b start) int { return a.at.Compare(b.at) })
			units, starts := books.most(time.Minute)
			perSecond, _ := books.rate()
			used := perSecond * 60 / tpm
			t.Logf("latency %v: %.1f %% of %d tokens/min used, of %.1f %% possible; at most %d tokens and %d starts in any minute", latency, 100*used, tpm, 100/(1+0.7/0.3*latency.Seconds()/60), units, starts)
			if units > tpm || starts > rpm {
				t.Errorf("latency %v: %d tokens and %d starts in a minute", latency, units, starts)
			}
			possible := 1 / (1 + 0.7/0.3*latency.Seconds()/60)
			if used < possible-0.05 || latency < time.Second && used < 0.96 {
				t.Errorf("latency %v: only %.1f %% of the quota was used", latency, 100*used)
			}
		})
	}
}
