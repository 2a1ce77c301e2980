package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func runPlan(args ...string) (string, error) {
	cmd := newPlanCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestPlanText(t *testing.T) {
	got, err := runPlan("--rate", "500/m", "--latency", "2.5s", "--pool", "32", "--requests", "1000000")
	want := `permits     32   (mete run -c 32)
decided by  pool
because     500/m x 2.5s = 20.833 in flight (Little), x 2 headroom = 42; pool 32; the least is 32 (pool)
finishes    1000000 requests in 33h20m
warning     the rate asks for 42 permits, the pool has 32 connections: raise the pool to 42, or it is a second limit that nobody sees
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestPlanJSON(t *testing.T) {
	for args, want := range map[string]string{
		"--rate 50/s --latency 200ms": `{"permits":20,"by":{"rate":20,"pool":null,"memory":null,"cpu":null},"decided_by":"rate",
			"duration_s":null,"comment":"50/s x 200ms = 10 in flight (Little), x 2 headroom = 20","warnings":[]}`,
		"--rate 50/s --latency 200ms --pool 20 --memory 512MiB --response-size 8MiB --cpu 8 --requests 40001 --headroom 1.5": `{"permits":8,
			"by":{"rate":15,"pool":20,"memory":64,"cpu":8},"decided_by":"cpu","duration_s":1000.2,
			"comment":"50/s x 200ms = 10 in flight (Little), x 1.5 headroom = 15; pool 20; memory 512MiB / 8MiB = 64; cpu 8; the least is 8 (cpu)",
			"warnings":["8 permits (cpu) carry 40/s of the 50/s allowed: 10 are needed for all of it"]}`,
		"--rate 50/s --latency 200ms --requests 4": `{"permits":20,"by":{"rate":20,"pool":null,"memory":null,"cpu":null},"decided_by":"rate",
			"duration_s":0.26,"comment":"50/s x 200ms = 10 in flight (Little), x 2 headroom = 20","warnings":["fewer than 5 calls: no limiter is needed"]}`,
	} {
		got, err := runPlan(append(strings.Fields(args), "--json")...)
		var g, w any
		if err != nil || json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil || !reflect.DeepEqual(g, w) {
			t.Errorf("%s: %v\n%s", args, err, got)
		}
		if strings.Count(got, "\n") != 1 {
			t.Errorf("not one line: %q", got)
		}
	}
}

// Bad input is one line that says what to write; nothing is printed by itself.
func TestPlanErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                                        "give the rate and the latency",
		"--rate 50/s":                             "needs the latency",
		"--rate 50":                               "50/s",
		"--rate 0/s --latency 1s":                 "never starts",
		"--rate x/s --latency 1s":                 "not a number",
		"--rate 50/s --latency 0s":                "above 0",
		"--rate 50/s --latency -1s":               "above 0",
		"--rate 50/s --latency 200":               "200ms or 2.5s",
		"--rate 50/s --latency 1s --pool 0":       "above 0",
		"--rate 50/s --latency 1s --pool x":       "like 20",
		"--rate 50/s --latency 1s --headroom 0.5": "at least 1",
		"--rate 50/s --latency 1s --headroom NaN": "like 2",
		"--rate 50/s --latency 1s --memory 5":     "response size",
		"--rate 50/s --latency 1s --memory 5XB":   "like 512MiB",
		"--rate 50/s --latency 1s --memory 1MiB --response-size 10MiB": "does not fit",
		"--rate 50/s --latency 1s --requests -5":                       "above 0",
		"--rate 50/s --latency 1s extra":                               "--latency or result files, not both",
		"--rate 50/s does-not-exist.jsonl":                             "does-not-exist.jsonl",
		"--rate 50/s testdata/plan/unanswered.jsonl":                   "no call in testdata/plan/unanswered.jsonl was answered",
	} {
		out, err := runPlan(strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%q: %v, printed %q", args, err, out)
		}
	}
}

func TestPlanHelp(t *testing.T) {
	out, err := runPlan("--help")
	if err != nil || strings.Count(out, "  mete plan --rate") < 3 || !strings.Contains(out, "(default 2)") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"1048576": 1 << 20, "512MiB": 512 << 20, "8mib": 8 << 20, "1.5GiB": 3 << 29, "64K": 64 << 10, "2GB": 2e9, "10 kB": 10_000, "7b": 7,
	} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "MiB", "-1", "1XiB", "1MiBs", "1.2.3", "1e9", "9999999PiB"} {
		if n, err := parseSize(s); err == nil {
			t.Errorf("%q: %d", s, n)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"512MiB", "1.5GB", "", "9999999PiB", "7b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSize(s); err == nil && n < 0 {
			t.Fatalf("%q: %d", s, n)
		}
	})
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Microsecond: "1.5ms", 90 * time.Second: "1m30s", 12345 * time.Millisecond: "12.35s",
		33*time.Hour + 20*time.Minute: "33h20m", 100 * time.Hour: "4d4h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// The latency is the median of real calls, which a few slow ones do not move;
// but they are mentioned, for Little's law is about the mean.
func TestPlanFromResults(t *testing.T) {
	got, err := runPlan("testdata/plan/measured.jsonl", "--rate", "50/s")
	want := `measured    p50 200.703ms, mean 1s, p95 4.2s of 5 calls
permits     21   (mete run -c 21)
decided by  rate
because     50/s x 201ms = 10.05 in flight (Little), x 2 headroom = 21
warning     slow calls take far longer than the median: the mean is 1s; a higher --headroom carries them
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
