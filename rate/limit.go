package rate

import (
	"fmt"
	"time"

	"github.com/metehq/mete/internal/meter"
)

// Limit is one of [Window], [Bucket] and [Calendar]: what the provider
// promises. It is plain data, to be given to [New] and [Limiter.Set].
type Limit interface {
	check() error
	meter() meter.Meter
	// update changes a meter of the same model and reports whether it is one.
	update(now time.Duration, m meter.Meter) bool
}

// MaxUnits is the most that N, Burst and a settled cost can be: 2^48.
const MaxUnits = 1 << 48

// maxPer keeps every sum of times far from overflow.
const maxPer = 100 * 365 * 24 * time.Hour

// Window is the plain promise "N per Per": never more than N units start in
// any half-open window of that length, wherever it begins. A provider that
// documents no more than "50 requests per second" is met by it.
//
// Starts are paced: they keep a distance of about Per/N per unit. A start that
// a late timer delayed by at most 5 ms keeps its due time, so that lateness
// does not lower the rate; nothing else is made up.
type Window struct {
	N   int64         // 0 admits nothing until it is raised
	Per time.Duration // at most 100 years
	// Burst is how many due units may go together, still never more than N in
	// a window. 0 means 1; N means that starts are not paced at all.
	Burst int64
	// Margin is added to Per, for the difference that the way to the provider
	// may make between two calls. 0 means Per/150, at least 5 ms and at most
	// 50 ms.
	Margin time.Duration
	// Bulk says that costs come in lumps, as tokens or bytes do: the due time
	// is kept for a start that is late by up to Per/10.
	Bulk bool
}

// Bucket is the token bucket: Burst units fit in it, N per Per flow in. It
// admits at most Burst + N/Per*t units in any time t, which may be twice N in
// a window of Per: use it where the provider documents a bucket. With a Burst
// of 1 it paces. Where the burst is worth less than 5 ms of the rate, starts
// that a late timer delayed are made up to the worth of 5 ms.
type Bucket struct {
	N     int64         // 0 admits nothing until it is raised
	Per   time.Duration // at most 100 years
	Burst int64         // 0 means 1
}

// Calendar admits at most N units per calendar day or month in Zone. It reads
// the wall clock and starts nothing within a second on either side of the
// turn, because the provider's clock is not this one. A period never moves
// back. A forward step of the wall clock is noticed within a second by Allow,
// within a minute by those who wait.
type Calendar struct {
	N    int64          // 0 admits nothing until it is raised
	Each string         // "day" or "month"
	Zone *time.Location // nil means UTC
}

// String is the limit in words, for messages.
func (w Window) String() string { return fmt.Sprintf("window of %d per %v", w.N, w.Per) }

// String is the limit in words, for messages.
func (b Bucket) String() string {
	return fmt.Sprintf("bucket of %d, %d per %v", max(b.Burst, 1), b.N, b.Per)
}

// String is the limit in words, for messages.
func (c Calendar) String() string { return fmt.Sprintf("calendar of %d per %s", c.N, c.Each) }

func (w Window) check() error {
	if w.Margin < 0 || w.Margin > maxPer {
		return fmt.Errorf("%w: the margin %v is negative or too long", ErrInvalid, w.Margin)
	}
	return checkRate(w.N, w.Burst, w.Per)
}

func (b Bucket) check() error { return checkRate(b.N, b.Burst, b.Per) }

func (c Calendar) check() error {
	if c.Each != "day" && c.Each != "month" {
		return fmt.Errorf("%w: calendar %q is neither day nor month", ErrInvalid, c.Each)
	}
	return checkRate(c.N, 0, time.Second)
}

func checkRate(n, burst int64, per time.Duration) error {
	switch {
	case n < 0 || n > MaxUnits:
		return fmt.Errorf("%w: a limit of %d is negative or above %d", ErrInvalid, n, int64(MaxUnits))
	case burst < 0 || burst > MaxUnits:
		return fmt.Errorf("%w: a burst of %d is negative or above %d", ErrInvalid, burst, int64(MaxUnits))
	case per <= 0 || per > maxPer:
		return fmt.Errorf("%w: the period %v is not positive or above 100 years", ErrInvalid, per)
	}
	return nil
}

func (w Window) spec() meter.WindowSpec {
	return meter.WindowSpec{N: w.N, Per: w.Per, Burst: w.Burst, Paced: true, Bulk: w.Bulk, Margin: w.Margin}
}

func (b Bucket) spec() meter.BucketSpec {
	return meter.BucketSpec{N: b.N, Per: b.Per, Burst: b.Burst}
}

func (c Calendar) spec() meter.CalendarSpec { return meter.CalendarSpec(c) }

func (w Window) meter() meter.Meter   { return meter.NewWindow(w.spec()) }
func (b Bucket) meter() meter.Meter   { return meter.NewBucket(b.spec()) }
func (c Calendar) meter() meter.Meter { return meter.NewCalendar(c.spec()) }

func (w Window) update(now time.Duration, m meter.Meter) bool {
	old, ok := m.(*meter.Window)
	if ok {
		old.Update(now, w.spec())
	}
	return ok
}

func (b Bucket) update(now time.Duration, m meter.Meter) bool {
	old, ok := m.(*meter.Bucket)
	if ok {
		old.Update(now, b.spec())
	}
	return ok
}

func (c Calendar) update(now time.Duration, m meter.Meter) bool {
	old, ok := m.(*meter.Calendar)
	if ok {
		old.Update(now, c.spec())
	}
	return ok
}
