package rate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is added, charged, swept and made anew, in tables full of
// collisions: what is in force is found, and nothing else is.
func TestShardAgainstAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s shard
		oracle := map[uint64]int64{}
		now := instant{}
		// Few homes, so that the places behind them overlap and wrap around.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 3).Draw(t, "home")<<62 | rapid.Uint64Range(1, 12).Draw(t, "low")
		})
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			h := hash.Draw(rt, "hash")
			due := now.floor + rapid.Int64Range(0, 9).Draw(rt, "due")
			switch rapid.SampledFrom([]string{"add", "add", "add", "time", "sweep"}).Draw(rt, "kind") {
			case "time":
				now.floor += rapid.Int64Range(0, 4).Draw(rt, "by")
			case "sweep":
				before := s.used
				if n := s.sweep(now); before-n != s.used {
					rt.Fatalf("%d forgotten of %d leave %d", n, before, s.used)
				}
			case "add":
				switch e, idle := s.lookup(h, now); {
				case e != nil:
					e.due = due
				case idle != nil:
					*idle = entry{h, due}
				default:
					before := s.used
					if n := s.insert(entry{h, due}, now); before+1-n != s.used {
						rt.Fatalf("%d forgotten of %d leave %d", n, before, s.used)
					}
				}
				oracle[h] = due
			}
			count := 0
			for _, e := range s.table {
				if e.hash != 0 {
					count++
				}
			}
			if count != s.used || 4*s.used > 3*len(s.table) {
				rt.Fatalf("%d of %d places are taken, said to be %d", count, len(s.table), s.used)
			}
			for h, due := range oracle {
				e, _ := s.lookup(h, now)
				if e == nil && due > now.floor || e != nil && e.due != due {
					rt.Fatalf("%x is due at %d, now %d: %v", h, due, now.floor, e)
				}
			}
		}
	})
}

// Once nothing is in force, looking for room empties every part in the end, and
// nothing is left of those who waited.
func TestKeyedForgetsEverything(t *testing.T) {
	k, err := NewKeyed(Bucket{N: 1, Per: time.Second}, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		k.Allow(string(rune('a'+i)), 1)
	}
	k.clock.base = k.clock.base.Add(-time.Hour)
	for range 10_000 {
		k.hand.Add(1)
		s := &k.shards[k.hand.Load()%uint32(len(k.shards))]
		k.keys.Add(-int64(s.sweep(k.clock.read())))
	}
	if st := k.Stats(); st.Keys != 0 || len(k.shards) != 256 {
		t.Fatalf("%+v", st)
	}
	k.Allow("a", 1)
	k.clock.base = k.clock.base.Add(time.Millisecond - time.Second)
	if err := k.Wait(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	for i := range k.shards {
		if len(k.shards[i].queues) > 0 {
			t.Fatal("a line is left")
		}
	}
}
