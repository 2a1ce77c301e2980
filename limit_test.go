package mete

import (
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Limit{
		"50/s":    Per(50, time.Second),
		"10r/s":   Per(10, time.Second),
		"500/m":   Per(500, time.Minute),
		"5000/h":  Per(5000, time.Hour),
		"10000/d": Per(10000, 24*time.Hour),
		"5/15s":   Per(5, 15*time.Second),
		"0.5/s":   Per(1, 2*time.Second),
		"2.5/m":   Per(5, 2*time.Minute),
		"0/s":     Per(0, time.Second),
		" 50 / s": Per(50, time.Second),
		"1/2d":    Per(1, 48*time.Hour),
	} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("ParseRate(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "50", "50/", "/s", "-1/s", "x/s", "50/y", "50/0s", "50/-1s", "1e9/s", "NaN/s", "50/s/s", "99999999999999999999/s"} {
		if l, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %+v, want an error", text, l)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"50/s", "5/15s", "0.5/s", "50", "x", "1/1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseRate(s)
		if err != nil {
			return
		}
		if l.N < 0 || l.Per <= 0 {
			t.Fatalf("ParseRate(%q) = %+v", s, l)
		}
		again, err := ParseRate(l.String())
		if err != nil || again != l {
			t.Fatalf("%q reads as %+v, written as %q it reads as %+v, %v", s, l, l.String(), again, err)
		}
	})
}
