package runner

import (
	"testing"
	"time"

	"github.com/metehq/mete"
)

// A summary measures a run against the limit that paced it, which need not be
// the one with the lowest rate.
func TestPacing(t *testing.T) {
	both := []mete.Limit{mete.Per(50, time.Second), mete.Per(1000, time.Minute)}
	for _, tc := range []struct {
		limits []mete.Limit
		n      int64
		text   string
		rate   float64
	}{
		{both, 100, "50/s", 50},
		{both, 1050, "1000/m", 1049.0 / 60},
		{both, 10_001, "1000/m", 10_000.0 / 600},
		{both[1:], 100, "1000/m", 1000.0 / 60},
		{nil, 100, "", 0},
		{[]mete.Limit{{Unit: "tokens", N: 1, Per: time.Second}}, 100, "", 0},
		{both, 1, "50/s", 50},
	} {
		if text, rate := pacing(tc.limits, "requests", tc.n); text != tc.text || rate < tc.rate*0.999 || rate > tc.rate*1.001 {
			t.Errorf("%d starts under %v: %s at %.2f/s, want %s at %.2f/s", tc.n, tc.limits, text, rate, tc.text, tc.rate)
		}
	}
}
