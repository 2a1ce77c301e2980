package retry

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Back-off neither overflows nor turns zero or negative
// (hemilabs/heminetwork#664, openai/openai-go#519, sethvargo/go-retry#39).
func TestBackoffStaysInRange(t *testing.T) {
	for _, b := range []Backoff{{}, {Base: 500 * time.Millisecond, Max: time.Minute}, {Base: 1 << 62, Max: time.Minute}, {Base: -1, Max: -1}, {Base: time.Second, Max: math.MaxInt64}} {
		for _, n := range []int{-1, 0, 1, 2, 3, 10, 63, 64, 200, 1 << 31} {
			c, limit := b.Ceiling(n), b.Max
			if limit <= 0 {
				limit = 30 * time.Second
			}
			if c <= 0 || c > limit {
				t.Fatalf("%+v.Ceiling(%d) = %v", b, n, c)
			}
			if b.Max == math.MaxInt64 {
				continue
			}
			for range 20 {
				if d := b.Delay(n); d < 0 || d > c {
					t.Fatalf("%+v.Delay(%d) = %v above %v", b, n, d, c)
				}
			}
		}
	}
	for n, want := range []time.Duration{1, 1, 2, 4, 8, 16, 32, 60, 60} {
		if got := Unhinted(n); got != want*time.Second {
			t.Errorf("Unhinted(%d) = %v", n, got)
		}
	}
}

func TestBudget(t *testing.T) {
	b := Budget{Share: 0.2}
	again := 0
	for range 1000 {
		b.First()
		if b.Again() {
			again++
		}
	}
	if again < 200 || again > 211 {
		t.Errorf("%d of 1000 repeated, want a fifth and the reserve", again)
	}
	var unlimited Budget
	for range 1000 {
		if !unlimited.Again() {
			t.Fatal("the zero budget refuses")
		}
	}
}

// A program may repeat ten times at once, then as often as its first attempts
// have paid for; and it never saves up more than the ten.
func TestBudgetIsExact(t *testing.T) {
	b := Budget{Share: 0.5}
	many := func() (n int) {
		for b.Again() {
			n++
		}
		return n
	}
	if n := many(); n != 10 {
		t.Errorf("%d repetitions from the start, want 10", n)
	}
	for range 3 {
		b.First()
	}
	if n := many(); n != 1 {
		t.Errorf("%d repetitions for 3 first attempts at a half, want 1", n)
	}
	for range 1000 {
		b.First()
	}
	if n := many(); n != 10 {
		t.Errorf("%d repetitions after 1000 first attempts, want 10", n)
	}
}

// Delays are spread over the whole of what is promised, and no further. That
// 500 of them miss a tenth of it has a chance of 1e-23.
func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		draw func() time.Duration
		most time.Duration
	}{
		"back-off":                {func() time.Duration { return Backoff{}.Delay(1) }, 500 * time.Millisecond},
		"third back-off":          {func() time.Duration { return Backoff{}.Delay(3) }, 2 * time.Second},
		"late back-off":           {func() time.Duration { return Backoff{}.Delay(30) }, 30 * time.Second},
		"jitter, unhinted":        {func() time.Duration { return Jitter(8*time.Second, false) }, 2 * time.Second},
		"jitter, hinted":          {func() time.Duration { return Jitter(8*time.Second, true) }, 800 * time.Millisecond},
		"jitter of a short pause": {func() time.Duration { return Jitter(time.Millisecond, true) }, 100 * time.Millisecond},
		"jitter of a long pause":  {func() time.Duration { return Jitter(time.Hour, false) }, 5 * time.Second},
	} {
		low, high := c.most, time.Duration(0)
		for range 500 {
			d := c.draw()
			low, high = min(low, d), max(high, d)
		}
		if low < 0 || high > c.most || low > c.most/10 || high < c.most/10*9 {
			t.Errorf("%s: from %v to %v, want from 0 to %v", name, low, high, c.most)
		}
	}
}

func ExampleBackoff() {
	b := Backoff{Base: 500 * time.Millisecond, Max: 3 * time.Second}
	for n := 1; n <= 4; n++ {
		fmt.Println(b.Ceiling(n), b.Delay(n) <= b.Ceiling(n))
	}
	// Output:
	// 500ms true
	// 1s true
	// 2s true
	// 3s true
}
