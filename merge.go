package mete

import (
	"context"
	"sync"
)

// Merge lets calls that ask for the same thing at the same time share one
// result. The zero value is ready. It keeps nothing once the call has ended.
type Merge[K comparable, T any] struct {
	mu    sync.Mutex
	calls map[K]*merged[T]
}

type merged[T any] struct {
	callers int
	cancel  context.CancelFunc
	done    chan struct{}
	answer  answer[T]
}

// Do calls fn, or waits for the call with the same key that is under way, and
// reports whether it shared one. Every caller has its own context: one that
// ends returns to its own caller only, and the context of fn, which has the
// values but not the end of the first caller's, ends when nobody waits any
// more. A panic of fn is raised in all callers.
func (m *Merge[K, T]) Do(ctx context.Context, key K, fn func(context.Context) (T, error)) (v T, shared bool, err error) {
	m.mu.Lock()
	c := m.calls[key]
	shared = c != nil
	if c == nil {
		c = m.start(ctx, key, fn)
	}
	c.callers++
	m.mu.Unlock()

	select {
	case <-c.done:
		if c.answer.panic != nil {
			panic(c.answer.panic)
		}
		return c.answer.v, shared, c.answer.err
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.callers--; c.callers == 0 {
		c.cancel()
		m.forget(key, c)
	}
	return v, shared, ctx.Err()
}

// start begins the call of a key. The caller holds the lock.
func (m *Merge[K, T]) start(ctx context.Context, key K, fn func(context.Context) (T, error)) *merged[T] {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &merged[T]{cancel: cancel, done: make(chan struct{})}
	if m.calls == nil {
		m.calls = map[K]*merged[T]{}
	}
	m.calls[key] = c
	go capture(func() (T, error) { return fn(own) }, func(a answer[T]) {
		m.mu.Lock()
		m.forget(key, c)
		m.mu.Unlock()
		c.answer = a
		cancel()
		close(c.done)
	})
	return c
}

// forget makes the next call of the key a new one.
func (m *Merge[K, T]) forget(key K, c *merged[T]) {
	if m.calls[key] == c {
		delete(m.calls, key)
	}
}
