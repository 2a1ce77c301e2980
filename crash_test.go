package mete

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// However often and whenever a process is killed and begins again, the provider
// sees no more than its quotas allow: not in any window, nor in a day.
func TestQuotasHoldAcrossCrashes(t *testing.T) {
	for name, limits := range map[string][]Limit{
		"a window":       {{N: 20, Per: time.Minute, Burst: 20}},
		"a paced window": {{N: 600, Per: 5 * time.Minute}},
		"a short window": {{N: 5, Per: 3 * time.Second, Burst: 5}},
		"two windows":    {{N: 10, Per: time.Second, Burst: 10}, {N: 60, Per: 5 * time.Minute, Burst: 60}},
		"a bucket":       {{N: 10, Per: time.Minute, Burst: 10, Bucket: true}},
		"a big bucket":   {{N: 100, Per: time.Minute, Burst: 20, Bucket: true}},
		"a deep bucket":  {{N: 10, Per: time.Minute, Burst: 40, Bucket: true}},
		"a day":          {{N: 2, Per: time.Second, Burst: 2}, {N: 70, Calendar: "day"}},
		"a day, bucket":  {{N: 5, Per: time.Second, Burst: 3, Bucket: true}, {N: 70, Calendar: "day"}},
		"two units":      {{N: 10, Per: time.Minute, Burst: 10}, {N: 25, Per: time.Minute, Burst: 25, Unit: "tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 2))
					cfg := Config{Name: "p", State: t.TempDir(), Limits: limits}
					call := Call{Costs: map[string]int64{"tokens": 2}}
					var starts []time.Duration
					begun := time.Now()
					sleep := func(most time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(most)))) }
					for range 15 {
						g := newGate(t, cfg)
						for range rng.IntN(10) {
							for range rng.IntN(15) {
								p, ok := g.TryAcquire(call)
								if !ok {
									break
								}
								p.Release()
								starts = append(starts, time.Since(begun))
							}
							sleep([]time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 20 * time.Second}[rng.IntN(3)])
						}
						if rng.IntN(4) > 0 {
							crash(g)
						} else if err := g.Close(); err != nil {
							t.Fatal(err)
						}
						sleep([]time.Duration{time.Millisecond, time.Second, 4 * time.Second, 80 * time.Second}[rng.IntN(4)])
					}
					for _, l := range limits {
						if what := tooMany(l, starts); what != "" {
							t.Fatalf("seed %d, %+v: %s", seed, l, what)
						}
					}
				})
			}
		})
	}
}

// tooMany is what a provider with the limit has against the starts.
func tooMany(l Limit, starts []time.Duration) string {
	cost := int64(1)
	if l.Unit == "tokens" {
		cost = 2
	}
	level, last := float64(l.Burst), time.Duration(0)
	for i, at := range starts {
		level, last = min(level+float64(at-last)/float64(l.Per)*float64(l.N), float64(l.Burst))-float64(cost), at
		n := int64(0)
		for _, before := range starts[:i+1] {
			if l.Calendar != "" || before > at-l.Per {
				n += cost
			}
		}
		switch {
		case l.Bucket && level < -1e-6:
			return fmt.Sprintf("%.3f units too many at %v", -level, at)
		case !l.Bucket && n > l.N:
			return fmt.Sprintf("%d at %v", n, at)
		}
	}
	return ""
}

// What is kept is not more than has to be: after a proper end it is exactly what
// was used, and after a crash of steady work no more than two seconds of it. Of
// a bucket nobody knows; it may have been emptied at once.
func TestRestartCostsLittle(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, l := range []Limit{{N: 600, Per: 5 * time.Minute}, {N: 600, Per: 5 * time.Minute, Burst: 60, Bucket: true}} {
			if killed && l.Bucket {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Name: "p", State: t.TempDir(), Limits: []Limit{l}, MaxWait: -1}
				count := func(g *Gate, d time.Duration) (n int) {
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
						if p, ok := g.TryAcquire(Call{}); ok {
							p.Release()
							n++
						}
					}
					return n
				}
				g := newGate(t, cfg)
				count(g, 5*time.Minute) // half of what there is
				free := g.Stats().Limits[0].Free
				if killed {
					crash(g)
				} else if err := g.Close(); err != nil {
					t.Fatal(err)
				}
				g = newGate(t, cfg)
				defer g.Close()
				got := g.Stats().Limits[0].Free
				if least := free - 6; got > free || got < least || !killed && got < free-1 {
					t.Errorf("%+v, killed %v: %d free, were %d", l, killed, got, free)
				}
				if n := count(g, 2*time.Minute); n < 115 {
					t.Errorf("%+v, killed %v: %d starts in 2 minutes, want one a second", l, killed, n)
				}
			})
		}
	}
}
