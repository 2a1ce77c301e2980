package input

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

func TestScanTable(t *testing.T) {
	path := write(t, "places.csv", "id,name\na,Oslo\nb,\"Bergen\"\nc,Oslo\nd\na,Bodø\ne,Narvik\nf,Oslo\n")
	o := Options{Template: &template.Spec{URL: "http://h/{{.name}}"}}
	sum, err := Scan(t.Context(), []string{path}, o)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Rows != 5 || sum.ErrorCount != 2 || sum.DuplicateRequests != 2 || !reflect.DeepEqual(sum.Columns, []string{"id", "name"}) {
		t.Errorf("%+v", sum)
	}
	if len(sum.First) != MaxFirst || sum.First[0].ID != "a" || sum.First[1].Target != "/Bergen" || sum.First[2].Line != 4 {
		t.Errorf("%+v", sum.First)
	}
	if sum.Errors[0].Error() != path+`:5:1: 1 field where the header has 2: "name" is missing` || sum.Errors[1].Error() != path+":6: id 'a' on lines 2 and 6" {
		t.Error(sum.Errors)
	}
	// Each file has its own header, and rows without ids count as well.
	a, b := write(t, "a.csv", "name,x\nOslo,1\n"), write(t, "b.tsv", "y\tz\tname\n1\t2\tOslo\n1\t2\tBodø\n")
	sum, err = Scan(t.Context(), []string{a, b}, o)
	if err != nil || sum.Rows != 3 || sum.DuplicateRequests != 1 || !reflect.DeepEqual(sum.Columns, []string{"name", "x"}) {
		t.Errorf("%+v %v", sum, err)
	}
	c := write(t, "c.csv", "nmae\n1\n")
	if _, err := Scan(t.Context(), []string{a, c}, o); err == nil || err.Error() != `--url:1:12: unknown column "name" (did you mean "nmae"?): the only one is nmae` {
		t.Error(err)
	}
	if sum, err := Scan(t.Context(), []string{write(t, "d.csv", "name\n")}, o); err != nil || sum.Rows != 0 || len(sum.Columns) != 1 {
		t.Errorf("%+v %v", sum, err)
	}
}

func TestRequestsAgainstMap(t *testing.T) {
	var set requests
	slow := map[[16]byte]bool{}
	for i := range 300_000 {
		var hash [16]byte
		if i%1000 == 0 {
			binary.BigEndian.PutUint64(hash[:], uint64(i%7)<<40) // the hash that looks like an empty slot
		} else {
			sum := sha256.Sum256([]byte(fmt.Sprint(i % 200_003)))
			copy(hash[:], sum[:])
		}
		if got := set.add(hash); got != slow[hash] {
			t.Fatalf("%d, %x: %v, want %v", i, hash, got, slow[hash])
		}
		slow[hash] = true
	}
}

func TestRequestsMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const rows = 1_000_000
	before := heap()
	var set requests
	for i := range uint64(rows) {
		var hash [16]byte
		binary.BigEndian.PutUint64(hash[:], (i+1)*0x9E3779B97F4A7C15)
		set.add(hash)
	}
	per := float64(heap()-before) / rows
	runtime.KeepAlive(set)
	t.Logf("%.1f bytes per row", per)
	if per > 14 {
		t.Errorf("%.1f bytes per row", per)
	}
}

// A long table is read in the memory of a short one.
func TestLongTable(t *testing.T) {
	const rows = 300_000
	in := &repeat{text: strings.Repeat("Saint-Louis,\"Ha! Ha!\"\n", 1000), left: rows / 1000}
	o := tableOptions("csv", "c1")
	o.NoHeader = true
	s, err := Open(nil, in, o)
	if err != nil {
		t.Fatal(err)
	}
	var first, last runtime.MemStats
	for i := range rows {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&first)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&last)
	if grown := int64(last.HeapAlloc) - int64(first.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more after %d rows", grown, rows)
	}
	runtime.KeepAlive(s)
}
