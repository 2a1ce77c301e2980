package input

import (
	"math"
	"math/bits"
)

// table maps 64-bit hashes to small numbers in 12 bytes per slot: an open
// hash table (Knuth, vol. 3, 6.4, algorithm L). It is cut into shards by the
// top bits, which grow one at a time, so growing never doubles the memory.
// A value of 0 is an empty slot.
type table struct {
	shards [64]shard
}

type shard struct {
	keys []uint64
	vals []uint32
	n    int
}

// add counts one more of key and returns the count, at most MaxUint32.
func (t *table) add(key uint64) uint32 {
	v := t.slot(key)
	if *v < math.MaxUint32 {
		*v++
	}
	return *v
}

// put stores val under key unless the key is there; it returns what was there,
// or 0.
func (t *table) put(key uint64, val uint32) uint32 {
	v := t.slot(key)
	old := *v
	if old == 0 {
		*v = max(val, 1)
	}
	return old
}

// slot returns the place of key's value, which is 0 for a new key and must
// then be set.
func (t *table) slot(key uint64) *uint32 {
	h := key * 0x9E3779B97F4A7C15 // Fibonacci hashing: 48-bit keys have empty top bits
	s := &t.shards[h>>58]
	if s.n*5 >= len(s.keys)*4 {
		s.grow()
	}
	i := s.find(key, h)
	if s.vals[i] == 0 {
		s.keys[i] = key
		s.n++
	}
	return &s.vals[i]
}

// find returns the slot of the key, or the empty one where it belongs. The
// slots are not a power of two, so a shard can grow in small steps.
func (s *shard) find(key, h uint64) uint64 {
	size := uint64(len(s.keys))
	i, _ := bits.Mul64(h<<6, size) // the top six bits chose the shard
	for s.vals[i] != 0 && s.keys[i] != key {
		if i++; i == size {
			i = 0
		}
	}
	return i
}

func (s *shard) grow() {
	old := *s
	size := max(16, len(old.keys)+len(old.keys)/4)
	s.keys, s.vals = make([]uint64, size), make([]uint32, size)
	for i, v := range old.vals {
		if v != 0 {
			j := s.find(old.keys[i], old.keys[i]*0x9E3779B97F4A7C15)
			s.keys[j], s.vals[j] = old.keys[i], v
		}
	}
}
