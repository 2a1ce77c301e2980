package sizing_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metehq/mete/sizing"
)

func TestFor(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name    string
		in      sizing.Input
		permits int
		decided string
		by      sizing.By
	}{
		{"rate", sizing.Input{Rate: 50, Latency: 200 * time.Millisecond},
			20, sizing.ByRate, sizing.By{Rate: 20}},
		{"no headroom", sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Headroom: 1},
			10, sizing.ByRate, sizing.By{Rate: 10}},
		{"per minute", sizing.Input{Rate: 500, Per: time.Minute, Latency: 2500 * time.Millisecond},
			42, sizing.ByRate, sizing.By{Rate: 42}},
		{"slow rate", sizing.Input{Rate: 1, Per: time.Hour, Latency: time.Millisecond},
			1, sizing.ByRate, sizing.By{Rate: 1}},
		{"pool", sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 12},
			12, sizing.ByPool, sizing.By{Rate: 20, Pool: 12}},
		{"equal: the rate decides", sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 20},
			20, sizing.ByRate, sizing.By{Rate: 20, Pool: 20}},
		{"memory", sizing.Input{Rate: 500, Latency: 200 * time.Millisecond, Memory: 512 * mib, ResponseSize: 8 * mib},
			64, sizing.ByMemory, sizing.By{Rate: 200, Memory: 64}},
		{"all", sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 20, Memory: 512 * mib, ResponseSize: 8 * mib, CPU: 8},
			8, sizing.ByCPU, sizing.By{Rate: 20, Pool: 20, Memory: 64, CPU: 8}},
		{"no rate", sizing.Input{Pool: 7}, 7, sizing.ByPool, sizing.By{Pool: 7}},
		{"huge", sizing.Input{Rate: 1e300, Latency: time.Hour}, math.MaxInt32, sizing.ByRate, sizing.By{Rate: math.MaxInt32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := sizing.For(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if p.Permits != c.permits || p.DecidedBy != c.decided || p.By != c.by {
				t.Errorf("%d by %s of %+v", p.Permits, p.DecidedBy, p.By)
			}
			if p.Comment == "" || strings.Contains(p.Comment, "\n") {
				t.Errorf("comment %q", p.Comment)
			}
		})
	}
}

func TestForDuration(t *testing.T) {
	in := sizing.Input{Rate: 500, Per: time.Minute, Latency: 2500 * time.Millisecond, Requests: 1_000_000}
	p, err := sizing.For(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Duration.Round(time.Minute); got != 33*time.Hour+20*time.Minute {
		t.Errorf("%v", p.Duration)
	}
	// Too few permits for the rate: they set the pace.
	in = sizing.Input{Rate: 100, Latency: time.Second, Pool: 10, Requests: 1001}
	if p, err = sizing.For(in); err != nil || p.PerSecond != 10 || p.Duration != 101*time.Second {
		t.Errorf("%+v, %v", p, err)
	}
	// No rate, but permits and latency.
	in = sizing.Input{Latency: time.Second, Pool: 10, Requests: 11}
	if p, err = sizing.For(in); err != nil || p.PerSecond != 10 || p.Duration != 2*time.Second {
		t.Errorf("%+v, %v", p, err)
	}
	in = sizing.Input{Rate: 1, Per: 366 * 24 * time.Hour, Latency: 1, Requests: math.MaxInt64}
	if p, err = sizing.For(in); err != nil || p.Duration != math.MaxInt64 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestForWarnings(t *testing.T) {
	for _, c := range []struct {
		in   sizing.Input
		want []string // a part of each
	}{
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond}, nil},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Requests: 5}, nil},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Requests: 4}, []string{"no limiter is needed"}},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 20}, nil},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 15}, []string{"raise the pool to 20"}},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, Pool: 10}, []string{"raise the pool to 20", "hardly any headroom"}},
		{sizing.Input{Rate: 50, Latency: 200 * time.Millisecond, CPU: 8}, []string{"40/s of the 50/s allowed: 10 are needed"}},
	} {
		p, err := sizing.For(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Warnings) != len(c.want) {
			t.Errorf("%+v: %q", c.in, p.Warnings)
			continue
		}
		for i := range c.want {
			if !strings.Contains(p.Warnings[i], c.want[i]) {
				t.Errorf("%q, want %q", p.Warnings[i], c.want[i])
			}
		}
	}
}

