package progress

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func finished() *Summary {
	var latency, wait Latency
	for i := range 1000 {
		latency.Record(time.Duration(130+i/10) * time.Millisecond)
		wait.Record(time.Duration(i*i) * 100 * time.Microsecond)
	}
	return &Summary{
		Name: "addresses.csv", End: "finished",
		Rows:     Rows{Total: 1_000_000, Done: 1_000_000, OK: 999_792, Failed: 208, Resumed: 412_310, Cached: 40},
		Statuses: map[int]int64{200: 999_792, 500: 196, 404: 12},
		Duration: 3*time.Hour + 16*time.Minute + 2*time.Second,
		Providers: []Provider{{
			Name: "geo-a", Starts: 587_721, OK: 587_482, Failed: 208, Throttled: 12, Retries: 31,
			Limit: "50/s", LimitPerSecond: 50, Sending: 11759108 * time.Millisecond, Concurrency: 20, Latency: latency.Quantiles(),
		}},
		Waits:   []Wait{{"semaphore", 90 * time.Minute}, {"limit:50/s", 97 * time.Hour}, {"conn", 3 * time.Second}},
		Latency: latency.Quantiles(), Wait: wait.Quantiles(), WaitBuckets: wait.Buckets(),
		WaitsApart: []WaitHistogram{{"limit", wait.Quantiles(), wait.Buckets()}, {"pause", Quantiles{}, nil}},
		Errors:     []ErrorCount{{"http_4xx", 12, "addr-40231"}, {"http_5xx", 196, "addr-17"}},
		Diagnosis:  "50/s set the pace, as it should: more permits change nothing.",
		Output:     "out.jsonl",
	}
}

func interrupted() *Summary {
	s := finished()
	s.End, s.Rows.Done, s.Rows.OK = "interrupted", 500_000, 499_792
	s.Providers = append(s.Providers, Provider{
		Name: "geo-osm", Starts: 601, OK: 601, Limit: "60/m", LimitPerSecond: 1, Sending: 600 * time.Second, Concurrency: 1,
	}, Provider{Name: "idle"})
	s.Errors = append(s.Errors, ErrorCount{"timeout", 3, "a"}, ErrorCount{"reset", 2, "b"}, ErrorCount{"dns", 2, ""}, ErrorCount{"tls", 1, "d"})
	s.Resume = "mete run addresses.csv --url 'https://geo-a.example/v1?q={{.address}}' -o out.jsonl --resume"
	return s
}

func TestSummaryText(t *testing.T) {
	for _, c := range []struct {
		file  string
		s     *Summary
		width int
	}{
		{"finished-80.txt", finished(), 80},
		{"interrupted-80.txt", interrupted(), 80},
		{"interrupted-60.txt", interrupted(), 60},
		{"nothing.txt", &Summary{Name: "empty.csv", End: "finished"}, 80},
	} {
		t.Run(c.file, func(t *testing.T) {
			var b bytes.Buffer
			if err := c.s.WriteText(&b, c.width); err != nil {
				t.Fatal(err)
			}
			golden(t, c.file, b.Bytes())
		})
	}
}

func TestSummaryJSON(t *testing.T) {
	var b bytes.Buffer
	if err := interrupted().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Error("more than one line")
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, b.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "interrupted.json", pretty.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it); got\n%s", file, got)
	}
}

func TestSummaryTextFitsItsWidth(t *testing.T) {
	for width := 45; width <= 120; width++ {
		var b bytes.Buffer
		if err := interrupted().WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if runewidth.StringWidth(line) > width && !strings.HasPrefix(line, "  resume") {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
}

// Whatever is in a summary, it is valid JSON and free of control characters.
func TestSummaryOfNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 30, -1)
		d := func(name string) time.Duration { return time.Duration(rapid.Int64().Draw(t, name)) }
		s := Summary{
			Name: text.Draw(t, "name"), End: text.Draw(t, "end"),
			Rows:     Rows{Total: rapid.Int64().Draw(t, "total"), Done: rapid.Int64().Draw(t, "done")},
			Statuses: map[int]int64{rapid.Int().Draw(t, "code"): rapid.Int64().Draw(t, "n")},
			Duration: d("duration"),
			Providers: []Provider{{
				Name: text.Draw(t, "provider"), Starts: rapid.Int64().Draw(t, "starts"), Limit: text.Draw(t, "limit"),
				LimitPerSecond: rapid.SampledFrom([]float64{0, 50, -1, math.NaN(), math.Inf(1)}).Draw(t, "rate"), Sending: d("sending"),
				Concurrency: rapid.Int().Draw(t, "permits"),
			}},
			Waits:   []Wait{{text.Draw(t, "bound"), d("wait")}, {"semaphore", d("wait")}},
			Latency: Quantiles{Count: 1, Mean: d("mean"), P50: d("p50"), Max: d("max")},
			Errors:  []ErrorCount{{text.Draw(t, "kind"), rapid.Int64().Draw(t, "errors"), text.Draw(t, "example")}},
			Output:  text.Draw(t, "output"), Resume: text.Draw(t, "resume"),
		}
		if rapid.Bool().Draw(t, "two") {
			s.Providers = append(s.Providers, s.Providers[0])
		}
		var b bytes.Buffer
		if err := s.WriteText(&b, rapid.IntRange(-1, 120).Draw(t, "width")); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"\x1b", "\r", "NaN", "Inf"} {
			if strings.Contains(b.String(), bad) && !strings.Contains(s.Name+s.End+s.Providers[0].Name+s.Providers[0].Limit, bad) {
				t.Fatalf("%q in %q", bad, b.String())
			}
		}
		b.Reset()
		if err := s.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
			t.Fatalf("%v: %s", err, b.String())
		}
	})
}

// n starts have n-1 gaps: 101 starts in two seconds are 50 per second.
func TestAchievedCountsGaps(t *testing.T) {
	p := Provider{Starts: 101, Sending: 2 * time.Second, Limit: "50/s", LimitPerSecond: 50}
	if got := achieved(p); got != "50.00/s of 50/s = 100.00 %" {
		t.Error(got)
	}
	for _, p := range []Provider{{}, {Starts: 1, Sending: time.Second}, {Starts: 5}} {
		if p.Achieved() != 0 {
			t.Errorf("%+v: %v", p, p.Achieved())
		}
	}
}
