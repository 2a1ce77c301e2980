package mete

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Diagnose says in a sentence or two what set the pace of a gate between two
// snapshots, and what to do about it. Some seconds between them are enough; the
// zero Stats for before means since the gate was made. A bound is binding if it
// has more than half of the time for which the head of the queue was blocked.
func Diagnose(before, now Stats) string {
	d := diagnosis{now: now, time: now.At.Sub(before.At), before: before}
	if before.At.IsZero() {
		d.time = now.age
	}
	d.attempts = now.Attempts - before.Attempts
	for b, t := range now.Blocked {
		if t -= before.Blocked[b]; t > 0 {
			d.all += t
			d.blocked = append(d.blocked, blockedFor{b, t})
		}
	}
	slices.SortFunc(d.blocked, func(a, b blockedFor) int {
		if a.time != b.time {
			return int(max(min(b.time-a.time, 1), -1))
		}
		return strings.Compare(a.bound, b.bound)
	})
	for _, look := range []func() string{d.leaked, d.closed, d.stuck, d.processor, d.pool, d.retries, d.waited} {
		if text := look(); text != "" {
			return text
		}
	}
	return ""
}

// diagnosis is what happened between two snapshots.
type diagnosis struct {
	before, now Stats
	time        time.Duration
	attempts    int64
	blocked     []blockedFor // the longest first
	all         time.Duration
}

type blockedFor struct {
	bound string
	time  time.Duration
}

// binding reports whether the head of the queue was blocked on bound most.
func (d *diagnosis) binding(bound string) bool {
	return len(d.blocked) > 0 && d.blocked[0].bound == bound && 2*d.blocked[0].time > d.all
}

// latency is the mean time for which permits were held lately, or else ever,
// and before that; 0 is not known.
func (d *diagnosis) latency() (lately, earlier time.Duration) {
	lately = d.now.Latency()
	if n := d.now.Ended - d.before.Ended; n > 0 {
		lately = (d.now.Held - d.before.Held) / time.Duration(n)
	}
	return lately, d.before.Latency()
}

func (d *diagnosis) leaked() string {
	n := d.now.Leaks - d.before.Leaks
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d permits were lost: taken and never released. Observer.Leaked tells where they were taken.", n)
}

func (d *diagnosis) closed() string {
	// Over the whole life of a gate, a pause at its end need not have mattered.
	over := d.before.At.IsZero() && d.now.Waiting == 0 && d.attempts > 0
	switch {
	case d.now.Breaker != "" && d.now.Breaker != "closed":
		return fmt.Sprintf("The circuit breaker is %s: the provider fails. Look at its errors; calls go on by themselves when a probe succeeds.", d.now.Breaker)
	case d.now.Paused > 0 && !over:
		return fmt.Sprintf("Paused for another %v: the provider asked to stay away. If that is often so, %s.", d.now.Paused.Round(time.Millisecond), d.tighter())
	}
	return ""
}

// tighter says what to do about a provider that asks to stay away.
func (d *diagnosis) tighter() string {
	if len(d.now.Limits) == 0 {
		return "give its limit here, so that it need not ask"
	}
	return "its limit is lower than the one given here, or somebody else uses it"
}

// stuck finds permits that do not come back.
func (d *diagnosis) stuck() string {
	s := d.now
	if s.Concurrency == 0 || s.InUse < s.Concurrency || s.Waiting == 0 || s.Ended != d.before.Ended || d.attempts > 0 || d.time < max(time.Second, 3*s.Latency()) {
		return ""
	}
	text := fmt.Sprintf("All %d permits are in use, and none came back for %v: they are leaked, or the provider does not answer.", s.Concurrency, d.time.Round(time.Millisecond))
	if s.Oldest > 0 {
		return text + fmt.Sprintf(" The oldest has been held for %v; it was taken at %s.", s.Oldest.Round(time.Millisecond), s.OldestAt)
	}
	return text + " Set Config.Timeout for a provider that hangs, and Config.FindLeaks to see where permits were taken."
}

