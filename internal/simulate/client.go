package simulate

import "time"

// maxWait is how long a caller waits for a permit before giving up.
const maxWait = time.Second

// client is one process that calls the provider: callers in line for the
// permits of one limiter. It stands for the gate, so it does with the limiter
// what the gate would do.
type client struct {
	limiter limiter
	joined  bool
	queue   line[time.Duration] // when each caller came
	held    int                 // permits out, those in quarantine included
	started time.Duration       // the last start, for pacing
	paused  time.Duration       // no start before, because of a Retry-After
	pumpAt  time.Duration       // the pump that is scheduled, 0 if none
}

// pump starts what may start and sees to it that it is called again when more
// may. A call needs the pause to be over, its turn in the pacing and a permit,
// all at once; only the want of a permit is reported to the limiter as such.
func (w *world) pump(id int32) {
	c := w.clients[id]
	next := c.limiter.Step(w.now)
	for {
		for c.queue.len() > 0 && w.now-c.queue.first() >= maxWait {
			c.queue.pop()
		}
		if c.queue.len() == 0 {
			break
		}
		due := c.paused
		if r := c.limiter.Rate(); r > 0 {
			due = max(due, c.started+seconds(1/r))
		}
		if w.now < due {
			if next == 0 || due < next {
				next = due
			}
			break
		}
		if c.held >= c.limiter.Limit() {
			c.limiter.Blocked(w.now)
			break
		}
		c.queue.pop()
		w.start(id)
	}
	if next > w.now && (c.pumpAt == 0 || next < c.pumpAt) {
		c.pumpAt = next
		w.schedule(next, event{kind: pump, client: id})
	}
}

func (w *world) start(id int32) {
	c := w.clients[id]
	c.held++
	c.started = w.now
	n := w.calls.get(call{client: id, ticket: c.limiter.Start(w.now, c.held)}, w.now+w.sc.Timeout)
	switch w.provider.Outage {
	case blackHole:
		w.calls.release(n) // only the time-out will tell
	case refusing:
		w.answer(n, failed, refuseTime)
	default:
		w.schedule(w.now+w.provider.Network/2, event{kind: reach, call: n})
	}
}

// finish is the end of a call as its client sees it.
func (w *world) finish(n int32, o outcome) {
	call := &w.calls.all[n]
	call.answered = true
	c := w.clients[call.client]
	w.meter.done(w.now, int(call.client), o, w.now-call.ticket.at)
	free := c.limiter.Done(w.now, call.ticket, o)
	if o == throttled && call.retryAt > 0 {
		c.paused = max(c.paused, call.retryAt)
	}
	if free > w.now {
		w.schedule(free, event{kind: release, client: call.client})
	} else {
		c.held--
	}
	w.pump(call.client)
}

func (w *world) timeout(t timeout) {
	w.calls.timeouts.pop()
	if c := &w.calls.all[t.call]; c.generation == t.generation && !c.answered {
		w.finish(t.call, failed)
	}
	w.calls.release(t.call)
}
