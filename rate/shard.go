package rate

import (
	"math/bits"
	"sync"
)

// shard is a part of the keys of a Keyed: an open hash table with linear
// probing (Knuth, TAOCP vol. 3, 6.4). Of an entry and its home, where its hash
// would have it, all places in between are taken.
type shard struct {
	mu     sync.Mutex
	table  []entry
	used   int // entries, those that can be forgotten included
	hand   int // where sweep goes on
	queues map[uint64]*queue
	_      [8]byte // a shard fills a cache line
}

// entry is a key: its hash, 0 if the place is empty, and the tick at which its
// bucket is full again. From then on it may be forgotten.
type entry struct {
	hash uint64
	due  int64
}

// A table is between half and three quarters full after it was made anew.
const (
	leastTable = 8
	sweepPiece = 64 // entries, a kilobyte
)

// home is the place of the hash if nobody else has it. The low bits of the hash
// chose the shard, the high ones choose the place.
func (s *shard) home(hash uint64) int {
	hi, _ := bits.Mul64(hash, uint64(len(s.table)))
	return int(hi)
}

func (s *shard) next(i int) int {
	if i++; i == len(s.table) {
		return 0
	}
	return i
}

// lookup returns the entry of the hash. If there is none it returns one that
// can be forgotten and whose place the hash may take, if it comes across one.
func (s *shard) lookup(hash uint64, now instant) (e, idle *entry) {
	if s.used == 0 {
		return nil, nil
	}
	for i := s.home(hash); ; i = s.next(i) {
		switch e := &s.table[i]; {
		case e.hash == hash:
			return e, nil
		case e.hash == 0:
			return nil, idle
		case idle == nil && e.due <= now.floor:
			idle = e
		}
	}
}

// insert adds a key that is not there and returns how many it has forgotten to
// make room.
func (s *shard) insert(e entry, now instant) (forgotten int) {
	if 4*(s.used+1) > 3*len(s.table) {
		forgotten = s.rebuild(now)
	}
	s.put(e)
	return forgotten
}

func (s *shard) put(e entry) {
	i := s.home(e.hash)
	for s.table[i].hash != 0 {
		i = s.next(i)
	}
	s.table[i] = e
	s.used++
}

// rebuild makes the table anew, half full with what is in force, and returns
// how many keys it has forgotten. At least a quarter of the new places are
// filled before the next time, so a new key pays for a few places only.
func (s *shard) rebuild(now instant) (forgotten int) {
	old, before := s.table, s.used
	live := 0
	for i := range old {
		if old[i].hash != 0 && old[i].due > now.floor {
			live++
		}
	}
	s.table, s.used, s.hand = make([]entry, max(leastTable, 2*(live+1))), 0, 0
	for i := range old {
		if old[i].hash != 0 && old[i].due > now.floor {
			s.put(old[i])
		}
	}
	return before - live
}

// sweep forgets what can be forgotten in the next piece of the table and
// returns how many keys that were.
func (s *shard) sweep(now instant) (forgotten int) {
	for range min(sweepPiece, len(s.table)) {
		if e := s.table[s.hand]; e.hash != 0 && e.due <= now.floor {
			s.remove(s.hand) // another entry may have come here
			forgotten++
		} else {
			s.hand = s.next(s.hand)
		}
	}
	return forgotten
}

// remove empties a place and moves up those behind it that would not be found
// any more (Knuth's algorithm R).
func (s *shard) remove(i int) {
	s.used--
	for j := s.next(i); s.table[j].hash != 0; j = s.next(j) {
		if s.distance(s.home(s.table[j].hash), j) >= s.distance(i, j) {
			s.table[i] = s.table[j]
			i = j
		}
	}
	s.table[i] = entry{}
}

// distance is how many places j is behind i.
func (s *shard) distance(i, j int) int {
	if j < i {
		return j - i + len(s.table)
	}
	return j - i
}