// processor finds a process that has no processor left: it keeps all of them
// busy, or, where other processes do that, its goroutines wait for one in more
// than half of the time of all calls.
func (d *diagnosis) processor() string {
	used, wait := d.now.CPU-d.before.CPU, d.now.Ready-d.before.Ready
	if d.before.At.IsZero() {
		used, wait = d.now.CPU-d.now.start.cpu, d.now.Ready-d.now.start.ready
	}
	all := time.Duration(d.now.Processors) * d.time
	if all == 0 || d.limited() {
		return ""
	}
	const remedy = "Make the work on each answer cheaper, or use more machines; more permits change nothing."
	busy := fmt.Sprintf("%.1f of %d processors", float64(used)/float64(d.time), d.now.Processors)
	if d.now.Processors == 1 {
		busy = fmt.Sprintf("%.2f of its only processor", float64(used)/float64(d.time))
	}
	if used >= all*9/10 {
		return "This machine is the bound: the process keeps " + busy + " busy. " + remedy
	}
	latency, _ := d.latency()
	calls := float64(d.attempts) * float64(latency) / float64(d.time) // in flight, by Little's law
	ready := float64(wait) / float64(d.time)
	if ready < 1 || calls == 0 || 2*ready < calls {
		return ""
	}
	if used < all*3/4 {
		busy += ", others use the rest"
	}
	return fmt.Sprintf("This machine is the bound: about %.0f goroutines that could run wait for a processor, with %.0f calls in flight; the process gets %s. %s",
		ready, calls, busy, remedy)
}

// limited reports whether a limit was binding.
func (d *diagnosis) limited() bool {
	return len(d.blocked) > 0 && strings.HasPrefix(d.blocked[0].bound, "limit:") && 2*d.blocked[0].time > d.all
}

// pool finds calls that hold a permit without being on the wire. The first ones
// do in any case: they open the connections.
func (d *diagnosis) pool() string {
	held, conn, sent := d.now.Held-d.before.Held, d.now.Conn-d.before.Conn, d.now.Sent-d.before.Sent
	if sent <= 2*int64(d.now.Concurrency) || conn*4 < held || conn/time.Duration(sent) < time.Millisecond || !d.binding(boundNames[boundSemaphore]) && len(d.blocked) > 0 {
		return ""
	}
	return fmt.Sprintf("Calls hold a permit for %v before they reach the wire, %.0f %% of their time: the connections are a hidden second bound. Raise the transport's MaxConnsPerHost to at least %s, or remove it (metehttp.NewPool); if connections are opened again and again, look at name resolution and TLS.",
		span(conn/time.Duration(sent)), 100*min(float64(conn)/float64(max(held, 1)), 1), d.permits())
}

// retries finds calls that mostly stay away.
func (d *diagnosis) retries() string {
	// Calls stay away side by side, the head of the queue waits alone.
	backoff := (d.now.Backoff - d.before.Backoff) / time.Duration(max(d.now.Concurrency, 1))
	if backoff <= d.all || backoff*4 < d.time {
		return ""
	}
	return fmt.Sprintf("Most of the waiting was back-off: %d of %d attempts were made again. Look at their errors first.", d.now.Retries-d.before.Retries, d.attempts)
}

func (d *diagnosis) permits() string {
	if d.now.Concurrency == 0 {
		return "the number of calls in flight"
	}
	return fmt.Sprintf("the %d permits", d.now.Concurrency)
}

// waited says what the queue was blocked on.
func (d *diagnosis) waited() string {
	switch {
	case len(d.blocked) == 0 && d.attempts == 0:
		return "Idle: nothing was asked for."
	case len(d.blocked) == 0, 20*d.all < d.time:
		return fmt.Sprintf("Nothing waited: %d calls started as they came. The callers, or the input, set the pace; to go faster, bring more at once.", d.attempts)
	case 2*d.all < d.time:
		return fmt.Sprintf("Calls waited in %.0f %% of the time only, mostly for %s; else the callers, or the input, set the pace.", 100*float64(d.all)/float64(d.time), d.blocked[0].bound)
	case 2*d.blocked[0].time <= d.all:
		return "No single bound: the waits are shared by " + d.shares() + "."
	}
	switch bound := d.blocked[0].bound; bound {
	case boundNames[boundSemaphore]:
		return d.semaphore()
	case boundNames[boundPause]:
		return fmt.Sprintf("Calls waited for pauses: the provider asked to stay away, and opens step by step (%.0f %% of the rate is in force). If that is often so, %s.", 100*d.now.Rate, d.tighter())
	case boundNames[boundBreaker]:
		return "Calls waited for the circuit breaker: the provider failed. Look at its errors."
	case boundNames[boundStore]:
		return "Calls waited for the shared store: it is slow, or far away."
	default:
		return fmt.Sprintf("%s set the pace, as it should: more permits change nothing%s.", strings.TrimPrefix(bound, "limit:"), d.spare())
	}
}

