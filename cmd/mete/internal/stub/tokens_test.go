package stub

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	sum, n := int64(0), int64(2000)
	for i := range n {
		body := fmt.Appendf(nil, `{"max_tokens":1000,"n":%d}`, i)
		u := usageOf(body, sha256.Sum256(body), int64(len(body)))
		if u != usageOf(body, sha256.Sum256(body), int64(len(body))) || u.Prompt != int64(len(body)+3)/4 || u.Completion < 0 || u.Completion > 600 || u.Total != u.Prompt+u.Completion {
			t.Fatalf("%s: %+v", body, u)
		}
		sum += u.Completion
	}
	if mean := sum / n; mean < 285 || mean > 315 {
		t.Errorf("%d of 1000 on average, want about 300", mean)
	}
	if u := usageOf([]byte("text"), sha256.Sum256(nil), 4); u.Total != 1 {
		t.Errorf("%+v", u)
	}
}

// The figures are those of an oracle that adds up every window.
func TestTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		k := tokens{limits: []Limit{{20, 10 * time.Nanosecond}, {50, 40 * time.Nanosecond}}}
		k.clear()
		var all []spending
		most := map[time.Duration]int64{}
		for range 40 {
			s := spending{random.Int64N(100), 1 + random.Int64N(9)}
			fits := true
			for _, l := range k.limits {
				sum := s.cost
				for _, a := range all {
					if a.at <= s.at && a.at > s.at-int64(l.Per) {
						sum += a.cost
					}
				}
				fits = fits && sum <= l.N
			}
			wait, ok := k.take(s.at, s.cost)
			if ok != fits || ok != (wait == 0) {
				t.Fatalf("%v of %v: accepted %v after %v, want %v", s, all, ok, wait, fits)
			}
			for _, l := range k.limits { // what is refused counts where it arrived
				for _, end := range append(all, s) {
					sum := int64(0)
					for _, a := range append(all[:len(all):len(all)], s) {
						if a.at <= end.at && a.at > end.at-int64(l.Per) {
							sum += a.cost
						}
					}
					most[l.Per] = max(most[l.Per], sum)
				}
			}
			if ok {
				all = append(all, s)
			}
		}
		for i, l := range k.limits {
			if k.most[i] != most[l.Per] {
				t.Fatalf("%v: most %d, want %d", l, k.most[i], most[l.Per])
			}
		}
	}
}
