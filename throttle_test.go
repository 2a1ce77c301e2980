package mete

import (
	"testing"
	"testing/synctest"
	"time"
)

// A provider whose real quota is 80 % of the configured one, and which says so
// by nothing but 429: within two minutes the gate uses 95 to 100 % of it, and
// in all hardly anything is refused.
func TestFindsTheRealQuota(t *testing.T) {
	for _, per := range []struct {
		n   int
		per time.Duration
	}{{10, time.Second}, {50, time.Second}, {100, time.Minute}, {1000, time.Minute}} {
		for _, p := range []*provider{
			{kind: "sliding"}, {kind: "sliding", hint: true},
			{kind: "fixed"}, {kind: "fixed", hint: true},
			{kind: "fixed", phase: 3}, {kind: "fixed", phase: 3, hint: true},
			{kind: "bucket", burst: 1}, {kind: "bucket", burst: 1, hint: true},
			{kind: "bucket", burst: 10}, {kind: "bucket", burst: 10, hint: true},
		} {
			p.n, p.per, p.rtt = per.n*8/10, per.per, 50*time.Millisecond
			p.phase = p.phase * per.per / 10
			t.Run(p.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGate(t, Config{Limits: []Limit{Per(int64(per.n), per.per)}, Retry: Retry{Attempts: 10}})
					p.work(t, g, 40, 5*time.Minute)
					// Whole windows of the provider, which cannot hold more than
					// its quota; of a bucket they may hold its burst as well.
					from := 2*time.Minute + (p.per-p.phase)%p.per
					windows := (5*time.Minute - from) / p.per
					got, all := between(p.accepted, from, from+windows*p.per), p.n*int(windows)
					share := float64(len(p.refused)) / float64(len(p.accepted)+len(p.refused))
					if float64(got) < 0.95*float64(all) || got > all+int(p.burst) || share >= 0.02 {
						t.Errorf("%d of the real quota of %d used in %d windows, rate %.3f, %.2f %% refused", got, all, windows, g.Stats().Rate, 100*share)
					}
				})
			})
		}
	}
}

// Where the real quota is the whole one again, the rate comes back; where it
// stays, looking for more costs next to nothing and never swings.
func TestComesBackToTheRate(t *testing.T) {
	for _, p := range []*provider{{kind: "sliding"}, {kind: "fixed", hint: true}, {kind: "bucket", burst: 1}} {
		for _, stays := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{kind: p.kind, hint: p.hint, burst: p.burst, n: 480, per: time.Minute, rtt: 50 * time.Millisecond}
				g := newGate(t, Config{Limits: []Limit{Per(600, time.Minute)}, Retry: Retry{Attempts: 10}})
				p.work(t, g, 8, 5*time.Minute)
				found := g.Stats().Rate
				tens := 6
				if !stays {
					// A throttle on the way up costs ten quiet minutes more.
					p.n, tens = 600, 8
				}
				before := len(p.refused)
				for i := range tens {
					from := time.Since(p.begun)
					p.work(t, g, 8, 10*time.Minute)
					if used := float64(between(p.accepted, from, from+10*time.Minute)) / float64(10*p.n); stays && used < 0.93 {
						t.Errorf("%v: ten minutes number %d: %.3f of the quota used", p, i, used)
					}
				}
				rate, refused := g.Stats().Rate, float64(len(p.refused)-before)/float64(60*p.n)
				switch {
				case found < 0.75 || found > 0.82:
					t.Errorf("%v: found %.3f", p, found)
				case stays && (rate < 0.75 || rate > 0.9 || refused > 0.003):
					t.Errorf("%v: rate %.3f after an hour, %.2f %% refused", p, rate, 100*refused)
				case !stays && rate != 1:
					t.Errorf("%v: rate %.3f after 80 minutes of the whole quota", p, rate)
				}
			})
		}
	}
}
