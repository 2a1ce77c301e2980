package results

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

var update = flag.Bool("update", false, "write the golden files")

// sample is a run at 50/s over two providers, with some failures.
func sample() string {
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	var out []byte
	for i := range 3000 {
		at := start.Add(time.Duration(i) * 20 * time.Millisecond)
		took := time.Duration(60+r.ExpFloat64()*80) * time.Millisecond
		rec := record.Record{
			ID: fmt.Sprintf("addr-%d", i), OK: true, Line: int64(i + 1), Status: 200, Provider: "geo-a", URL: fmt.Sprintf("https://geo-a.example/v1?q=%d", i),
			Body: []byte(`{"lat":1}`), Bound: "limit:50/s", Latency: took, Attempts: 1, At: at, End: at.Add(took), Run: "r1",
			Waits: record.Waits{Queue: 21 * time.Millisecond, Limiter: 20 * time.Millisecond, Semaphore: time.Millisecond},
		}
		rec.Key = record.SumID(rec.ID)
		if i%7 == 0 {
			rec.Provider, rec.URL = "geo-osm 日本", "https://osm.example:8443/x"
		}
		switch {
		case i%500 == 3:
			rec.OK, rec.Status, rec.Error = false, 500, &record.Error{Kind: record.HTTP5xx}
		case i%700 == 5:
			rec.OK, rec.Status, rec.Error = false, 0, &record.Error{Kind: record.Timeout}
		case i%400 == 9:
			rec.Attempts = 2
			rec.Tries = []record.Try{{N: 1, Provider: rec.Provider, At: at, Status: 429}}
			rec.Waits.Backoff = 2 * time.Second
		}
		if i >= 1500 {
			rec.Run = "r2"
		}
		rec.Tries = append(rec.Tries, record.Try{N: rec.Attempts, Provider: rec.Provider, At: at, Status: rec.Status})
		out = record.AppendJSON(out, &rec)
	}
	return string(out)
}

func TestStatsDrawing(t *testing.T) {
	home, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("out.jsonl", []byte(sample()), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		by    Group
		width int
		ascii bool
	}{{"80", ByProvider, 80, false}, {"60", ByHost, 60, false}, {"40-ascii", ByStatus, 40, true}} {
		s, err := Collect(&Input{Paths: []string{"out.jsonl"}, Notices: os.Stderr}, tt.by)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := s.WriteText(&out, tt.width, tt.ascii); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join(home, "stats-"+tt.name+".txt"), out.Bytes())
		for l := range strings.Lines(out.String()) {
			if w := runewidth.StringWidth(strings.TrimSuffix(l, "\n")); w > tt.width {
				t.Errorf("%s: %d columns: %s", tt.name, w, l)
			}
			if tt.ascii && strings.ContainsFunc(l, func(r rune) bool { return r > 126 }) {
				t.Errorf("not ASCII: %s", l)
			}
		}
		out.Reset()
		if err := s.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join(home, "stats-"+tt.name+".json"), out.Bytes())
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %v\n%s\nwant\n%s", path, err, got, want)
	}
}

func collect(t testing.TB, by Group, in string) *Stats {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(in), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Collect(&Input{Paths: []string{path}, Notices: os.Stderr}, by)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatsOfLittle(t *testing.T) {
	for name, in := range map[string]string{"nothing": "", "only an id": `{"id":1}`, "nulls": `{"id":1,"tries":null,"waits_ms":null,"status":null,"at":null,"end":null,"error":null,"latency_ms":null,"attempts":null,"url":null,"provider":null}`} {
		s := collect(t, ByHost, in)
		var text, js bytes.Buffer
		if err := s.WriteText(&text, 80, false); err != nil {
			t.Error(err)
		}
		if err := s.WriteJSON(&js); err != nil || !json.Valid(js.Bytes()) {
			t.Errorf("%s: %v, %s", name, err, js.Bytes())
		}
		if !strings.Contains(text.String(), "attempts   0 · retries 0 · 429 0") || strings.Contains(text.String(), "NaN") || strings.Contains(js.String(), "9223372036854775807") {
			t.Errorf("%s:\n%s%s", name, text.String(), js.String())
		}
	}
}

// What a hostile provider puts into names reaches the terminal without control
// bytes, and cannot make the memory grow.
func TestStatsHostile(t *testing.T) {
	var in strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&in, `{"id":"\u001b[2J%d","ok":false,"provider":"p%d\u001b]0;x\u0007","bound":"limit:%d","waits_ms":{"limiter":1},"error":{"kind":"\u001b[31mk%d"},"tries":[{"n":1,"provider":"q%d"}]}`+"\n", i, i, i, i, i)
	}
	s := collect(t, ByProvider, in.String())
	if len(s.Groups) > maxGroups || len(s.Total.Kinds) > maxKinds+1 || len(s.Total.Waits) > maxBounds+1 {
		t.Errorf("%d groups, %d kinds, %d bounds", len(s.Groups), len(s.Total.Kinds), len(s.Total.Waits))
	}
	var out bytes.Buffer
	s.WriteText(&out, 80, false)
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("%q", out.String())
	}
	var n int64
	for _, g := range s.Groups {
		n += g.Records
	}
	if n != 2000 || s.Total.Kinds[other].Count != 2000-maxKinds {
		t.Errorf("%d records in groups, %d other kinds", n, s.Total.Kinds[other].Count)
	}
}

