package rate_test

import (
	"context"
	"testing"
	"time"

	"github.com/metehq/mete/rate"
)

// models are one limit of each, far from being used up.
var models = map[string]rate.Limit{
	"window":   rate.Window{N: 1 << 40, Per: time.Second, Burst: 1 << 40},
	"bucket":   rate.Bucket{N: 1 << 40, Per: time.Second, Burst: 1 << 40},
	"calendar": rate.Calendar{N: 1 << 48, Each: "month"},
}

func BenchmarkAllow(b *testing.B) {
	for name, limit := range models {
		b.Run(name, func(b *testing.B) {
			l := must(b, limit)
			b.ReportAllocs()
			for b.Loop() {
				if !l.Allow(1) {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkAllowParallel(b *testing.B) {
	l := must(b, models["bucket"])
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Allow(1)
		}
	})
}

// BenchmarkDenied asks for what comes in an hour.
func BenchmarkDenied(b *testing.B) {
	l := must(b, rate.Bucket{N: 1, Per: time.Hour})
	l.Allow(1)
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Allow(1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Allow(1)
			}
		})
	})
}

func BenchmarkWait(b *testing.B) {
	for _, name := range []string{"window", "bucket"} {
		b.Run(name, func(b *testing.B) {
			l := must(b, models[name])
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Wait(ctx, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTakeSettle(b *testing.B) {
	l := must(b, rate.Bucket{N: 1e9, Per: time.Second, Burst: 1e9})
	b.ReportAllocs()
	for b.Loop() {
		g, err := l.Take(b.Context(), 100)
		if err != nil {
			b.Fatal(err)
		}
		g.Settle(90)
	}
}

// BenchmarkTakeSettleBusy has a bucket that is never full, so that what was
// taken before counts.
func BenchmarkTakeSettleBusy(b *testing.B) {
	l := must(b, rate.Bucket{N: 1, Per: time.Hour, Burst: 4000})
	for l.Stats().Free > 100 {
		l.Allow(1)
	}
	b.ReportAllocs()
	for b.Loop() {
		g, err := l.Take(b.Context(), 100)
		if err != nil {
			b.Fatal(err)
		}
		g.Settle(0)
	}
}

// BenchmarkWaitBlocked sleeps at every call.
func BenchmarkWaitBlocked(b *testing.B) {
	l := must(b, rate.Window{N: 100_000, Per: time.Second})
	l.Allow(1)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Wait(context.Background(), 1); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkAchieved is one caller that waits in a loop for three seconds: how
// much of the rate it gets.
func BenchmarkAchieved(b *testing.B) {
	for name, limit := range map[string]rate.Limit{
		"bucket": rate.Bucket{N: 10_000, Per: time.Second},
		"window": rate.Window{N: 1000, Per: time.Second},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l := must(b, limit)
				l.Wait(b.Context(), 1)
				start, n := time.Now(), 0
				for time.Since(start) < 3*time.Second {
					l.Wait(b.Context(), 1)
					n++
				}
				per := map[string]float64{"bucket": 10_000, "window": 1000}[name]
				b.ReportMetric(float64(n)/per/time.Since(start).Seconds(), "of-rate")
			}
		})
	}
}
