package journal

import "math/bits"

// index maps row keys to request hashes, 16 bytes a row: open addressing with
// linear probing (Knuth, TAOCP 6.4, algorithm L). Keys are hashes already; the
// home of one is its share of the table (Lemire, "A fast alternative to the
// modulo reduction"), so the table need not be a power of two.
type index struct {
	slots []slot
	n     int
}

type slot struct {
	key  uint64 // 0: free
	hash uint64 // lowest bit: not ok
}

func keyOf(key uint64) uint64 {
	if key == 0 {
		return 1
	}
	return key
}

// find returns where key is, or the free slot where it belongs.
func (x *index) find(key uint64) *slot {
	home, _ := bits.Mul64(key, uint64(len(x.slots)))
	for i := int(home); ; {
		s := &x.slots[i]
		if s.key == key || s.key == 0 {
			return s
		}
		if i++; i == len(x.slots) {
			i = 0
		}
	}
}

// put notes a record; the last one of a key counts.
func (x *index) put(key, hash uint64, ok bool) {
	if x.n >= len(x.slots)/8*7 {
		x.grow()
	}
	key = keyOf(key)
	s := x.find(key)
	if s.key == 0 {
		x.n++
	}
	s.key, s.hash = key, hash&^1
	if !ok {
		s.hash |= 1
	}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, max(1024, len(old)/2*3))
	for _, s := range old {
		if s.key != 0 {
			*x.find(s.key) = s
		}
	}
}

// state compares all but the lowest bit of the hashes. A record without a hash
// is taken for done.
func (x *index) state(key, hash uint64) State {
	if x.n == 0 {
		return Missing
	}
	s := x.find(keyOf(key))
	switch {
	case s.key == 0:
		return Missing
	case s.hash>>1 != 0 && s.hash>>1 != hash>>1:
		return Changed
	case s.hash&1 != 0:
		return Failed
	}
	return Done
}

func (x *index) failed() (n int64) {
	for _, s := range x.slots {
		if s.key != 0 && s.hash&1 != 0 {
			n++
		}
	}
	return n
}
