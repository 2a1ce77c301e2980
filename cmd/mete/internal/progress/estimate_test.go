package progress

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Ten rows, four done by an earlier run, three retried twice: each row counts
// once, the earlier ones say nothing about the speed.
// curl/curl#20696, cuducos/minha-receita#53, quiltdata/quilt#636,
// mattgathu/duma#11, endre-git/aoget#7
func TestRowsCountOnceAndResumedRowsAreNotSpeed(t *testing.T) {
	var e estimator
	now := time.Unix(0, 0)
	s := Snapshot{Total: 10, Done: 4, Resumed: 4}
	retriesLeft := 6
	lastPermille := int64(0)
	for step := range 13 {
		v := e.observe(now, s)
		if v.Done < 4 || v.Done > 10 || v.permille < lastPermille || v.permille > 1000 {
			t.Fatalf("step %d: %d/%d, %d ‰", step, v.Done, v.Total, v.permille)
		}
		lastPermille = v.permille
		switch {
		case s.Done == 4 && v.eta != unknown:
			t.Fatalf("step %d: ETA %v from resumed rows alone", step, v.eta)
		case s.Done > 4 && (v.eta < 0 || v.eta > time.Duration(10-s.Done)*3*time.Second):
			t.Fatalf("step %d: ETA %v for %d rows", step, v.eta, 10-s.Done)
		}
		now = now.Add(time.Second)
		s.Elapsed += time.Second
		if retriesLeft > 0 && step%2 == 0 {
			retriesLeft--
			s.Retries++
		} else {
			s.Done++
			s.OK++
		}
		s.Done = min(s.Done, 10)
	}
	if s.Retries != 6 || lastPermille != 1000 {
		t.Errorf("%d retries, ended at %d ‰", s.Retries, lastPermille)
	}
}

func TestUnknownTotalHasNeitherPercentNorETA(t *testing.T) {
	var e estimator
	now := time.Unix(0, 0)
	for i := range 100 {
		v := e.observe(now.Add(time.Duration(i)*time.Second), Snapshot{Total: -1, Done: int64(i)})
		if v.permille != unknown || v.eta != unknown || v.Done != int64(i) {
			t.Fatalf("%+v", v)
		}
	}
}

func TestETA(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for _, c := range []struct {
		name string
		perS float64 // completions
		snap Snapshot
		want float64 // seconds for 1000 rows left
	}{
		{"as fast as rows complete", 10, Snapshot{}, 100},
		{"the quota is slower", 10, Snapshot{LimitPerSecond: 5}, 200},
		{"the quota is faster", 10, Snapshot{LimitPerSecond: 50}, 100},
		{"a pause is added", 10, Snapshot{LimitPerSecond: 5, PausedFor: 41 * time.Second}, 241},
		{"rows differ in cost", 10, Snapshot{LimitPerSecond: 5, RemainingCost: 9e5, CostPerSecond: 1500}, 600},
		{"no completion", 0, Snapshot{LimitPerSecond: 5}, unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e estimator
			var v view
			for i := range 600 {
				s := c.snap
				s.Elapsed = second(float64(i) / 5)
				s.Done = int64(float64(i) / 5 * c.perS)
				s.Total = s.Done + 1000
				s.PausedFor = 0
				if i == 599 {
					s.PausedFor = c.snap.PausedFor
				}
				v = e.observe(time.Unix(0, 0).Add(s.Elapsed), s)
			}
			if c.want == unknown {
				if v.eta != unknown {
					t.Errorf("ETA %v", v.eta)
				}
			} else if got := v.eta.Seconds(); math.Abs(got-c.want) > c.want/50 {
				t.Errorf("ETA %v s, want %v s", got, c.want)
			}
		})
	}
}

// A pause is known: it is added to the estimate and does not also lower the
// speed, so that the end stays where it is while the pause runs down.
func TestPauseIsNotCountedTwice(t *testing.T) {
	var e estimator
	s := Snapshot{Total: 10_000}
	now := time.Unix(0, 0)
	end := time.Duration(0)
	for i := range 3000 {
		at := time.Duration(i) * 200 * time.Millisecond
		s.Elapsed, s.PausedFor = at, 0
		switch {
		case at < time.Minute:
			s.Done = int64(at.Seconds() * 10)
		case at < 6*time.Minute:
			s.PausedFor = 6*time.Minute - at
		default:
			s.Done = 600 + int64((at-6*time.Minute).Seconds()*10)
		}
		v := e.observe(now.Add(at), s)
		if at < 2*time.Second {
			continue
		}
		got := at + v.eta
		if at == time.Minute {
			end = got
		}
		if end != 0 && (got-end).Abs() > 10*time.Second {
			t.Fatalf("at %v the end moved from %v to %v", at, end, got)
		}
	}
}

// A slow provider that completes a row now and then must not make the estimate
// jump about.
func TestSlowCompletionsGiveACalmETA(t *testing.T) {
	var e estimator
	now := time.Unix(0, 0)
	for at := time.Duration(0); at < 2*time.Hour; at += 200 * time.Millisecond {
		done := int64(at / time.Minute)
		v := e.observe(now.Add(at), Snapshot{Total: done + 100, Done: done, Elapsed: at})
		if at > 30*time.Minute {
			if m := v.eta.Minutes(); m < 85 || m > 115 {
				t.Fatalf("ETA of 100 rows at one a minute is %v after %v", v.eta, at)
			}
		}
	}
}

func TestNothingGoesBackwardsOrOutOfRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e estimator
		now := time.Unix(0, 0)
		permille := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(-1e9, 1e11).Draw(t, "later")))
			v := e.observe(now, anySnapshot().Draw(t, "snapshot"))
			if v.Total >= 0 {
				if v.Done > v.Total || v.permille > 1000 || v.permille < permille {
					t.Fatalf("%d/%d, %d ‰ after %d ‰", v.Done, v.Total, v.permille, permille)
				}
				permille = v.permille
			}
			if v.eta < unknown || v.eta > horizon || math.IsNaN(v.average) || math.IsInf(v.average, 0) || v.average < 0 {
				t.Fatalf("ETA %v, average %v", v.eta, v.average)
			}
		}
	})
}

func TestWholeIsSaidOnlyWhenAllIsDone(t *testing.T) {
	for _, c := range []struct {
		done, total, want int64
	}{{0, 0, 1000}, {0, 10, 0}, {999_999, 1_000_000, 999}, {1_000_000, 1_000_000, 1000}, {12, 10, 1000}} {
		if v := seen(Snapshot{Done: c.done, Total: c.total}); v.permille != c.want {
			t.Errorf("%d/%d: %d ‰, want %d", c.done, c.total, v.permille, c.want)
		}
	}
}
