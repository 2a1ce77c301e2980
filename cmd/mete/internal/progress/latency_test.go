package progress

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Waits of minutes are normal under a quota; each must have a bucket of its
// own and none may land beyond the last bound.
// cortexproject/cortex#5029, kubernetes-sigs/kueue#1622,
// concourse/concourse#6505, elastic/elasticsearch#137596,
// kubernetes-sigs/kueue#9493
func TestWaitBucketsReachAnHour(t *testing.T) {
	var l Latency
	waits := []time.Duration{12 * time.Second, 90 * time.Second, 20 * time.Minute}
	for _, w := range waits {
		l.Record(w)
	}
	bs := l.Buckets()
	if last := bs[len(bs)-1]; last.AtMost != 0 || last.Count != 0 {
		t.Errorf("beyond the last bound: %+v", last)
	}
	if b := bs[len(bs)-2]; b.AtMost != time.Hour {
		t.Errorf("last bound %v", b.AtMost)
	}
	var hit []time.Duration
	for _, b := range bs {
		if b.Count > 0 {
			hit = append(hit, b.AtMost)
		}
	}
	if want := []time.Duration{30 * time.Second, 2 * time.Minute, 30 * time.Minute}; !slices.Equal(hit, want) {
		t.Errorf("buckets %v, want %v", hit, want)
	}
	l.Record(2 * time.Hour)
	if bs := l.Buckets(); bs[len(bs)-1].Count != 1 {
		t.Error("two hours are not beyond the last bound")
	}
}

func TestLatencyAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-10, int64(30*time.Hour)), 1, 200).Draw(t, "values")
		if rapid.Bool().Draw(t, "short") {
			for i := range values {
				values[i] %= int64(time.Second)
			}
		}
		var l Latency
		for i, v := range values {
			l.Record(time.Duration(v))
			values[i] = max(v, 0)
		}
		slices.Sort(values)
		q := l.Quantiles()
		if q.Count != int64(len(values)) || q.Max != time.Duration(values[len(values)-1]) {
			t.Fatalf("%+v", q)
		}
		for _, c := range []struct {
			part int
			got  time.Duration
		}{{50, q.P50}, {90, q.P90}, {95, q.P95}, {99, q.P99}} {
			rank := max((len(values)*c.part+50)/100, 1)
			want := min(time.Duration(values[rank-1]), longest)
			if diff := (c.got - want).Abs(); diff > want/100+time.Microsecond {
				t.Fatalf("p%d = %v, want %v", c.part, c.got, want)
			}
		}
		total := int64(0)
		for _, b := range l.Buckets() {
			total += b.Count
		}
		if total != q.Count {
			t.Fatalf("%d in buckets, %d recorded", total, q.Count)
		}
	})
}

func TestLatencyOfNothing(t *testing.T) {
	var l Latency
	if q := l.Quantiles(); q != (Quantiles{}) {
		t.Error(q)
	}
	for _, b := range l.Buckets() {
		if b.Count != 0 {
			t.Error(b)
		}
	}
}

func TestLatencyIsSafeForConcurrentUse(t *testing.T) {
	var l Latency
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				l.Record(time.Duration(i) * time.Millisecond)
				if i%100 == 0 {
					l.Quantiles()
					l.Buckets()
				}
			}
		})
	}
	wg.Wait()
	if q := l.Quantiles(); q.Count != 8000 || q.Max != 999*time.Millisecond || q.Mean.Round(time.Microsecond) != 499500*time.Microsecond {
		t.Errorf("%+v", q)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var l Latency
	l.Record(time.Second)
	if n := testing.AllocsPerRun(1000, func() { l.Record(180 * time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var l Latency
	for b.Loop() {
		l.Record(180 * time.Millisecond)
	}
}

func BenchmarkQuantiles(b *testing.B) {
	var l Latency
	for i := range 10_000 {
		l.Record(time.Duration(i) * time.Millisecond)
	}
	for b.Loop() {
		l.Quantiles()
	}
}
