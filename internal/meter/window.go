package meter

import (
	"math"
	"time"
)

// WindowSpec describes a Window.
type WindowSpec struct {
	N     int64
	Per   time.Duration
	Burst int64 // due starts that may go together; at least 1
	Paced bool  // starts keep a distance of Per/N
	Bulk  bool  // the unit is not requests: costs come in lumps
	// Alone admits a cost above N when nothing else is in the window; the rest
	// is debt.
	Alone bool
	// Margin is added to the window; 0 means Per/150 between 5 and 50 ms.
	Margin time.Duration
}

// Window admits never more than N units in any half-open window of Per plus
// its margin, and paces them if asked to.
//
// It keeps the times of the starts themselves (a sliding log) rather than
// counters of fixed windows, which let twice the limit through at their edge.
type Window struct {
	spec  WindowSpec
	span  time.Duration // Per and margin
	join  time.Duration // starts closer than this share a cell
	log   cells
	used  int64 // cost of all cells, and held
	held  int64 // not yet on the wire, its cell gone by
	pace  pacer
	slack time.Duration // how late a start may be and keep its due time
}

// margin covers the largest difference in the time from the wire to the
// provider's counter between two starts. It does not grow with the window.
func margin(per time.Duration) time.Duration {
	return min(max(per/150, 5*time.Millisecond), 50*time.Millisecond)
}

// NewWindow returns an unused window.
func NewWindow(s WindowSpec) *Window {
	w := &Window{}
	w.pace.due = fresh
	w.set(s)
	w.pace.span, w.pace.units = w.span, s.N
	return w
}

func (w *Window) set(s WindowSpec) {
	if s.Margin == 0 {
		s.Margin = margin(s.Per)
	}
	s.Burst = max(s.Burst, 1)
	w.spec, w.span = s, s.Per+s.Margin
	w.join = 0
	if s.N > many/2 {
		w.join = w.span / (many / 2)
	}
	w.slack = Catchup
	if s.Bulk {
		w.slack = max(Catchup, s.Per/10)
	}
}

// Update changes the limit. What was started stays booked. Where the window
// grows, the starts that the shorter one has forgotten are booked at now at
// the old rate, so that a change never creates capacity.
func (w *Window) Update(now time.Duration, s WindowSpec) {
	w.expire(now)
	old, span := w.spec, w.span
	w.set(s)
	if w.span > span && old.N > 0 && s.N > 0 {
		forgotten := float64(old.N) / float64(span) * float64(w.span-span)
		if n := min(int64(forgotten)+1, s.N-w.used); n > 0 && w.pace.due != fresh {
			w.used += n
			w.log.add(now, w.join, n, 0)
		}
	}
	if s.N > 0 {
		w.pace.respan(now, w.span, s.N)
		w.pace.kept = 0
	}
}

// Capacity implements Meter.
func (w *Window) Capacity() int64 {
	if w.spec.Alone && w.spec.N > 0 {
		return math.MaxInt64 / 4
	}
	return w.spec.N
}

func (w *Window) expire(now time.Duration) {
	for w.log.len() > 0 {
		c := w.log.oldest()
		if c.last > now-w.span {
			return
		}
		w.used -= c.cost - c.unsent
		w.held += c.unsent
		w.log.pop()
	}
}

// Ready implements Meter.
func (w *Window) Ready(now time.Duration, n int64) time.Duration {
	if w.spec.N == 0 || n > w.Capacity() {
		return Later
	}
	n = min(n, w.spec.N)
	w.expire(now)
	t := max(now, w.paid(n))
	need := w.used + n - w.spec.N
	for i := w.log.head; need > 0; i++ {
		if i == w.log.tail {
			return Later
		}
		c := w.log.at(i)
		if gone := c.cost - c.unsent; gone > 0 {
			need -= gone
			t = max(t, c.last+w.span)
		}
	}
	return t
}

// paid is when the pace allows n units to start. One that is not paced may
// start N at once, so only a debt beyond what the window holds keeps it back.
func (w *Window) paid(n int64) time.Duration {
	if w.spec.Paced {
		return w.pace.ready(w.spec.Burst - 1)
	}
	return w.pace.ready(w.spec.N - n)
}

// Backlog implements Meter.
func (w *Window) Backlog(now time.Duration, ahead, n int64) time.Duration {
	if w.spec.N == 0 || n > w.Capacity() {
		return Later
	}
	n = min(n, w.spec.N)
	w.expire(now)
	t := now
	if w.spec.Paced && ahead+1 > w.spec.Burst {
		d, _ := w.pace.length(ahead - (w.spec.Burst - 1))
		t = max(t, plus(max(w.pace.due, now-w.slack), d))
	} else if w.spec.Paced {
		t = max(t, w.pace.ready(w.spec.Burst-1-ahead))
	}
	// At most N units start per window once the oldest start leaves it.
	if over := ahead + n - max(w.spec.N-w.used, 0); over > 0 {
		oldest := now
		if w.log.len() > 0 {
			oldest = w.log.oldest().last
		}
		windows := time.Duration((over - 1) / w.spec.N)
		if windows > Later/2/w.span {
			return Later - 1
		}
		t = max(t, plus(oldest+w.span, windows*w.span))
	}
	return t
}

