package quota

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxNames bounds how many quotas a State remembers, in case a server makes up
// a new name for every response.
const maxNames = 256

// sameWindow is how far apart two resets of the same window can be: many
// servers round to seconds, and the response takes its time.
const sameWindow = 2 * time.Second

// State is what is known about the quotas of one caller at one provider. Keep
// one for each origin, credential and group of routes; quotas of different
// callers have nothing to do with each other. The zero value is ready, and all
// methods may be called concurrently; none of them blocks.
//
// Responses arrive in another order than they were sent. Within one window a
// remainder therefore only falls, and a later window replaces an earlier one.
type State struct {
	mu     sync.Mutex
	quotas map[string]known
}

// known is a quota with the time of the response that it is from.
type known struct {
	Quota
	started, arrived time.Time
	// first is the first reset that this window was seen with. Resets that
	// slide along with the clock would otherwise never begin a new window.
	first time.Time
}

// Merge adds the quotas of a response to a request that started at started,
// both times on the client's clock.
func (s *State) Merge(r Reading, started, arrived time.Time) {
	if len(r.Quotas) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quotas == nil {
		s.quotas = make(map[string]known)
	}
	for _, q := range r.Quotas {
		next := known{q, started, arrived, q.Reset}
		if old, ok := s.quotas[q.Name]; ok {
			next = merge(old, next)
		} else if len(s.quotas) >= maxNames {
			s.forgetOldest()
		}
		s.quotas[q.Name] = next
	}
}

// merge decides between two statements about one quota.
func merge(old, next known) known {
	inOrder := !next.started.Before(old.arrived) // the server knew the old one by then
	ended := !next.started.Before(old.Reset)     // if there is a reset
	before := old.at(next.arrived)
	newer := next.started.After(old.started)
	switch {
	case old.Bucket || next.Bucket:
		// It refills all the time: the newer request knows better.
		if newer {
			return next.completedBy(before)
		}
		return old.lowered(next)
	case old.Reset.IsZero() || next.Reset.IsZero():
		// Without a reset nothing tells the windows apart, but the order may.
		if inOrder {
			return next.completedBy(before)
		}
		return old.lowered(next)
	}
	switch d := next.Reset.Sub(old.first); {
	case d.Abs() <= sameWindow && !ended:
		if newer {
			old, next = next, old
			old.first = next.first
		}
		return old.lowered(next)
	case d > 0, inOrder:
		// A later window; or the server took back what it said.
		return next.completedBy(old.rolledOver())
	}
	return old
}

// lowered keeps k but for the smaller remainder and the later reset.
func (k known) lowered(other known) known {
	if other.HasRemaining && (!k.HasRemaining || other.Remaining < k.Remaining) {
		k.Remaining, k.HasRemaining = other.Remaining, true
	}
	k.Reset = later(k.Reset, other.Reset)
	k.arrived = later(k.arrived, other.arrived)
	return k.completedBy(other.Quota)
}

// completedBy fills in what k does not say.
func (k known) completedBy(old Quota) known {
	if !k.HasLimit {
		k.Limit, k.HasLimit = old.Limit, old.HasLimit
	}
	if !k.HasRemaining {
		k.Remaining, k.HasRemaining = old.Remaining, old.HasRemaining
	}
	k.Window = cmp.Or(k.Window, old.Window)
	if k.Reset.IsZero() {
		k.Reset = old.Reset
	}
	return k
}

// rolledOver is the quota after its window ended: what remains is unknown,
// since other clients of the same account may have used it.
func (k known) rolledOver() Quota {
	q := k.Quota
	q.Remaining, q.HasRemaining, q.Reset = 0, false, time.Time{}
	return q
}

func (k known) at(now time.Time) Quota {
	end := k.Reset
	if end.IsZero() && k.Window > 0 {
		end = k.arrived.Add(k.Window)
	}
	if !end.IsZero() && !end.After(now) {
		return k.rolledOver()
	}
	return k.Quota
}

// forgetOldest removes the quota that was not heard of for the longest time.
func (s *State) forgetOldest() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(s.quotas)), func(a, b string) int {
		return s.quotas[a].arrived.Compare(s.quotas[b].arrived)
	})
	delete(s.quotas, oldest)
}

// Forget ends what is known of the quota of a name, as after it was raised:
// within a window a State believes only the smaller remainder.
func (s *State) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.quotas, name)
}

// Quotas returns what is known at now, sorted by name. The remainder of a
// window that has ended is unknown.
func (s *State) Quotas(now time.Time) []Quota {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Quota, 0, len(s.quotas))
	for _, k := range s.quotas {
		list = append(list, k.at(now))
	}
	slices.SortFunc(list, func(a, b Quota) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Quota returns what is known at now of the quota of a name.
func (s *State) Quota(name string, now time.Time) (q Quota, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.quotas[name]
	if ok {
		q = k.at(now)
	}
	return q, ok
}

// ExhaustedUntil returns the latest reset among the quotas of which nothing
// remains at now, or the zero time if there is none. Before it a request is
// bound to be refused, even if the last one succeeded.
func (s *State) ExhaustedUntil(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var until time.Time
	for _, k := range s.quotas {
		if q := k.at(now); q.exhausted() {
			until = later(until, q.Reset)
		}
	}
	return until
}
