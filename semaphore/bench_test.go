package semaphore_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/metehq/mete/semaphore"
)

func BenchmarkAcquireRelease(b *testing.B) {
	cancelable, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancelable": cancelable} {
		b.Run(name, func(b *testing.B) {
			s := semaphore.New(10)
			b.ReportAllocs()
			for b.Loop() {
				p, err := s.Acquire(ctx, 1)
				if err != nil {
					b.Fatal(err)
				}
				p.Release()
			}
		})
	}
}

func BenchmarkTryAcquire(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		s := semaphore.New(10)
		for b.Loop() {
			p, _ := s.TryAcquire(1)
			p.Release()
		}
	})
	b.Run("full", func(b *testing.B) {
		s := semaphore.New(1)
		s.TryAcquire(1)
		for b.Loop() {
			s.TryAcquire(1)
		}
	})
}

// BenchmarkFanIn has more goroutines than permits, or as many, with nothing to
// do while they hold one.
func BenchmarkFanIn(b *testing.B) {
	for _, c := range []struct{ permits, goroutines int }{{1024, 8}, {1024, 1024}, {4, 8}, {4, 128}, {1, 64}} {
		b.Run(strconv.Itoa(c.goroutines)+"on"+strconv.Itoa(c.permits), func(b *testing.B) {
			s := semaphore.New(int64(c.permits))
			b.ReportAllocs()
			spread(b, c.goroutines, func() {
				p, err := s.Acquire(context.Background(), 1)
				if err != nil {
					b.Error(err)
				}
				p.Release()
			})
		})
	}
}

// BenchmarkHandOff parks at every acquire: the holder gives way before it
// releases.
func BenchmarkHandOff(b *testing.B) {
	s := semaphore.New(1)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	spread(b, 4, func() {
		p, err := s.Acquire(ctx, 1)
		if err != nil {
			b.Error(err)
		}
		runtime.Gosched()
		p.Release()
	})
}

func spread(b *testing.B, goroutines int, f func()) {
	var done sync.WaitGroup
	b.ResetTimer()
	for i := range goroutines {
		n := b.N / goroutines
		if i < b.N%goroutines {
			n++
		}
		done.Go(func() {
			for range n {
				f()
			}
		})
	}
	done.Wait()
}
