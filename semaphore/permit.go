package semaphore

import (
	"math/bits"
	"sync/atomic"
)

// Permit is what a caller of Acquire holds. It is a small value: copies are
// the same permit. The zero Permit holds nothing.
type Permit struct {
	s    *Semaphore
	slot *atomic.Uint64
	held uint64 // what slot contains while the permit is held
	n    int64
}

// Release returns the permit. Only the first call of it, on whichever copy and
// from whichever goroutine, has an effect; later ones are counted as Misuse in
// [Stats]. Releasing the zero Permit does nothing. Release never waits for
// another caller.
func (p Permit) Release() {
	s := p.s
	if s == nil {
		return
	}
	parking := p.slot == &s.hot && s.open()
	next := (p.held | 3) + 1 // the next number of a free slot
	if parking {
		next += parked
	}
	switch {
	case !p.slot.CompareAndSwap(p.held, next):
		s.misuse.Add(1)
	case !parking:
		s.put(p.n)
	case !s.open():
		s.unpark()
		s.handOn()
	}
}

// Weight is how many permits it counts for, 0 for the zero Permit. It does not
// change when the permit is released.
func (p Permit) Weight() int64 { return p.n }

// A permit is one-shot although it is a value that is copied and not
// allocated: it remembers the number its slot had when it was taken. Slots only
// count up, so a late release of any copy finds another number, for ever: 62
// bits do not wrap. The last two bits say what the slot is:
const (
	free   = 0 // holds nothing
	parked = 2 // hot only: holds a permit that nobody has
	// 1 and 3: held by a permit
)

// The hot slot saves half of the writes in the most common case, a permit of
// weight 1 that is taken when few are out. Released, it stays parked in hot and
// is not free in state; taking it again changes hot alone. This holds only
// while the semaphore is open. Who gets in line says so in state and unparks
// after; who parks looks at state after: one of the two sees the other. A limit
// lowered below what is in use shows in state too, and the parked permit goes
// back there before anything else is granted.

// open reports that nobody is in line and the limit is not exceeded.
func (s *Semaphore) open() bool {
	st := s.state.Load()
	return st&queued == 0 && st >= 0
}

// unpark moves the parked permit, if there is one, to state, where anybody can
// take it.
func (s *Semaphore) unpark() {
	if h := s.hot.Load(); h&3 == parked && s.hot.CompareAndSwap(h, h+2) {
		s.state.Add(1 << freeShift)
	}
}

// slots are where permits other than the hot one are. A slot is found by
// hashing the turn of the grant (Fibonacci hashing, Knuth, TAOCP vol. 3, 6.4,
// which spreads consecutive turns evenly) and probing on from there. A semaphore
// starts with few and doubles them when they become crowded, up to at least
// twice as many as permits can be out. Permits keep the slot they have, so
// nothing is moved.
type slots struct {
	shift uint8 // 64 - log2(len(words))
	words []atomic.Uint64
}

const (
	firstSlots = 64 // at first, at most
	crowded    = 8  // probes after which more slots are worth their memory
)

// slotsFor is how many slots a limit calls for.
func slotsFor(limit int64) int64 {
	return max(crowded, int64(2)<<bits.Len64(uint64(limit)))
}

func newSlots(n int64) *slots {
	return &slots{shift: uint8(64 - bits.TrailingZeros64(uint64(n))), words: make([]atomic.Uint64, n)}
}

// permit makes the permit of the grant of n whose turn st was. Its permits are
// already counted as in use, and put returns them only after their slot was
// left: so there is always a slot for it.
func (s *Semaphore) permit(st, n int64) Permit {
	if n == 1 {
		if h := s.hot.Load(); h&3 == free && s.hot.CompareAndSwap(h, h+1) {
			return Permit{s, &s.hot, h + 1, n}
		}
	}
	for {
		sl := s.slots.Load()
		at, last := sl.start(st), uint64(len(sl.words)-1)
		for i := range uint64(len(sl.words)) {
			if i == crowded && s.addSlots(sl) {
				break
			}
			slot := &sl.words[(at+i)&last]
			if v := slot.Load(); v&3 == free && slot.CompareAndSwap(v, v+1) {
				return Permit{s, slot, v + 1, n}
			}
		}
	}
}

// start is where the slot of the turn in st is looked for first.
func (sl *slots) start(st int64) uint64 {
	return (uint64(st) & turnMask * 0x9E3779B97F4A7C15) >> (sl.shift & 63)
}

// addSlots doubles the slots if the limit calls for more than there are in
// old. It reports false if there are as many as are of use.
func (s *Semaphore) addSlots(old *slots) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots.Load() != old {
		return true
	}
	if int64(len(old.words)) >= slotsFor(s.limit) {
		return false
	}
	s.slots.Store(newSlots(2 * int64(len(old.words))))
	return true
}
