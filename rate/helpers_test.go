package rate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/metehq/mete/rate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func must(t testing.TB, limit rate.Limit) *rate.Limiter {
	t.Helper()
	l, err := rate.New(limit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bubble runs f in virtual time, where nothing is late.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func take(t testing.TB, l *rate.Limiter, n int64) *rate.Grant {
	t.Helper()
	g, err := l.Take(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func free(t testing.TB, l *rate.Limiter, want int64) {
	t.Helper()
	if got := l.Stats().Free; got != want {
		t.Fatalf("free is %d, want %d", got, want)
	}
}

// waiter is a caller in line, and how its wait ended.
type waiter struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	after  time.Duration
}

// wait starts a caller that waits for n, and returns once it is in line or
// through.
func wait(l *rate.Limiter, n int64) *waiter {
	ctx, cancel := context.WithCancel(context.Background())
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(w.done)
		defer cancel()
		w.err = l.Wait(ctx, n)
		w.after = time.Since(start)
	}()
	synctest.Wait()
	return w
}

// granted checks how long a caller waited.
func (w *waiter) granted(t *testing.T, after time.Duration) {
	t.Helper()
	<-w.done
	if w.err != nil || w.after != after {
		t.Fatalf("ended after %v with %v, want a grant after %v", w.after, w.err, after)
	}
}

func (w *waiter) refused(t *testing.T, reason error) {
	t.Helper()
	<-w.done
	if !errors.Is(w.err, reason) {
		t.Fatalf("ended with %v, want %v", w.err, reason)
	}
}

// peek is the wait that Peek announces.
func peek(t testing.TB, l *rate.Limiter, n int64) time.Duration {
	t.Helper()
	d, err := l.Peek(n)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