// An attempt counts for the provider that it was sent to.
func TestStatsFallback(t *testing.T) {
	s := collect(t, ByProvider, `{"id":1,"ok":true,"provider":"b","attempts":2,"tries":[{"n":1,"provider":"a","status":429},{"n":2,"provider":"b","status":200}]}`)
	a, b := s.groups["a"], s.groups["b"]
	if a.Attempts != 1 || a.Throttled != 1 || a.Records != 0 || b.Attempts != 1 || b.Records != 1 || s.Total.Attempts != 2 || s.Total.Retries != 1 {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestStatsErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":1,"latency_ms":"fast"}`:     `0:1: field "latency_ms": not a number`,
		`{"id":1,"tries":[{"at":"noon"}]}`: `0:1: field "tries": not a time`,
		`{"id":1,"attempts":1.5}`:          `0:1: field "attempts": not an integer`,
		`{"id":1,"latency_ms":1e300}`:      `0:1: field "latency_ms": longer than`,
	} {
		path := filepath.Join(t.TempDir(), "0")
		if err := os.WriteFile(path, []byte(in), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Collect(&Input{Paths: []string{path}, Notices: os.Stderr}, NoGroup); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := Collect(&Input{Notices: os.Stderr}, "day"); err == nil || err.Error() != `--by "day": want provider, status or host` {
		t.Error(err)
	}
}

// The most starts in any window, against counting from every start.
func TestStartsAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(-5000, 5000), 0, 200).Draw(t, "times")
		if rapid.Bool().Draw(t, "dense") {
			for i := range 2500 {
				times = append(times, int64(i*i%1700))
			}
		}
		var s starts
		for _, at := range times {
			s.add(at)
		}
		var before [10002]int64 // how many started before that, counted from -5000
		for _, at := range times {
			before[at+5001]++
		}
		for i := range before[1:] {
			before[i+1] += before[i]
		}
		windows := []time.Duration{time.Millisecond, 700 * time.Millisecond, time.Second, 3 * time.Second}
		for i, got := range s.most(windows...) {
			var want int64
			w := windows[i].Milliseconds()
			for from := range int64(10001) {
				want = max(want, before[min(from+w, 10001)]-before[from])
			}
			if got != want {
				t.Fatalf("%v: %d, want %d", windows[i], got, want)
			}
		}
	})
}

// Every latency lies in a bucket, the bounds grow, and there are few.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l latencies
		ds := rapid.SliceOfN(rapid.Int64Range(0, rapid.SampledFrom([]int64{10, 5000, 1e6, 1e12}).Draw(t, "up to")), 1, 50).Draw(t, "µs")
		for _, d := range ds {
			l.add(time.Duration(d) * time.Microsecond)
		}
		bs := l.buckets()
		var sum int64
		for i, b := range bs {
			if sum += b.Count; i > 0 && b.AtMost <= bs[i-1].AtMost {
				t.Fatalf("bounds: %+v", bs)
			}
		}
		if sum != int64(len(ds)) || len(bs) > maxBars || bs[0].Count == 0 || bs[len(bs)-1].Count == 0 {
			t.Fatalf("%d of %d in %d buckets: %+v", sum, len(ds), len(bs), bs)
		}
	})
}
