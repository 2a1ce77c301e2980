package stub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Fault is a change to a running stub, the body of POST /stub/faults. Several
// can be given at once.
type Fault struct {
	Latency string `json:"latency"` // "2s" or "80ms..200ms"
	Outage  *bool  `json:"outage"`  // every accepted request is answered 503
	Drop    bool   `json:"drop"`    // every open connection is reset, once
	Knee    *int   `json:"knee"`    // 0 removes it
	Limit   string `json:"limit"`   // replaces the limit of the same period, or is added
	Clear   bool   `json:"clear"`   // first ends all earlier faults
	For     string `json:"for"`     // how long, "10s"; empty means until changed
}

const faultHelp = `write for example {"latency":"2s","for":"10s"}, {"outage":true,"for":"20s"}, {"drop":true}, {"knee":16}, {"limit":"20/s"} or {"clear":true}`

// faults are the settings that can change while the stub runs, and until when
// each differs from the configuration.
type faults struct {
	latency Latency
	knee    int
	outage  bool
	limited bool // the limits differ
	until   [4]int64
	next    int64 // the earliest of until
}

const (
	ofLatency = iota
	ofKnee
	ofOutage
	ofLimit
)

const forGood = math.MaxInt64

// ParseFault reads the body of POST /stub/faults.
func ParseFault(body []byte) (Fault, error) {
	var f Fault
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		what := strings.TrimPrefix(err.Error(), "json: ")
		if errors.Is(err, io.EOF) {
			what = "empty"
		}
		return f, fmt.Errorf("bad fault: %s: %s", oneLine(what), faultHelp)
	}
	if _, err := d.Token(); err != io.EOF {
		return f, fmt.Errorf("bad fault: something follows the object: %s", faultHelp)
	}
	if f == (Fault{}) || f == (Fault{For: f.For}) {
		return f, fmt.Errorf("bad fault: it changes nothing: %s", faultHelp)
	}
	if f.Knee != nil && *f.Knee < 0 {
		return f, fmt.Errorf("bad fault: knee %d: must not be negative", *f.Knee)
	}
	_, err := f.parse()
	return f, err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

type parsedFault struct {
	latency  Latency
	limit    Limit
	duration time.Duration // 0: for good
}

func (f Fault) parse() (p parsedFault, err error) {
	if f.Latency != "" {
		if p.latency, err = ParseLatency(f.Latency); err != nil {
			return p, fmt.Errorf("bad fault: latency: %w", err)
		}
	}
	if f.Limit != "" {
		if p.limit, err = ParseLimit(f.Limit); err != nil {
			return p, fmt.Errorf("bad fault: limit: %w", err)
		}
	}
	if f.For != "" {
		if p.duration, err = time.ParseDuration(f.For); err != nil || p.duration <= 0 {
			return p, fmt.Errorf(`bad fault: for: not a time: %q: write "10s"`, f.For)
		}
	}
	return p, nil
}

// SetFault changes a running stub from now on.
func (s *Server) SetFault(f Fault) error { return s.setFault(f, nil) }

func (s *Server) setFault(f Fault, from *conn) error {
	p, err := f.parse()
	if err != nil {
		return err
	}
	s.mu.Lock()
	l, now := &s.ledger, s.now()
	until := int64(forGood)
	if p.duration > 0 {
		until = now + int64(p.duration)
	}
	if now >= l.faults.next {
		l.expire(now)
	}
	if f.Clear {
		l.faults.until = [4]int64{}
		l.expire(now)
	}
	v := &l.faults
	if f.Latency != "" {
		v.latency, v.until[ofLatency] = p.latency, until
	}
	if f.Knee != nil {
		v.knee, v.until[ofKnee] = *f.Knee, until
	}
	if f.Outage != nil {
		v.outage, v.until[ofOutage] = *f.Outage, until
	}
	if f.Limit != "" {
		limits := slices.DeleteFunc(slices.Clone(l.quota.limits), func(o Limit) bool { return o.Per == p.limit.Per })
		l.setLimits(append(limits, p.limit), now)
		v.limited, v.until[ofLimit] = true, until
	}
	v.next = slices.Min(v.until[:])
	s.mu.Unlock()
	if f.Drop {
		s.drop(from)
	}
	return nil
}

// expire brings back the configured settings whose faults are over at t.
func (l *ledger) expire(t int64) {
	v := &l.faults
	for what, until := range v.until {
		if t < until {
			continue
		}
		v.until[what] = forGood
		switch what {
		case ofLatency:
			v.latency = l.cfg.Latency
		case ofKnee:
			v.knee = l.cfg.Knee
		case ofOutage:
			v.outage = false
		case ofLimit:
			if v.limited {
				v.limited = false
				l.setLimits(l.cfg.Limits, t)
			}
		}
	}
	v.next = slices.Min(v.until[:])
}
