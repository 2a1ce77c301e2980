package rate

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Never is the retryAfter of [Keyed.Allow] where waiting would not help.
const Never = time.Duration(math.MaxInt64)

// Keyed is a token bucket for each of many keys: tenants, users, hosts. Each
// key is admitted at most Burst + N/Per*t units in any time t. Make one with
// [NewKeyed]; it must not be copied. Its methods may be called at any time from
// any goroutine.
//
// A key is a string as the caller gives it: "Host" and "host" are two. It is
// not kept, only a hash of it with a secret seed, 64 bits; where two keys had
// the same one they would share a bucket. A key takes 21 to 32 bytes and no
// pointer, so a million of them cost the garbage collector nothing. A call
// costs a hash, a reading of the clock, the lock of one of up to 256 parts, and
// a cache miss or two.
//
// # Forgetting
//
// A key whose bucket is full again is as good as one that was never seen, and
// is forgotten when its place is of use: nothing in force is ever forgotten. No
// goroutine does that. A new key takes the place of a forgettable one that it
// comes across, or pays its share of looking through the part it belongs to
// whenever that has to grow.
//
// # Overflow
//
// While maxKeys keys are in force, those that have no place share one more
// bucket of the same limit, so that a flood of keys takes neither memory nor
// more than one key's quota. A key that gets a place later starts with what is
// left in the shared bucket: what it had there counts. A new key looks for one to
// forget in a few places only, so now and then one shares although there is one.
type Keyed struct {
	limit Bucket
	most  int64
	clock clock
	unit  int64 // ticks that a unit takes to flow in
	full  int64 // ticks that an empty bucket takes to fill, 0 if it never does

	seed   maphash.Seed
	shards []shard // the length is a power of two
	hand   atomic.Uint32
	keys   atomic.Int64

	overflow   atomic.Int64 // when the shared bucket is full again
	overflowed atomic.Int64
}

// NewKeyed returns a limiter of at most maxKeys keys, of which nothing is used
// yet. The error wraps [ErrInvalid]: beside what [New] refuses, fewer than 1
// key, a limit of more than 1 unit per nanosecond and a burst that takes more
// than 100 years to flow in.
func NewKeyed(limit Bucket, maxKeys int) (*Keyed, error) {
	if err := limit.check(); err != nil {
		return nil, err
	}
	limit.Burst = max(limit.Burst, 1)
	k := &Keyed{limit: limit, most: int64(maxKeys), seed: maphash.MakeSeed()}
	if limit.N > 0 {
		k.unit = int64(limit.Per) / limit.N
	}
	hi, full := bits.Mul64(uint64(limit.Burst), uint64(k.unit))
	switch {
	case maxKeys < 1:
		return nil, fmt.Errorf("%w: at most %d keys", ErrInvalid, maxKeys)
	case limit.N > int64(limit.Per):
		return nil, fmt.Errorf("%w: %d per %v are more than one per nanosecond", ErrInvalid, limit.N, limit.Per)
	case hi > 0 || full > uint64(maxPer):
		return nil, fmt.Errorf("%w: %v takes more than 100 years to fill", ErrInvalid, limit)
	}
	k.full = int64(full)
	k.clock = newClock(k.unit*limit.N, limit.Per)
	k.shards = make([]shard, shardsFor(maxKeys))
	return k, nil
}

// shardsFor is the number of parts for so many keys: few keys, few parts.
func shardsFor(maxKeys int) int {
	return min(1<<bits.Len(uint(maxKeys/64)), 256)
}

// Allow takes n units of the key if they may start now and nobody waits for
// the key, and reports whether it did. If not, retryAfter is how long n units
// would have to wait at least: exactly so long if nobody else asks for the key
// meanwhile. It is [Never] if n is more than the burst or the limit is 0, and 0
// if n is below 1, which is never allowed. Allow never waits and does not
// allocate, save for the memory of new keys.
func (k *Keyed) Allow(key string, n int64) (ok bool, retryAfter time.Duration) {
	if n <= 0 {
		return false, 0
	}
	if k.impossible(n) != nil {
		return false, Never
	}
	h, s := k.find(key)
	s.mu.Lock()
	now := k.clock.read()
	at := int64(0)
	if q := s.queues[h]; q != nil {
		at = k.behind(s, h, q.units, n, now)
	} else {
		at, ok = k.take(s, h, n, now)
	}
	s.mu.Unlock()
	if ok {
		return true, 0
	}
	return false, k.clock.until(now, at)
}

// find returns the hash of the key, which is not 0, and its shard.
func (k *Keyed) find(key string) (uint64, *shard) {
	h := max(maphash.String(k.seed, key), 1)
	return h, &k.shards[h&uint64(len(k.shards)-1)]
}

