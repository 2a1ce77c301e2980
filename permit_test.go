package mete

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A permit that was acquired by hand marks a context as Do does.
func TestPermitInAContext(t *testing.T) {
	g := newGate(t, Config{Concurrency: 2})
	p, err := g.Acquire(t.Context(), Call{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := p.Context(t.Context())
	if p.Gate() != g || PermitFrom(ctx) != p {
		t.Error("the context does not lead to the permit and its gate")
	}
	if err := Do(ctx, g, Call{}, func(context.Context) error { return nil }); !errors.Is(err, ErrNested) {
		t.Errorf("nested: %v", err)
	}
	p.Release()
	idle(t, g)
}

// A panic in another goroutine is told with the stack that it had there.
func TestPanicTellsItsStack(t *testing.T) {
	defer func() {
		p, ok := recover().(*Panic)
		if !ok || !errors.Is(p, errAgain) || !strings.Contains(string(p.Stack), "panicsHere") || !strings.Contains(p.Error(), "panicsHere") {
			t.Errorf("recovered %v", p)
		}
	}()
	var m Merge[int, int]
	_, _, _ = m.Do(t.Context(), 1, panicsHere)
}

func panicsHere(context.Context) (int, error) { panic(errAgain) }
