package mete

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
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

// What a throttle does to the share: down by a tenth, or to what was accepted,
// or back to what stood; and what the end of the pause after it tells.
func TestSearchIsRefused(t *testing.T) {
	const now = time.Hour
	on := search{on: true, share: 0.9, bad: 1, since: now - time.Minute}
	with := func(share, good, bad float64) search {
		s := on
		s.share, s.good, s.bad = share, good, bad
		return s
	}
	for _, c := range []struct {
		name    string
		s       search
		counted float64
		whole   bool
		want    search // after it
		again   search // when the provider is open again
	}{
		{"nothing known", search{}, 0, true, with(0.9, 0, 1), with(0.9, 0, 1)},
		{"again", on, 0, true, with(0.81, 0, 0.9), with(0.81, 0, 0.9)},
		{"the least", with(slowest, 0, 1), 0, true, with(slowest, 0, slowest), with(slowest, 0, slowest)},
		{"nearly all was accepted", search{}, 0.96, true, with(0.9, 0, 1), with(0.9, 0, 1)},
		{"a bit more than a tenth less", search{}, 0.92, true, with(0.92, 0, 0.92), with(0.92, 0, 0.92)},
		{"a window's quota", search{}, 0.6, true, with(0.9, 0, 1), with(0.6, 0, 0.6)},
		{"no window", search{}, 0.6, false, with(0.9, 0, 1), with(0.9, 0, 1)},
		{"too little to believe", search{}, 0.4, true, with(0.9, 0, 1), with(0.9, 0, 1)},
		{"a window's quota below the least", with(0.2, 0, 1), 0.11, true, with(0.18, 0, 0.2), with(slowest, 0, slowest)},
		{"back to what stood", with(0.9, 0.85, 1), 0, true, with(0.85, 0.85, 0.9), with(0.85, 0.85, 0.9)},
		{"what stood is refused", with(0.8, 0.8, 1), 0, true, with(0.72, 0, 0.8), with(0.72, 0, 0.8)},
		{"less than what stood", with(0.9, 0.8, 1), 0.7, true, with(0.81, 0, 0.9), with(0.7, 0, 0.7)},
		{"more than what stood", with(0.9, 0.8, 1), 0.84, true, with(0.84, 0.8, 0.84), with(0.84, 0.8, 0.84)},
	} {
		check := func(when string, s, want search) {
			if math.Abs(s.share-want.share) > 1e-9 || math.Abs(s.good-want.good) > 1e-9 || math.Abs(s.bad-want.bad) > 1e-9 || !s.on {
				t.Errorf("%s, %s: %+v, want %+v", c.name, when, s, want)
			}
		}
		s := c.s
		s.refused(now, c.counted)
		check("refused", s, c.want)
		if s.quiet != now || s.since != now || s.took != now-c.s.since {
			t.Errorf("%s: quiet since %v, tried since %v, took %v", c.name, s.quiet, s.since, s.took)
		}
		s.reopened(now+time.Second, c.whole)
		check("open again", s, c.again)
		if s.since != now+time.Second {
			t.Errorf("%s: tried since %v", c.name, s.since)
		}
		// What was counted counts once.
		s.share, s.bad = 0.7, 0.8
		s.reopened(now+time.Minute, true)
		if s.share != 0.7 {
			t.Errorf("%s: %v after another pause", c.name, s.share)
		}
	}
	s := search{}
	s.refused(now, 0.6)
	s.refused(now+time.Second, 0)
	if s.reopened(now+time.Minute, true); s.share != 0.81 {
		t.Errorf("%v, though nothing was counted before the last refusal", s.share)
	}
}

// A share is good once it stood four times as long as the last refused one, from
// ten seconds to two periods; then the middle is tried. What was bad is tried
// again after ten quiet minutes, and at the whole rate the search is over.
func TestSearchSteps(t *testing.T) {
	for _, c := range []struct{ took, period, want time.Duration }{
		{time.Second, time.Minute, 10 * time.Second},
		{5 * time.Second, time.Minute, 20 * time.Second},
		{time.Hour, time.Minute, 2 * time.Minute},
		{time.Hour, time.Second, 10 * time.Second},
	} {
		s := search{took: c.took}
		if got := s.trial(c.period); got != c.want {
			t.Errorf("took %v of %v: a trial of %v, want %v", c.took, c.period, got, c.want)
		}
	}
	s := search{}
	s.refused(time.Hour, 0)
	s.step(time.Hour+time.Minute, time.Second)
	if s.good != 0.9 || math.Abs(s.share-0.95) > 1e-9 || s.since != time.Hour+time.Minute {
		t.Errorf("after a trial: %+v", s)
	}
	s.share, s.bad = 0.8, 0.82
	if s.step(time.Hour+9*time.Minute, time.Second); s.share != 0.8 {
		t.Errorf("close enough, and yet: %+v", s)
	}
	if s.step(time.Hour+10*time.Minute, time.Second); math.Abs(s.bad-0.82/0.9) > 1e-9 || s.good != 0.8 || s.quiet != time.Hour+10*time.Minute {
		t.Errorf("after ten quiet minutes: %+v", s)
	}
	s.share = 1
	if s.step(time.Hour+11*time.Minute, time.Second); s != (search{}) {
		t.Errorf("at the whole rate: %+v", s)
	}
}

