package stub

import (
	"strings"
	"testing"
	"time"
)

func TestParseLimit(t *testing.T) {
	for in, want := range map[string]Limit{
		"50/s": {50, time.Second}, "500/m": {500, time.Minute}, "9/h": {9, time.Hour},
		"10000/d": {10000, 24 * time.Hour}, "5/15s": {5, 15 * time.Second}, "10r/s": {10, time.Second},
		" 1 / 2s ": {1, 2 * time.Second}, "0/s": {0, time.Second}, "3/7d": {3, 7 * 24 * time.Hour},
	} {
		if got, err := ParseLimit(in); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"50": "say per what", "x/s": "not a whole number", "0.5/s": "1/2s", "-1/s": "not a whole number",
		"5/": "not a period", "5/0s": "not a period", "5/-1s": "not a period", "5/fortnight": "not a period",
		"99999999999999999999/s": "not a whole number",
	} {
		if _, err := ParseLimit(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", in, err, says)
		}
	}
}

func TestParseOthers(t *testing.T) {
	ms := time.Millisecond
	if v, err := ParseLatency("80ms"); err != nil || v != (Latency{80 * ms, 80 * ms}) {
		t.Error(v, err)
	}
	if v, err := ParseLatency("80ms..200ms"); err != nil || v != (Latency{80 * ms, 200 * ms}) {
		t.Error(v, err)
	}
	if v, err := ParseShare("0.1%"); err != nil || v != 0.001 {
		t.Error(v, err)
	}
	if v, err := ParseFail("500=1%"); err != nil || v != (Fail{500, 0.01}) {
		t.Error(v, err)
	}
	if v, err := ParseStream("20x50ms"); err != nil || v != (Stream{20, 50 * ms}) {
		t.Error(v, err)
	}
	for in, want := range map[string]int{"512": 512, "2KiB": 2048, "1MB": 1e6, "7B": 7, "1GiB": 1 << 30} {
		if v, err := ParseSize(in); err != nil || v != want {
			t.Error(in, v, err)
		}
	}
	bad := func(err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
		} else if strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("not one line: %v", err)
		}
	}
	for _, in := range []string{"", "80", "200ms..80ms", "..", "-1s"} {
		_, err := ParseLatency(in)
		bad(err)
	}
	for _, in := range []string{"", "1", "101%", "-1%", "NaN%", "%"} {
		_, err := ParseShare(in)
		bad(err)
	}
	for _, in := range []string{"500", "=1%", "99=1%", "600=1%", "500=1"} {
		_, err := ParseFail(in)
		bad(err)
	}
	for _, in := range []string{"", "20", "0x5ms", "20x", "-1x5ms", "2x-5ms"} {
		_, err := ParseStream(in)
		bad(err)
	}
	for _, in := range []string{"", "KiB", "1.5MB", "-1", "2GiB", "1TB"} {
		_, err := ParseSize(in)
		bad(err)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"50/s", "5/15s", "10r/s", "0/d", "x", "1/366d", "9007199254740991/1h0m3s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLimit(s)
		if err != nil {
			return
		}
		if l.N < 0 || l.Per <= 0 {
			t.Fatalf("%q gave %v", s, l)
		}
		if again, err := ParseLimit(l.String()); err != nil || again != l {
			t.Fatalf("%q is written %q and read %v, %v", s, l.String(), again, err)
		}
	})
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{`{"latency":"2s","for":"10s"}`, `{"outage":true}`, `{"drop":true}`, `{"knee":16}`, `{"limit":"20/s"}`, `{} {}`, `[`, `{"for":"1"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fault, err := ParseFault(body)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		if err := New(Config{}).SetFault(fault); err != nil {
			t.Fatalf("%q was read but not taken: %v", body, err)
		}
	})
}

// The shares, sizes and times must never be negative or absurd, whatever is typed.
func FuzzParseFlags(f *testing.F) {
	for _, s := range []string{"80ms..200ms", "500=1%", "0.1%", "20x50ms", "2KiB", "1e308%", "0x1p-2%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := ParseLatency(s); err == nil && (l.Min < 0 || l.Max < l.Min) {
			t.Fatalf("%q gave %v", s, l)
		}
		if p, err := ParseShare(s); err == nil && !(p >= 0 && p <= 1) {
			t.Fatalf("%q gave %v", s, p)
		}
		if v, err := ParseFail(s); err == nil && (!isStatus(v.Status) || !(v.Share >= 0 && v.Share <= 1)) {
			t.Fatalf("%q gave %v", s, v)
		}
		if v, err := ParseStream(s); err == nil && (v.Events <= 0 || v.Gap < 0) {
			t.Fatalf("%q gave %v", s, v)
		}
		if n, err := ParseSize(s); err == nil && (n < 0 || n > 1<<30) {
			t.Fatalf("%q gave %d", s, n)
		}
	})
}