// impossible is why n units are never admitted, or nil.
func (k *Keyed) impossible(n int64) error {
	switch {
	case k.limit.N == 0:
		return &Refusal{Reason: ErrNever, N: n}
	case n > k.limit.Burst:
		return &Refusal{Reason: ErrTooLarge, N: n, Capacity: k.limit.Burst}
	}
	return nil
}

// take charges n units to the key of hash h, or says at which tick that could
// be. The caller holds the lock of s.
func (k *Keyed) take(s *shard, h uint64, n int64, now instant) (at int64, ok bool) {
	e, idle := s.lookup(h, now)
	if e != nil {
		e.due, at, ok = k.charge(e.due, n, now)
		return at, ok
	}
	// What the key may have had of the shared bucket counts.
	shared := k.overflow.Load()
	due, at, ok := k.charge(shared, n, now)
	if !ok {
		k.overflow.CompareAndSwap(shared, due)
		return at, false
	}
	if idle != nil {
		*idle = entry{h, due}
		return 0, true
	}
	if k.reserve(s, now) {
		k.keys.Add(-int64(s.insert(entry{h, due}, now)))
		return 0, true
	}
	k.overflowed.Add(1)
	for !k.overflow.CompareAndSwap(shared, due) {
		shared = k.overflow.Load()
		due, at, ok = k.charge(shared, n, now)
	}
	return at, ok
}

// charge books n units in a bucket that is full again at the tick due. It is
// the generic cell rate algorithm (ITU-T I.371), in ticks of which a unit takes
// a whole number, so that nothing is ever rounded but the clock.
func (k *Keyed) charge(due, n int64, now instant) (next, at int64, ok bool) {
	cost := n * k.unit
	switch {
	case due <= now.floor:
		return now.ceil + cost, 0, true
	case due > now.ceil+k.full:
		// The clock has gone back (from one synctest bubble to another): what
		// is in force counts from now.
		due = now.ceil + k.full
	}
	if at = due - k.full + cost; at > now.floor {
		return due, at, false
	}
	return due + cost, 0, true
}

// reserve counts one key more, if there may be one. The caller holds the lock
// of s.
func (k *Keyed) reserve(s *shard, now instant) bool {
	if k.keys.Add(1) <= k.most {
		return true
	}
	k.keys.Add(-1)
	// One part after the other is looked through, a piece at a time. Whoever
	// has the lock of another one does not wait for it.
	other := &k.shards[k.hand.Add(1)%uint32(len(k.shards))]
	if other != s {
		if !other.mu.TryLock() {
			return false
		}
		defer other.mu.Unlock()
	}
	k.keys.Add(-int64(other.sweep(now)))
	if k.keys.Add(1) <= k.most {
		return true
	}
	k.keys.Add(-1)
	return false
}

// Wait takes n units of the key, waiting in the key's line until they may start
// or ctx is done. Lines are first in, first out; between keys that share the
// overflow there is no order. A key that somebody waits for costs a line and a
// timer meanwhile, a caller that waits two allocations.
//
// A *[Refusal] comes at once: [ErrTooLarge] if n is more than the burst,
// [ErrNever] if the limit is 0, [ErrDeadline] if the wait would pass the
// deadline of ctx. [ErrInvalid] is the error if n is below 1, and ctx.Err() if
// ctx is done, also if that happens together with the grant. On an error
// nothing is charged, save in that last case: there the units are lost.
func (k *Keyed) Wait(ctx context.Context, key string, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n <= 0 {
		return invalid(n)
	}
	if err := k.impossible(n); err != nil {
		return err
	}
	h, s := k.find(key)
	s.mu.Lock()
	now := k.clock.read()
	if s.queues[h] == nil {
		if _, ok := k.take(s, h, n, now); ok {
			s.mu.Unlock()
			return nil
		}
	}
	return k.wait(ctx, s, h, n, now)
}

// KeyedStats are figures of one instant, save Overflowed.
type KeyedStats struct {
	Limit      Bucket
	Keys       int   // that have a place, those not yet forgotten included
	Waiting    int   // callers in line
	Overflowed int64 // attempts at the shared bucket since NewKeyed
}

// Stats returns the present figures. It takes the lock of every part in turn.
func (k *Keyed) Stats() KeyedStats {
	st := KeyedStats{Limit: k.limit, Keys: int(k.keys.Load()), Overflowed: k.overflowed.Load()}
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for _, q := range s.queues {
			st.Waiting += q.n
		}
		s.mu.Unlock()
	}
	return st
}
