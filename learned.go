package mete

import (
	"fmt"
	"math"
	"time"

	"github.com/metehq/mete/internal/meter"
	"github.com/metehq/mete/quota"
)

// Learn says what a gate does with the quotas that responses show.
type Learn string

// The zero value is LearnCap: what a provider says of itself may hold calls
// back, and nothing that it says lets more through than the Config.
const (
	// LearnCap lets quotas lower the rate and hold calls back until a reset. A
	// limit that was lowered stays so until it is repeated higher ten minutes
	// later.
	LearnCap Learn = "cap"
	// LearnFollow is LearnCap that follows a limit up again at once, never
	// above the configured one.
	LearnFollow Learn = "follow"
	// LearnObserve only shows quotas in Stats, and LearnOff forgets them.
	LearnObserve Learn = "observe"
	LearnOff     Learn = "off"
)

func (l Learn) check() error {
	switch l {
	case "", LearnCap, LearnFollow, LearnObserve, LearnOff:
		return nil
	}
	return fmt.Errorf("learn %q: want cap, follow, observe or off", string(l))
}

// binds reports whether quotas hold calls back.
func (l Learn) binds() bool { return l != LearnObserve && l != LearnOff }

// maxLearned is how many quotas of a provider can be in force. There are few;
// a server that makes up names must not slow every call.
const maxLearned = 16

// learned is what responses have shown of the provider's quotas. Times are
// those of the gate, so that a step of the wall clock changes nothing; a
// remainder is kept as the mark on the count of an Allowance.
type learned struct {
	mode   Learn
	state  quota.State
	known  []*shown
	list   []quota.Quota // of the response at hand
	looked time.Duration // grant of the last call whose response was to be read; 0 is none
}

// lookEvery is how often the quotas that successes show are read while there is
// plenty left: a gate counts what it grants itself, so only what others use of
// the same quota is told a little later.
const lookEvery = 100 * time.Millisecond

// look reports whether what the response to a call granted at now shows of
// quotas is to be read.
func (k *learned) look(now time.Duration) bool {
	if k.mode == LearnOff {
		return false
	}
	if k.looked > 0 && now-k.looked < lookEvery && (len(k.known) == 0 || !k.scarce(now)) {
		return false
	}
	k.looked = max(now, 1)
	return true
}

// scarce reports whether little is left of a quota, or nobody knows.
func (k *learned) scarce(now time.Duration) bool {
	for _, s := range k.known {
		if a := s.allowance; a != nil && !s.partial && (a.Doubtful() || a.Free(now) <= a.Limit()/8+16) {
			return true
		}
	}
	return false
}

// WantsQuotas reports whether the quotas that a success of this attempt shows
// are worth reading: those of one call in a tenth of a second, and of every
// call while little is left. What shows a failure is always. It is for
// adapters, before they release the permit; what is told in Outcome.Quotas all
// the same is heard.
func (p *Permit) WantsQuotas() bool {
	f := p.flight
	return f != nil && f.looks
}

// shown is one quota that was heard of.
type shown struct {
	name, unit string
	heard      time.Duration
	allowance  *meter.Allowance // nil unless it can hold calls back
	rate       float64          // units per ns at most; 0 is not known
	window     time.Duration
	rated      time.Duration // when rate was said last
	partial    bool          // it concerns only some of the calls
	before     int64         // in flight when it was first heard of, so not in the count
	reset      time.Duration // said first in this window
	slides     bool          // the reset moves on with the clock, as of a sliding window
}

// instant is a gate's time as package quota wants it.
func instant(t time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(t) }

func since(t time.Time) time.Duration { return t.Sub(time.Unix(0, 0)) }

// learn takes in what the response to an attempt showed.
func (q *queue) learn(now time.Duration, f *flight, o *Outcome) {
	k := &q.learned
	if k.mode == LearnOff {
		return
	}
	wall := time.Now().Round(0)
	k.list = append(k.list[:0], o.Quotas...)
	for i := range k.list {
		s := &k.list[i]
		if !s.Reset.IsZero() {
			s.Reset = instant(now + min(max(s.Reset.Sub(wall), 0), quota.MaxDelay))
		}
		s.Limit, s.Remaining, s.Window = max(s.Limit, 0), max(s.Remaining, 0), max(s.Window, 0)
		about := k.named(s.Name, s.Unit)
		if about == nil && len(k.known) < maxLearned {
			about = &shown{name: s.Name, unit: s.Unit, before: q.inUse}
			k.known = append(k.known, about)
		}
		if about != nil {
			about.heard = now
			s.Remaining += q.serial(f, about)
			if a := about.allowance; a != nil && a.Doubtful() && f.granted >= a.Said() {
				k.state.Forget(s.Name) // this one was sent to see
			}
		}
	}
	k.state.Merge(quota.Reading{Quotas: k.list}, instant(f.granted), instant(now))
	if !k.mode.binds() {
		return
	}
	for _, s := range k.list {
		if about := k.named(s.Name, s.Unit); about != nil && !about.partial {
			if merged, ok := k.state.Quota(s.Name, instant(now)); ok {
				q.apply(now, about, merged)
			}
		}
	}
	if o.Answered {
		q.missed(now, f, len(o.Quotas) > 0)
	}
	q.lower(now)
}

// unread takes note of a response that came without being read: of those that
// are older than a count, one less is under way.
func (q *queue) unread(f *flight) {
	for _, s := range q.learned.known {
		q.serial(f, s)
	}
}

func (k *learned) named(name, unit string) *shown {
	for _, s := range k.known {
		if s.name == name && s.unit == unit {
			return s
		}
	}
	return nil
}

