package journal

import (
	"math/bits"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

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
	hash uint64 // its highest 53 bits, the status in 10, and one that is set if not ok
}

// lowBits are those of a slot's hash that are not of the hash.
const lowBits = 11

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

// put notes a record; the last one of its key counts.
func (x *index) put(h *record.Head) {
	if x.n >= len(x.slots)/8*7 {
		x.grow()
	}
	key := keyOf(h.Key)
	s := x.find(key)
	if s.key == 0 {
		x.n++
	}
	s.key, s.hash = key, h.Hash>>lowBits<<lowBits
	if 0 < h.Status && h.Status < 1000 {
		s.hash |= uint64(h.Status) << 1
	}
	if !h.OK {
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

// status is that of the last record of a key, 0 if there is none.
func (x *index) status(key uint64) int {
	if x.n == 0 {
		return 0
	}
	return int(x.find(keyOf(key)).hash >> 1 % (1 << (lowBits - 1)))
}

// state compares the hashes as far as they are kept. A record without a hash is
// taken for done.
func (x *index) state(key, hash uint64) State {
	if x.n == 0 {
		return Missing
	}
	s := x.find(keyOf(key))
	switch {
	case s.key == 0:
		return Missing
	case s.hash>>lowBits != 0 && s.hash>>lowBits != hash>>lowBits:
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
