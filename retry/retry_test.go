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
