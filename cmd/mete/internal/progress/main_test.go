package progress

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a run in full flight.
func sample() Snapshot {
	return Snapshot{
		Name:  "addresses.csv",
		Total: 1_000_000, Done: 412_310, Resumed: 0, OK: 412_102, Failed: 208,
		Throttled: 12, Retries: 31,
		InFlight: 11, Concurrency: 16,
		Rate: 49.98, Limit: "50/s", LimitPerSecond: 50,
		Bound: "limit:50/s", BoundShare: 0.983,
		P50: 180 * time.Millisecond, P95: 420 * time.Millisecond,
		Elapsed: 8247 * time.Second,
	}
}
