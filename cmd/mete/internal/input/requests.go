package input

import "encoding/binary"

// requests is a set of hashes of requests, in 5 to 10 bytes each: beside a
// table of ids there is no room for more. It holds 48 bits of a hash. Two
// requests that share them would count as one; among ten million the chance of
// that is one in six.
type requests struct {
	shards []hashes // by the first 16 bits
}

// hashes is an open hash table of the next 32 bits; 0 is an empty slot.
type hashes struct {
	slots []uint32
	n     int
}

// add puts a hash into the set and reports whether it was there.
func (r *requests) add(hash [16]byte) bool {
	if r.shards == nil {
		r.shards = make([]hashes, 1<<16)
	}
	s := &r.shards[binary.BigEndian.Uint16(hash[:])]
	if s.n*5 >= len(s.slots)*4 {
		old := s.slots
		s.slots = make([]uint32, max(4, 2*len(old)))
		for _, v := range old {
			if v != 0 {
				s.slots[s.find(v)] = v
			}
		}
	}
	v := max(1, binary.BigEndian.Uint32(hash[2:]))
	i := s.find(v)
	if s.slots[i] == v {
		return true
	}
	s.slots[i] = v
	s.n++
	return false
}

// find returns the slot of v, or the empty one where it belongs.
func (s *hashes) find(v uint32) uint32 {
	mask := uint32(len(s.slots) - 1)
	i := v & mask
	for s.slots[i] != 0 && s.slots[i] != v {
		i = (i + 1) & mask
	}
	return i
}