func (w *Window) joining() time.Duration {
	if w.log.len() >= many {
		return max(w.join, w.span/(many/2))
	}
	return w.join
}

// Take implements Meter.
func (w *Window) Take(now time.Duration, n int64, onWire bool) Charge {
	w.expire(now)
	w.used += n
	var unsent int64
	if !onWire {
		unsent = n
	}
	i := w.log.add(now, w.joining(), n, unsent)
	if w.pace.units > 0 {
		w.pace.push(now, w.slack, n)
	}
	return Charge{n: n, at: now, cell: i, mark: mark(w.used, onWire)}
}

// Sent implements Meter.
func (w *Window) Sent(now time.Duration, c *Charge) {
	if c.onWire() || c.n == 0 {
		return
	}
	c.toWire()
	if w.log.has(c.cell) {
		cell := w.log.at(c.cell)
		cell.unsent -= c.n
		if now-c.at <= movedAfter {
			return
		}
		cell.cost -= c.n
	} else {
		w.held -= c.n
	}
	c.at = now
	c.cell = w.log.add(now, w.joining(), c.n, 0)
}

// Settle implements Meter.
func (w *Window) Settle(now time.Duration, c *Charge, actual int64) {
	diff := actual - c.n
	switch {
	case diff > 0:
		w.used += diff
		w.log.add(now, w.joining(), diff, 0)
		if w.pace.units > 0 {
			w.pace.push(now, w.slack, diff)
		}
	case diff < 0 && w.log.has(c.cell):
		cell := w.log.at(c.cell)
		cell.cost += diff
		if !c.onWire() {
			cell.unsent += diff
		}
		w.used += diff
		w.pace.pull(-diff)
	case diff < 0 && !c.onWire():
		w.held += diff
		w.used += diff
		w.pace.pull(-diff)
	}
	// What stays of an unsent charge is spent now: its call is over.
	if !c.onWire() && actual > 0 {
		rest := *c
		rest.n = min(c.n, actual)
		w.Sent(now, &rest)
		c.cell, c.at = rest.cell, rest.at
	}
	c.toWire()
	c.n = actual
}

// Free implements Meter.
func (w *Window) Free(now time.Duration) int64 {
	w.expire(now)
	return w.spec.N - w.used
}

// Stretch implements Meter.
func (w *Window) Stretch(now time.Duration, factor float64) {
	if w.spec.N > 0 {
		w.pace.respan(now, ceil(float64(w.span)*factor), w.spec.N)
		w.pace.keep(w.spec.Burst, factor)
	}
}

// Rebase implements Meter.
func (w *Window) Rebase(now time.Duration) {
	for i := w.log.head; i != w.log.tail; i++ {
		c := w.log.at(i)
		c.first, c.last = now, now
	}
	if w.pace.due != fresh {
		w.pace.due, w.pace.frac = now, 0
	}
}

// Spent implements Meter.
func (w *Window) Spent(now time.Duration) []Spent {
	w.expire(now)
	var list []Spent
	join, first := w.span/256, time.Duration(0)
	held := w.held
	for i := w.log.head; i != w.log.tail; i++ {
		c := w.log.at(i)
		held += c.unsent
		sent := c.cost - c.unsent
		if sent == 0 {
			continue
		}
		// Joining takes the later time, so that nothing is free too early.
		if k := len(list) - 1; k >= 0 && c.last-first < join {
			list[k].Age = now - c.last
			list[k].Units += sent
			continue
		}
		first = c.last
		list = append(list, Spent{Age: now - c.last, Units: sent})
	}
	if held > 0 { // it goes to the wire now, or later
		list = append(list, Spent{Units: held})
	}
	return list
}

// Restore implements Meter.
func (w *Window) Restore(now time.Duration, spent []Spent) {
	for _, s := range spent {
		if s.Age >= w.span || s.Units <= 0 {
			continue
		}
		at := now - max(s.Age, 0)
		if w.log.len() > 0 {
			at = max(at, w.log.newest().last)
		}
		w.used += s.Units
		w.log.add(at, w.join, s.Units, 0)
	}
	if w.log.len() > 0 && w.pace.units > 0 {
		w.pace.push(w.log.newest().last, 0, 1)
	}
}