func TestForErrors(t *testing.T) {
	for _, c := range []struct {
		in   sizing.Input
		want string
	}{
		{sizing.Input{}, "give the rate and the latency"},
		{sizing.Input{Latency: time.Second}, "give the rate and the latency"},
		{sizing.Input{Rate: 50}, "needs the latency"},
		{sizing.Input{Rate: 50, Pool: 3}, "needs the latency"},
		{sizing.Input{Rate: math.NaN(), Latency: 1}, "the rate"},
		{sizing.Input{Rate: math.Inf(1), Latency: 1}, "the rate"},
		{sizing.Input{Rate: -1, Latency: 1}, "the rate"},
		{sizing.Input{Rate: 1, Per: -1, Latency: 1}, "the period"},
		{sizing.Input{Rate: 1, Latency: -1}, "the latency"},
		{sizing.Input{Rate: 1, Latency: 1, Headroom: 0.5}, "the headroom"},
		{sizing.Input{Rate: 1, Latency: 1, Headroom: -2}, "the headroom"},
		{sizing.Input{Pool: -1}, "the pool"},
		{sizing.Input{CPU: -1}, "processors"},
		{sizing.Input{Memory: -1}, "memory"},
		{sizing.Input{Memory: 1}, "response size"},
		{sizing.Input{ResponseSize: 1, Pool: 1}, "the memory"},
		{sizing.Input{Memory: 1 << 20, ResponseSize: 2 << 20}, "one response of 2MiB does not fit in memory of 1MiB"},
		{sizing.Input{Pool: 1, Requests: -1}, "requests"},
	} {
		if p, err := sizing.For(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %+v, %v", c.in, p, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 100: "100B", 1 << 10: "1KiB", 512 << 20: "512MiB", 3 << 29: "1.5GiB", 1e6: "976.56KiB", math.MaxInt64: "8EiB",
	} {
		if got := sizing.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}

// The permits are never above a bound, never below 1, and enough for the rate
// where nothing else decides.
func TestForProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sizing.Input{
			Rate:    float64(rapid.Int64Range(1, 1e6).Draw(t, "rate")),
			Per:     rapid.SampledFrom([]time.Duration{time.Second, 15 * time.Second, time.Hour}).Draw(t, "per"),
			Latency: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "latency")),
			Pool:    rapid.IntRange(0, 100).Draw(t, "pool"),
			CPU:     rapid.IntRange(0, 100).Draw(t, "cpu"),
		}
		p, err := sizing.For(in)
		if err != nil {
			t.Fatal(err)
		}
		if p.Permits < 1 || in.Pool > 0 && p.Permits > in.Pool || in.CPU > 0 && p.Permits > in.CPU {
			t.Fatalf("%+v", p)
		}
		if p.DecidedBy == sizing.ByRate && (float64(p.Permits) < 2*p.Needed*(1-1e-9) || float64(p.Permits) >= 2*p.Needed*(1+1e-9)+1) {
			t.Fatalf("%+v", p)
		}
		if p.PerSecond > in.Rate/in.Per.Seconds()*(1+1e-9) {
			t.Fatalf("%+v", p)
		}
	})
}

func ExampleFor() {
	p, err := sizing.For(sizing.Input{
		Rate:    50, // per second
		Latency: 200 * time.Millisecond,
		Pool:    32,
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("Concurrency: %d, // %s\n", p.Permits, p.Comment)
	// Output:
	// Concurrency: 20, // 50/s x 200ms = 10 in flight (Little), x 2 headroom = 20; pool 32; the least is 20 (rate)
}
