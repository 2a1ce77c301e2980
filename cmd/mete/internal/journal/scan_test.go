package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func testLine(id string) []byte {
	return record.AppendJSON(nil, &record.Record{ID: id, Key: record.SumID(id), Hash: 256, OK: true, Body: bytes.Repeat([]byte("x"), 640), Run: "r"})
}

// Whatever a file ends with, mending it once is enough, takes no whole line
// away, and leaves nothing that a later append could be glued to.
func FuzzTail(f *testing.F) {
	a, b := testLine("a"), testLine("b")
	f.Add([]byte{})
	f.Add([]byte("\n"))
	f.Add(append(bytes.Clone(a), b[:len(b)-1]...))
	f.Add(append(bytes.Clone(a), b[:50]...))
	f.Add([]byte("{\"id\":1}\n\n\r\n{\"id\":2,\"sta"))
	f.Add([]byte("{\"id\":1}\n\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tl, err := findTail(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if tl.end+tl.dropped != int64(len(data)) || tl.newline && tl.dropped > 0 {
			t.Fatalf("%+v of %d bytes", tl, len(data))
		}
		if bytes.IndexByte(data[tl.end:], '\n') >= 0 && bytes.IndexByte(data[tl.end:], '\n') != len(data)-1-int(tl.end) {
			t.Fatalf("drops more than the last line: %+v", tl)
		}
		mended := bytes.Clone(data[:tl.end])
		if tl.newline {
			mended = append(mended, '\n')
		}
		if len(mended) > 0 && mended[len(mended)-1] != '\n' {
			t.Fatalf("ends with %q", mended)
		}
		var x index
		n, err := scan(bytes.NewReader(mended), "f", &x)
		if err != nil {
			return // a bad line further up: the file is left alone
		}
		var y index
		grown := append(mended, a...)
		again, err := findTail(bytes.NewReader(grown), int64(len(grown)))
		if err != nil || again.dropped > 0 || again.newline {
			t.Fatalf("%+v after an append, %v", again, err)
		}
		if m, err := scan(bytes.NewReader(grown), "f", &y); err != nil || m != n+1 {
			t.Fatalf("%d records, then %d, %v", n, m, err)
		}
	})
}

// The last line is found wherever it starts, seen from the blocks that are read.
func TestLastLine(t *testing.T) {
	for _, last := range []int{0, 1, 2, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200 << 10} {
		for _, first := range []int{0, 1, 70 << 10} {
			for _, end := range []string{"", "\n"} {
				data := bytes.Repeat([]byte{'a'}, first)
				data = append(data, '\n')
				want := int64(len(data))
				data = append(data, bytes.Repeat([]byte{'b'}, last)...)
				data = append(data, end...)
				if last == 0 && end == "" {
					want = 0 // the first line is the last
				}
				got, err := lastLine(bytes.NewReader(data), int64(len(data)))
				if err != nil || got != want {
					t.Errorf("%d, %d, %q: %d, want %d, %v", first, last, end, got, want, err)
				}
			}
		}
	}
}

func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type value struct {
			hash   uint64
			status int
			ok     bool
		}
		var x index
		model := map[uint64]value{}
		key := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(1<<63, 1<<63+3), rapid.Uint64())
		for range rapid.IntRange(0, 3000).Draw(t, "n") {
			k := key.Draw(t, "key")
			if k == 0 {
				k = 1 // 0 and 1 share a place
			}
			v := value{rapid.Uint64Range(1, 5).Draw(t, "hash") << lowBits, rapid.IntRange(0, 999).Draw(t, "status"), rapid.Bool().Draw(t, "ok")}
			x.put(&record.Head{Key: k, Hash: v.hash, Status: v.status, OK: v.ok})
			model[k] = v
		}
		for k, v := range model {
			want := Done
			if !v.ok {
				want = Failed
			}
			if x.state(k, v.hash) != want || x.state(k, v.hash+1<<lowBits) != Changed || x.status(k) != v.status {
				t.Fatalf("key %d", k)
			}
		}
		if x.n != len(model) || x.state(key.Draw(t, "other")|1<<40, 1) != Missing && len(model) == 0 {
			t.Fatalf("%d rows, want %d", x.n, len(model))
		}
	})
	var x index
	for i := range uint64(1 << 20) {
		x.put(&record.Head{Key: i * 0x9e3779b97f4a7c15, Hash: 1 << 63, OK: true})
	}
	if perRow := len(x.slots) * 16 / x.n; perRow > 27 {
		t.Errorf("%d bytes a row", perRow)
	}
}

func BenchmarkResume(b *testing.B) {
	path := filepath.Join(b.TempDir(), "out.jsonl")
	var data []byte
	const rows = 100_000
	for i := range rows {
		data = append(data, testLine(fmt.Sprint("row ", i))...)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportMetric(float64(len(data))/rows, "B/row")
	for b.Loop() {
		j, err := Open(path, Options{Resume: true, Fsync: Never})
		if err != nil || j.Resumed().Rows != rows {
			b.Fatal(err)
		}
		j.Close()
	}
}

func BenchmarkDone(b *testing.B) {
	var x index
	for i := range uint64(1 << 20) {
		x.put(&record.Head{Key: i * 0x9e3779b97f4a7c15, Hash: 1 << 63, OK: true})
	}
	i := rand.Uint64()
	for b.Loop() {
		i++
		x.state(i*0x9e3779b97f4a7c15, 1<<63)
	}
}

func BenchmarkAppend(b *testing.B) {
	line := testLine("row")
	for _, p := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(p, " rows in flight"), func(b *testing.B) {
			j, err := Open(filepath.Join(b.TempDir(), "out.jsonl"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			b.SetParallelism((p + 1) / 2) // of 2 processors
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					batch, err := j.Append(line)
					if err == nil {
						err = batch.Wait(b.Context())
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