// serial is the count of the quota's units when the attempt was granted, its
// own included. Of those that are older than the count, all that have not
// answered yet are taken to have come after it.
func (q *queue) serial(f *flight, s *shown) int64 {
	if s.allowance != nil {
		for i := range f.paid {
			if f.paid[i].meter == meter.Meter(s.allowance) {
				return f.paid[i].charge.Serial()
			}
		}
	}
	if s.unit == Requests {
		s.before = max(s.before-f.weight, 0)
		return -s.before
	}
	return 0
}

// apply puts a quota in force.
func (q *queue) apply(now time.Duration, s *shown, said quota.Quota) {
	if said.HasLimit && said.Limit > 0 && said.Window > 0 {
		rate := float64(said.Limit) / float64(said.Window)
		if s.rate == 0 || rate <= s.rate || q.learned.mode == LearnFollow || now-s.rated >= quietAfter {
			s.rate, s.window, s.rated = rate, said.Window, now
		}
	}
	if !said.HasRemaining {
		return
	}
	r := meter.Remainder{Most: said.Remaining, Window: said.Window}
	if said.HasLimit {
		r.Limit = said.Limit
	}
	switch {
	case !said.Reset.IsZero():
		r.Reset = since(said.Reset)
	case said.Window > 0:
		r.Reset = now + said.Window
	}
	total := int64(0)
	if s.allowance != nil {
		total = s.allowance.Total()
	}
	switch {
	case s.reset <= now:
		s.reset = r.Reset
	case r.Reset > s.reset+2*time.Second: // which servers may round by
		s.slides = true
	}
	if left := max(said.Remaining-total, 0); (said.Bucket || s.slides) && r.Limit > 0 {
		switch {
		case said.Window > 0:
			r.Each = max(said.Window/time.Duration(r.Limit), 1)
		case r.Limit > left && r.Reset > now:
			r.Each = max((r.Reset-now)/time.Duration(r.Limit-left), 1)
		}
	}
	if s.allowance == nil {
		s.allowance = meter.NewAllowance()
		q.limits = append(q.limits, limit{Limit: Limit{Name: s.name, Unit: s.unit}, meter: s.allowance, learned: true})
		q.recount()
	}
	s.allowance.Say(now, r)
}

// missed finds the quotas of which a response to a later request is silent
// although it speaks of others: they concern only some of the calls, and
// nothing tells which, so they hold none back. One that was doubted and is not
// repeated is over.
func (q *queue) missed(now time.Duration, f *flight, speaks bool) {
	for _, s := range q.learned.known {
		if s.heard == now || s.heard >= f.granted {
			continue
		}
		s.partial = s.partial || speaks
		if s.allowance != nil && (s.partial || s.allowance.Doubtful()) {
			s.allowance.Lift()
		}
	}
}

// lower sets the share of each configured limit's pace that is left by what
// was said of its unit. Only windows that are no longer than its own count: a
// longer one is a stock, which the remainder takes care of.
func (q *queue) lower(now time.Duration) {
	changed := false
	for i := range q.limits {
		l := &q.limits[i]
		if l.learned || l.removed || l.Calendar != "" || l.N == 0 {
			continue
		}
		share := 1.0
		for _, s := range q.learned.known {
			stale := now-s.heard > quietAfter+s.window
			if s.rate > 0 && !s.partial && !stale && s.unit == l.unit() && s.window <= l.Per {
				share = min(share, s.rate/(float64(l.N)/float64(l.Per)))
			}
		}
		if l.share() != share {
			l.lowered, changed = 1-share, true
		}
	}
	if changed {
		q.pause.stretch = 0
		q.pace(now)
	}
}

// share is the part of the limit's pace that is left by what was learned.
func (l *limit) share() float64 { return 1 - l.lowered }

// forget ends the effect of all that was learned.
func (q *queue) forget() {
	for _, s := range q.learned.known {
		s.rate = 0
		if s.allowance != nil {
			s.allowance.Lift()
		}
	}
}

// renew forgets what was said, so that more than that is believed.
func (k *learned) renew() {
	for _, s := range k.known {
		k.state.Forget(s.name)
	}
}

// LearnedQuota is what is known of a quota of the provider.
type LearnedQuota struct {
	Name, Unit string
	// Limit and Remaining are units, -1 if not known. Remaining is less what
	// was granted since.
	Limit, Remaining int64
	// Window is the length of the quota's window, Reset in how long it is full
	// again, 0 if not known, and Age for how long nothing was heard of it.
	Window, Reset, Age time.Duration
	// Binds says that it holds calls back when nothing is left.
	Binds bool
}

// quotas lists what is known at now, sorted by name.
func (k *learned) quotas(now time.Duration) (list []LearnedQuota) {
	for _, known := range k.state.Quotas(instant(now)) {
		l := LearnedQuota{Name: known.Name, Unit: known.Unit, Limit: -1, Remaining: -1, Window: known.Window}
		if known.HasLimit {
			l.Limit = known.Limit
		}
		if !known.Reset.IsZero() {
			l.Reset = max(since(known.Reset)-now, 0)
		}
		s := k.named(known.Name, known.Unit)
		if known.HasRemaining {
			l.Remaining = max(known.Remaining, 0)
		}
		if s != nil {
			l.Age = now - s.heard
			if s.allowance != nil {
				if known.HasRemaining {
					l.Remaining = max(known.Remaining-s.allowance.Total(), 0)
				}
				l.Binds = !s.partial && s.allowance.Free(now) < math.MaxInt64/4
			}
		}
		list = append(list, l)
	}
	return list
}
