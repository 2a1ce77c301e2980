package input

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	a := write(t, "a.jsonl", `{"id":"a17","url":"http://h/1","cost":3}
{"url":"http://h/2","cost":{"tokens":10,"points":1}}
{"url":"ftp://h"}

{"id":"a17","url":"http://h/3","cost":{"tokens":1000}}
`)
	b := write(t, "b.urls", "# list\nhttp://h/4\nhttp://h/4\n")
	got, err := Scan(t.Context(), []string{a, b}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != 4 || got.ErrorCount != 2 || got.Costed != 2 || got.Bytes != int64(41+53+18+1+55+29) {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(got.Costs, map[string]int64{"": 3, "tokens": 10, "points": 1}) {
		t.Errorf("costs %v", got.Costs)
	}
	if want := "2 bad rows, the first: " + a + ":3:9: "; got.Err() == nil || !strings.HasPrefix(got.Err().Error(), want) {
		t.Errorf("%v", got.Err())
	}
	if want := a + ":5: id 'a17' on lines 1 and 5"; len(got.Errors) != 2 || got.Errors[1].Error() != want {
		t.Errorf("%v", got.Errors)
	}
	if got, err := Scan(t.Context(), []string{a}, Options{OnDuplicate: "skip"}); err != nil || got.Skipped != 1 || got.ErrorCount != 1 || got.Err().Error() != got.Errors[0].Error() {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := Scan(t.Context(), []string{b}, Options{}); err != nil || got.Err() != nil || got.Rows != 2 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestScanKeepsFirstErrors(t *testing.T) {
	path := write(t, "bad.urls", strings.Repeat("ftp://h\n", 1000))
	got, err := Scan(t.Context(), []string{path}, Options{})
	if err != nil || got.ErrorCount != 1000 || len(got.Errors) != MaxErrors || got.Errors[19].Line != 20 {
		t.Errorf("%d errors, %d kept, %v", got.ErrorCount, len(got.Errors), err)
	}
}

func TestScanRefuses(t *testing.T) {
	for _, paths := range [][]string{nil, {"-"}, {mkfifo(t)}, {t.TempDir()}} {
		if _, err := Scan(t.Context(), paths, Options{}); err == nil {
			t.Errorf("%v is scanned", paths)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := Scan(ctx, []string{write(t, "a", "http://h")}, Options{}); !errors.Is(err, why) {
		t.Errorf("a canceled scan: %v", err)
	}
	if _, err := Scan(t.Context(), []string{write(t, "a.gz", "\x1f\x8b\x08\x00")}, Options{}); err == nil {
		t.Error("gzip is scanned")
	}
}

func TestCostsDoNotOverflow(t *testing.T) {
	var s Summary
	for range 3 {
		s.add(map[string]int64{"x": math.MaxInt64 - 1})
	}
	if s.Costs["x"] != math.MaxInt64 {
		t.Error(s.Costs)
	}
}

// The table of identities stays below 40 bytes per row at any size.
func TestTableMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const rows = 1_000_000
	before := heap()
	var d table
	worst := 0.0
	for i := range uint64(rows) {
		// Keys as of ids: 48 bits, well mixed.
		if n := d.add((i * 0xD6E8FEB86659FD93) >> 16); n != 1 {
			t.Fatalf("key %d is there %d times", i, n)
		}
		if i > 0 && i%100_000 == 0 {
			worst = max(worst, float64(heap()-before)/float64(i))
		}
	}
	worst = max(worst, float64(heap()-before)/rows)
	for i := range uint64(rows) {
		if n := d.add((i * 0xD6E8FEB86659FD93) >> 16); n != 2 {
			t.Fatalf("key %d is there %d times", i, n)
		}
	}
	t.Logf("at most %.1f bytes per row", worst)
	if worst > 40 {
		t.Errorf("%.1f bytes per row", worst)
	}
}

func TestTableAgainstMap(t *testing.T) {
	var d table
	slow := map[uint64]uint32{}
	x := uint64(1)
	for range 200_000 {
		x = x*6364136223846793005 + 1442695040888963407
		key := (x >> 40) << (x & 40) // many repeats, and keys that differ in their top bits only
		slow[key]++
		if got := d.add(key); got != slow[key] {
			t.Fatalf("key %x: %d, want %d", key, got, slow[key])
		}
	}
}
