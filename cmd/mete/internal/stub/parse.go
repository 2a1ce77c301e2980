package stub

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var units = [...]struct {
	name string
	d    time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// ParseLimit reads a limit: a whole number, a slash and a period, as in
// "50/s", "500/m", "10000/d", "5/15s" or "10r/s".
func ParseLimit(s string) (Limit, error) {
	num, per, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok {
		return Limit{}, fmt.Errorf("not a limit: %q: say per what: 50/s, 50/m, 50/h, 50/d or 50/15s", s)
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(num), "r"), 10, 53)
	if err != nil {
		return Limit{}, fmt.Errorf("not a limit: %q: %q is not a whole number; half a request per second is 1/2s", s, num)
	}
	per = strings.TrimSpace(per)
	for _, u := range units {
		if per == u.name {
			return Limit{int64(n), u.d}, nil
		}
	}
	d, err := time.ParseDuration(per)
	if days, ok := strings.CutSuffix(per, "d"); ok {
		var k uint64
		k, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(min(k, 366)) * 24 * time.Hour
	}
	if err != nil || d <= 0 || d > 366*24*time.Hour {
		return Limit{}, fmt.Errorf("not a limit: %q: %q is not a period; use s, m, h, d or a time such as 15s", s, per)
	}
	return Limit{int64(n), d}, nil
}

// ParseLatency reads a time or a range of times: "80ms" or "80ms..200ms".
func ParseLatency(s string) (Latency, error) {
	lo, hi, isRange := strings.Cut(strings.TrimSpace(s), "..")
	if !isRange {
		hi = lo
	}
	a, err1 := time.ParseDuration(lo)
	b, err2 := time.ParseDuration(hi)
	if err1 != nil || err2 != nil || a < 0 || b < a {
		return Latency{}, fmt.Errorf("not a latency: %q: write 80ms or 80ms..200ms", s)
	}
	return Latency{a, b}, nil
}

// ParseShare reads a percentage, "0.1%", as a share of 1.
func ParseShare(s string) (float64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	p, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || math.IsNaN(p) || p < 0 || p > 100 {
		return 0, fmt.Errorf("not a share: %q: write a percentage from 0%% to 100%%", s)
	}
	return p / 100, nil
}

// ParseFail reads a status and its share: "500=1%".
func ParseFail(s string) (Fail, error) {
	code, share, ok := strings.Cut(strings.TrimSpace(s), "=")
	status, err := strconv.Atoi(code)
	if !ok || err != nil || !isStatus(status) {
		return Fail{}, fmt.Errorf("not a failure: %q: write a status and a share, as in 500=1%%", s)
	}
	p, err := ParseShare(share)
	if err != nil {
		return Fail{}, err
	}
	return Fail{status, p}, nil
}

// ParseStream reads a number of events and the time before each: "20x50ms".
func ParseStream(s string) (Stream, error) {
	n, gap, ok := strings.Cut(strings.TrimSpace(s), "x")
	events, err1 := strconv.ParseUint(n, 10, 31)
	d, err2 := time.ParseDuration(gap)
	if !ok || err1 != nil || err2 != nil || d < 0 || events == 0 {
		return Stream{}, fmt.Errorf("not a stream: %q: write events x time, as in 20x50ms", s)
	}
	return Stream{int(events), d}, nil
}

// ParseSize reads a number of bytes: "512", "2KiB", "1MB", at most 1 GiB.
func ParseSize(s string) (int, error) {
	text := strings.TrimSpace(s)
	for _, u := range [...]struct {
		name string
		n    uint64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}} {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || n*u.n > 1<<30 {
			break
		}
		return int(n * u.n), nil
	}
	return 0, fmt.Errorf("not a size: %q: write bytes, as in 512, 2KiB or 1MB, at most 1GiB", s)
}
