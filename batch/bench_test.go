package batch

import (
	"context"
	"iter"
	"testing"
	"time"
)

func count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// over is Map with one gate of so many permits that admits at once.
func over[In, Out any](ctx context.Context, permits int, in iter.Seq[In], fn func(context.Context, In) (Out, error), opts ...Option) iter.Seq[Result[In, Out]] {
	j := job[int, In, Out]{
		options: newOptions(opts),
		key:     func(In) int { return 0 },
		limit:   func(int) int { return permits },
		call:    func(ctx context.Context, _ int, in In) (Out, error) { return fn(ctx, in) },
	}
	return func(yield func(Result[In, Out]) bool) { j.run(ctx, in, yield) }
}

func benchmark(b *testing.B, opts ...Option) {
	fn := func(context.Context, int) (int, error) { return 0, nil }
	b.ReportAllocs()
	n := 0
	for range over(context.Background(), 20, count(b.N), fn, opts...) {
		n++
	}
	if n != b.N {
		b.Fatalf("%d results of %d", n, b.N)
	}
}

func BenchmarkStream(b *testing.B)  { benchmark(b) }
func BenchmarkOrdered(b *testing.B) { benchmark(b, Ordered(0)) }

func BenchmarkStreamBlocking(b *testing.B) {
	fn := func(context.Context, int) (int, error) { time.Sleep(time.Millisecond); return 0, nil }
	for range over(context.Background(), 20, count(b.N), fn) {
	}
}