// spare says how few permits were enough if there are far too many.
func (d *diagnosis) spare() string {
	limit, perSecond := d.now.tightest()
	latency, _ := d.latency()
	n := perSecond * latency.Seconds()
	if n == 0 || d.now.Concurrency == 0 || float64(d.now.Concurrency) < 4*math.Ceil(n) {
		return ""
	}
	return fmt.Sprintf(" (%s x %s = %.3g in flight, by Little's law; there are %d permits)", limit, span(latency), n, d.now.Concurrency)
}

// semaphore tells a provider that has become slow from permits that are few.
func (d *diagnosis) semaphore() string {
	n := d.now.Concurrency
	lately, earlier := d.latency()
	limit, perSecond := d.now.tightest()
	needs := int(math.Ceil(perSecond * lately.Seconds()))
	switch {
	case d.now.Adaptive != nil:
		return d.adaptive()
	case n == 0:
		return "Calls waited for permits of their lane. Raise its cap."
	case lately > 0 && d.now.Oldest > max(10*lately, time.Second):
		return fmt.Sprintf("All %d permits were in use, and one is probably leaked: it has been held for %v, where calls take %s. It was taken at %s.",
			n, d.now.Oldest.Round(time.Millisecond), span(lately), d.now.OldestAt)
	case earlier > 0 && 2*lately > 3*earlier:
		return fmt.Sprintf("All %d permits were in use, and the provider slowed down: calls take %s, %.1f times the %s before. More permits would only wait there; look at the provider.",
			n, span(lately), float64(lately)/float64(earlier), span(earlier))
	case needs > n:
		return fmt.Sprintf("All %d permits were in use: %s x %s needs about %d (Little). Raise the concurrency.", n, limit, span(lately), needs)
	case needs > 0:
		return fmt.Sprintf("All %d permits were in use, though %s x %s needs about %d (Little): the provider is slow at times, or the permits leave no headroom. Try twice as many.", n, limit, span(lately), needs)
	}
	return fmt.Sprintf("All %d permits were in use: no limit is near. More permits help as long as the provider has room; mete tune finds out.", n)
}

// adaptive says why the number of permits is what it is.
func (d *diagnosis) adaptive() string {
	a := d.now.Adaptive
	text := fmt.Sprintf("The adaptive concurrency is at %.0f", a.Limit)
	if a.Baseline > 0 && a.Median > 0 {
		text += fmt.Sprintf(": about %.0f calls queue at the provider, which takes %s for one and %s without a queue", math.Max(a.Queue, 0), span(a.Median), span(a.Baseline))
	}
	switch {
	case a.Ceiling > 0 && a.Limit >= a.Ceiling-1:
		return text + ". Failures keep it from growing; look at the errors."
	}
	return text + ". More permits would only wait there."
}

// shares lists the bounds with their parts of the waiting.
func (d *diagnosis) shares() string {
	var parts []string
	for _, b := range d.blocked {
		parts = append(parts, fmt.Sprintf("%s (%.0f %%)", b.bound, 100*float64(b.time)/float64(d.all)))
	}
	return strings.Join(parts, ", ")
}

// span writes a duration to three figures or so.
func span(d time.Duration) string {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit / 10).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// Saturation is the part of the permits that is in use, from 0 to 1; 0 where
// they are not bounded.
func (s Stats) Saturation() float64 {
	if s.Concurrency == 0 {
		return 0
	}
	return float64(s.InUse) / float64(s.Concurrency)
}

// Shed is how many calls were refused, for whatever reason.
func (s Stats) Shed() (n int64) {
	for _, c := range s.Refused {
		n += c
	}
	return n
}
