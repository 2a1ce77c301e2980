package quota_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
	"pgregory.net/rapid"
)

func ExampleState() {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	reading := func(remaining int64) quota.Reading {
		return quota.Reading{Quotas: []quota.Quota{{
			Name: "core", Remaining: remaining, HasRemaining: true, Reset: now.Add(time.Hour),
		}}}
	}
	var s quota.State
	s.Merge(reading(0), now.Add(2*time.Second), now.Add(3*time.Second))
	s.Merge(reading(1), now.Add(1*time.Second), now.Add(4*time.Second)) // overtaken
	fmt.Println(s.Quotas(now)[0].Remaining, s.ExhaustedUntil(now).Format(time.TimeOnly))
	// Output: 0 13:00:00
}

// said is one statement about the quota of a test; times are in seconds.
type said struct {
	started, arrived float64
	remaining        int64 // -1: not said
	reset            float64
}

func at(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

func (x said) mergeInto(s *quota.State, bucket bool) {
	q := quota.Quota{Name: "q", Limit: 100, HasLimit: true, Bucket: bucket}
	if x.remaining >= 0 {
		q.Remaining, q.HasRemaining = x.remaining, true
	}
	if x.reset > 0 {
		q.Reset = at(x.reset)
	}
	s.Merge(quota.Reading{Quotas: []quota.Quota{q}}, at(x.started), at(x.arrived))
}

func TestStateMerge(t *testing.T) {
	for name, c := range map[string]struct {
		bucket    bool
		said      []said
		now       float64
		remaining int64 // -1: unknown
	}{
		"the remainder falls within a window":       {false, []said{{0, 1, 9, 60}, {1, 2, 8, 60}}, 3, 8},
		"an overtaken response does not raise it":   {false, []said{{1, 2, 8, 60}, {0, 3, 9, 60}}, 3, 8},
		"nor one that is in order":                  {false, []said{{0, 1, 8, 60}, {2, 3, 9, 60}}, 3, 8},
		"rounded resets are one window":             {false, []said{{0, 1, 8, 60}, {2, 3, 9, 62}}, 3, 8},
		"a later window replaces":                   {false, []said{{0, 1, 0, 60}, {59, 61, 99, 120}}, 61, 99},
		"an earlier window is ignored":              {false, []said{{60, 61, 99, 120}, {59, 62, 0, 62}}, 62, 99},
		"a server may take back a far reset":        {false, []said{{0, 1, 0, 9000}, {2, 3, 50, 60}}, 3, 50},
		"a window that ended is unknown":            {false, []said{{0, 1, 0, 60}}, 60, -1},
		"a request after the reset begins anew":     {false, []said{{0, 0.1, 0, 1}, {1, 1.1, 99, 2}}, 1.1, 99},
		"sliding resets begin anew":                 {false, []said{{0, 0, 5, 2}, {1, 1, 9, 3}, {2, 2, 7, 4.5}}, 2, 7},
		"without reset only order raises it":        {false, []said{{0, 2, 3, 0}, {1, 3, 9, 0}}, 3, 3},
		"without reset a response in order does":    {false, []said{{0, 2, 3, 0}, {2, 3, 9, 0}}, 3, 9},
		"silence keeps what is known":               {false, []said{{0, 1, 3, 60}, {1, 2, -1, 60}}, 3, 3},
		"silence after the window ended does not":   {false, []said{{0, 1, 3, 60}, {61, 62, -1, 120}}, 62, -1},
		"a bucket rises with a newer request":       {true, []said{{0, 2, 3, 60}, {1, 3, 9, 50}}, 3, 9},
		"a bucket does not rise with an older one":  {true, []said{{1, 2, 3, 60}, {0, 3, 9, 50}}, 3, 3},
		"a bucket falls with an older request, too": {true, []said{{1, 2, 9, 60}, {0, 3, 3, 50}}, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var s quota.State
			for _, x := range c.said {
				x.mergeInto(&s, c.bucket)
			}
			q := s.Quotas(at(c.now))[0]
			if !q.HasRemaining {
				q.Remaining = -1
			}
			if q.Remaining != c.remaining || !q.HasLimit {
				t.Errorf("remaining %d, want %d: %+v", q.Remaining, c.remaining, q)
			}
		})
	}
}

// However the responses of one window are shuffled, the smallest remainder is
// known in the end.
func TestStateOrderWithinWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 20).Draw(t, "left")
		order := rapid.Permutation(indices(len(left))).Draw(t, "order")
		var s quota.State
		smallest := left[0]
		for k, i := range order {
			said{float64(i), float64(20 + k), left[i], 60}.mergeInto(&s, false)
			smallest = min(smallest, left[i])
		}
		if got := s.Quotas(at(50))[0].Remaining; got != smallest {
			t.Fatalf("remaining %d, want %d", got, smallest)
		}
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// A server that invents names must not fill the memory.
func TestStateIsBounded(t *testing.T) {
	var s quota.State
	for i := range 1000 {
		q := quota.Quota{Name: fmt.Sprint(i), Limit: 1, HasLimit: true}
		s.Merge(quota.Reading{Quotas: []quota.Quota{q}}, at(float64(i)), at(float64(i)))
	}
	list := s.Quotas(at(1000))
	if len(list) != 256 || list[len(list)-1].Name != "999" {
		t.Errorf("%d quotas, last %q", len(list), list[len(list)-1].Name)
	}
}

// Of two statements about one window the smaller remainder and the later reset
// count, in whichever order they come.
func TestLaterResetOfOneWindow(t *testing.T) {
	one, two := said{1, 2, 10, 60}, said{3, 4, 5, 61}
	for _, order := range [][]said{{one, two}, {two, one}} {
		var s quota.State
		for _, x := range order {
			x.mergeInto(&s, false)
		}
		if q := s.Quotas(at(5)); len(q) != 1 || q[0].Remaining != 5 || !q[0].Reset.Equal(at(61)) {
			t.Errorf("%v: %+v", order, q)
		}
	}
}

// A call that needs several quotas waits for the last of those that are used up.
func TestExhaustedUntilTheLast(t *testing.T) {
	for range 20 { // a map has no order
		var s quota.State
		s.Merge(quota.Reading{Quotas: []quota.Quota{
			{Name: "a", HasRemaining: true, Reset: at(60)},
			{Name: "b", HasRemaining: true, Reset: at(3600)},
			{Name: "c", HasRemaining: true, Reset: at(10)},
			{Name: "d", HasRemaining: true, Remaining: 1, Reset: at(9999)},
		}}, at(1), at(2))
		if until := s.ExhaustedUntil(at(3)); !until.Equal(at(3600)) {
			t.Fatalf("until %v", until)
		}
	}
}

func TestNoMoreRemainsThanTheLimit(t *testing.T) {
	r := quota.Parse(quota.Response{Status: 200, Now: noon, Header: http.Header{
		"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"50"}, "X-Ratelimit-Reset": {"60"},
	}})
	if len(r.Quotas) != 1 || r.Quotas[0].Remaining != 10 {
		t.Errorf("%+v", r.Quotas)
	}
}