// The search moves when it is due and not before.
func TestSearchMovesWhenDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 8 * time.Minute, 10 * time.Minute}).Draw(t, "period")
		s, now := search{}, time.Hour
		s.refused(now, 0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				now += time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second
				s.refused(now, rapid.Float64Range(0, 1).Draw(t, "counted"))
				now += time.Second
				s.reopened(now, rapid.Bool().Draw(t, "whole"))
			default:
				at := s.due(period)
				before := s
				if s.step(max(now, at-1), period); at > now && s != before {
					t.Fatalf("%+v became %+v before %v", before, s, at)
				}
				if now = max(now, at); s == before {
					if s.step(now, period); s == before {
						t.Fatalf("%+v stayed as it was at %v", before, at)
					}
				}
			}
			if !s.on {
				s.refused(now, 0)
			}
			if s.share < slowest || s.share > 1 || s.good > s.share || s.share > s.bad {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// Of several limits the one that paces the starts is the shortest of requests;
// its period is taken for at most ten minutes.
func TestPacedLimit(t *testing.T) {
	day := Limit{N: 1, Calendar: "day"}
	tokens := Limit{N: 5, Per: time.Second, Unit: "tokens"}
	for _, c := range []struct {
		limits []Limit
		want   string
		period time.Duration
	}{
		{nil, "", time.Minute},
		{[]Limit{day, tokens}, "", time.Minute},
		{[]Limit{day, tokens, Per(9, 30*time.Second)}, "limit:9/30s", 30 * time.Second},
		{[]Limit{Per(900, time.Hour), Per(9, time.Minute), Per(99, 2*time.Minute)}, "limit:9/m", time.Minute},
		{[]Limit{Per(900, time.Hour)}, "limit:900/h", 10 * time.Minute},
	} {
		g := newGate(t, Config{Limits: c.limits})
		name := ""
		if l := g.q.pacedLimit(); l != nil {
			name = l.bound()
		}
		if name != c.want || g.q.period() != c.period {
			t.Errorf("%v: %q, %v; want %q, %v", c.limits, name, g.q.period(), c.want, c.period)
		}
		if name == "" {
			continue
		}
		l := g.q.pacedLimit()
		for _, flag := range []*bool{&l.removed, &l.learned} {
			*flag = true
			if g.q.pacedLimit() == l {
				t.Errorf("%v: %s is no limit of the user's, and paces", c.limits, name)
			}
			*flag = false
		}
	}
}

// The last eight refusals are known, each at its time.
func TestRefusalsWithin(t *testing.T) {
	var r refusals
	if n := r.within(-time.Minute, 0); n != 0 {
		t.Errorf("%d before the first", n)
	}
	for i := range 10 {
		r.add(time.Duration(i+1) * time.Second)
	}
	for _, c := range []struct {
		from, to time.Duration
		want     int64
	}{{-time.Minute, time.Minute, 8}, {5 * time.Second, 7 * time.Second, 2}, {8 * time.Second, time.Minute, 2}, {0, 2 * time.Second, 0}} {
		if n := r.within(c.from, c.to); n != c.want {
			t.Errorf("%d from %v to %v, want %d", n, c.from, c.to, c.want)
		}
	}
}

// What was accepted in the last period, as a share of the limit: the starts
// without those that were refused, if they came nearly as fast as they were let.
func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  Limit
		at     time.Duration // when 8 calls start
		before func(*pause)
		want   float64
	}{
		{"7 in half a period", Limit{N: 10, Per: time.Minute, Burst: 10}, 30 * time.Second, nil, 0.7},
		{"7 in a period", Limit{N: 10, Per: time.Minute, Burst: 10}, time.Minute, nil, 0},
		{"7 in half a period since a pause", Limit{N: 10, Per: time.Minute, Burst: 10}, time.Hour, func(p *pause) { p.opened = time.Hour - 30*time.Second }, 0.7},
		{"7 of 8 in a period", Limit{N: 10, Per: time.Minute, Burst: 10}, time.Hour, func(p *pause) { p.search = search{on: true, share: 0.8, bad: 1} }, 0.7},
		{"two were refused", Limit{N: 10, Per: time.Minute, Burst: 10}, 30 * time.Second, func(p *pause) {
			p.refusals.add(10 * time.Second)
			p.refusals.add(30 * time.Second)
			p.refusals.add(31 * time.Second) // after it
		}, 0.5},
		{"a bucket keeps no window", Bucket(10, time.Minute, 10), 30 * time.Second, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, Config{Limits: []Limit{c.limit}})
			time.Sleep(c.at)
			var last *Permit
			for range 8 {
				p, ok := g.TryAcquire(Call{})
				if !ok {
					t.Fatal(c.name, ": refused")
				}
				defer p.Release()
				last = p
			}
			if c.before != nil {
				c.before(&g.q.pause)
			}
			if got := g.q.accepted(last.live(), &g.q.limits[0]); got != c.want {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		})
	}
}
