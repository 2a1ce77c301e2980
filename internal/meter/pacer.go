package meter

import (
	"math"
	"math/bits"
	"time"
)

// pacer keeps theoretical start times span/units apart per unit. It is the
// generic cell rate algorithm (ITU-T I.371) in exact arithmetic: the part of a
// nanosecond that a start time leaves over is carried on in due and frac, so
// that no rate is off by rounding and a delay that was announced suffices.
type pacer struct {
	span  time.Duration // in which units may start
	units int64
	due   time.Duration // next theoretical start: due + frac/units ns
	frac  int64
	kept  time.Duration // worth of the burst that is not given while stretched
}

// length is the time that n units take, as nanoseconds and a rest of 1/units.
func (p *pacer) length(n int64) (time.Duration, int64) {
	hi, lo := bits.Mul64(uint64(n), uint64(p.span))
	if hi >= uint64(p.units) {
		return Later / 2, 0
	}
	q, r := bits.Div64(hi, lo, uint64(p.units))
	if q > uint64(Later/2) {
		return Later / 2, 0
	}
	return time.Duration(q), int64(r)
}

// ready is the first whole nanosecond at or after the due time less the time
// of n units.
func (p *pacer) ready(early int64) time.Duration {
	due, frac := p.due, p.frac
	if early > 0 {
		d, f := p.length(early)
		due, frac = minus(due, d), frac-f
	}
	if frac > 0 {
		return due + 1
	}
	return due
}

// push moves the due time on by n units. A start that is late by more than
// credit begins a new row of start times at now: nothing is made up. What is
// kept of a burst is taken away from whoever has saved up more.
func (p *pacer) push(now, credit time.Duration, n int64) {
	if from := plus(now, p.kept); p.due < from-credit {
		p.due, p.frac = from, 0
	}
	d, f := p.length(n)
	p.due, p.frac = plus(p.due, d), p.frac+f
	if p.frac >= p.units {
		p.due, p.frac = p.due+1, p.frac-p.units
	}
}

// pull moves the due time back by n units.
func (p *pacer) pull(n int64) {
	if p.due == fresh {
		return
	}
	d, f := p.length(n)
	p.due, p.frac = minus(p.due, d), p.frac-f
	if p.frac < 0 {
		p.due, p.frac = p.due-1, p.frac+p.units
	}
}

// respan changes the distance of starts. What is still to be waited for at now
// keeps its worth in units.
func (p *pacer) respan(now, span time.Duration, units int64) {
	if left := p.due - now; p.due > now && p.units > 0 && p.span > 0 && units > 0 {
		owed := float64(left) / float64(p.span) * float64(p.units)
		p.due = plus(now, ceil(owed/float64(units)*float64(span)))
	}
	p.span, p.units, p.frac = span, units, 0
}

// keep holds back the part of a burst that goes beyond burst / factor. A
// burst that was used is not made up for first: it only saves up less.
func (p *pacer) keep(burst int64, factor float64) {
	p.kept = 0
	if p.units > 0 && factor > 1 {
		p.kept, _ = p.length(burst - max(int64(math.Ceil(float64(burst)/factor)), 1))
	}
}

func ceil(ns float64) time.Duration {
	if ns >= float64(Later/2) {
		return Later / 2
	}
	d := time.Duration(ns)
	if float64(d) < ns {
		d++
	}
	return d
}

func plus(t, d time.Duration) time.Duration {
	if t > Later-1-d {
		return Later - 1
	}
	return t + d
}

func minus(t, d time.Duration) time.Duration {
	if t < fresh+d {
		return fresh
	}
	return t - d
}
