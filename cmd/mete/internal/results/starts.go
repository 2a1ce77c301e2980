package results

import (
	"maps"
	"slices"
	"time"
)

// starts keeps the times of attempts to the millisecond: two bytes an attempt,
// at most 4 KB for a second in which attempts started. The order in which they
// are added is free, so shards and resumed runs can be looked at together.
type starts struct {
	seconds map[int64]*second
	n       int64
	first   int64 // ms since 1970
	last    int64
}

// second holds the milliseconds of its starts, or from dense starts on how many
// started in each.
type second struct {
	sparse []uint16
	dense  *[1000]uint32
}

const dense = 2000

func (s *starts) add(ms int64) {
	if s.n == 0 {
		s.seconds = map[int64]*second{}
		s.first, s.last = ms, ms
	}
	s.n++
	s.first, s.last = min(s.first, ms), max(s.last, ms)
	at, in := ms/1000, ms%1000
	if in < 0 {
		at, in = at-1, in+1000
	}
	sec := s.seconds[at]
	if sec == nil {
		sec = new(second)
		s.seconds[at] = sec
	}
	if sec.dense == nil {
		sec.sparse = append(sec.sparse, uint16(in))
		if len(sec.sparse) < dense {
			return
		}
		sec.dense = new([1000]uint32)
		for _, m := range sec.sparse {
			sec.dense[m]++
		}
		sec.sparse = nil
		return
	}
	sec.dense[in]++
}

// mean is the number of starts per second from the first to the last: n starts
// have n-1 gaps between them.
func (s *starts) mean() float64 {
	if s.n < 2 || s.last <= s.first {
		return 0
	}
	return float64(s.n-1) / (float64(s.last-s.first) / 1000)
}

// most returns the most starts in any of the half-open windows. Times are cut
// to milliseconds, which never makes a window look fuller than it was.
func (s *starts) most(windows ...time.Duration) []int64 {
	order := slices.Sorted(maps.Keys(s.seconds))
	for _, sec := range s.seconds {
		slices.Sort(sec.sparse)
	}
	most := make([]int64, len(windows))
	for i, w := range windows {
		lead := &cursor{of: s, order: order}
		trail := &cursor{of: s, order: order}
		oldest, oldestCount, more := trail.next()
		var in int64
		for at, n, ok := lead.next(); ok; at, n, ok = lead.next() {
			in += n
			for more && oldest <= at-w.Milliseconds() {
				in -= oldestCount
				oldest, oldestCount, more = trail.next()
			}
			most[i] = max(most[i], in)
		}
	}
	return most
}

// cursor goes through the starts in order of time.
type cursor struct {
	of    *starts
	order []int64
	sec   int
	i     int
}

// next returns a time and how many started then.
func (c *cursor) next() (ms, n int64, ok bool) {
	for ; c.sec < len(c.order); c.sec, c.i = c.sec+1, 0 {
		at := c.order[c.sec]
		sec := c.of.seconds[at]
		if sec.dense == nil {
			if c.i == len(sec.sparse) {
				continue
			}
			m := sec.sparse[c.i]
			for ; c.i < len(sec.sparse) && sec.sparse[c.i] == m; c.i++ {
				n++
			}
			return at*1000 + int64(m), n, true
		}
		for ; c.i < len(sec.dense); c.i++ {
			if n := sec.dense[c.i]; n > 0 {
				c.i++
				return at*1000 + int64(c.i-1), int64(n), true
			}
		}
	}
	return 0, 0, false
}
