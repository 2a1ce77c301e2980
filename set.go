package mete

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"

	"github.com/metehq/mete/breaker"
)

// SetConfig describes a Set.
type SetConfig struct {
	// Gate is the configuration of every gate; its Name is replaced by the key.
	Gate Config
	// MaxKeys is how many gates there are at most; 0 means 10,000. Keys beyond
	// it share one overflow gate with the same limits.
	MaxKeys int
	// Idle is after how long a gate with nothing in force is forgotten; 0
	// means a minute.
	Idle time.Duration
}

// Set is one gate per key: per host, per tenant. Gates are made when they are
// first asked for and forgotten when they have been idle, but never while
// anything of them is in force: a call in flight or waiting, a pause, or a
// part of a limit that is used up.
type Set struct {
	cfg SetConfig

	mu       sync.Mutex
	gates    map[string]*member
	overflow *Gate
	swept    time.Time
	spilled  int64
}

type member struct {
	gate *Gate
	used time.Time
}

// overflowKey is the name of the gate that all keys beyond the cap share.
const overflowKey = "(other)"

// NewSet returns an empty set. The error is a mistake in the configuration.
func NewSet(cfg SetConfig) (*Set, error) {
	if err := cfg.Gate.check(); err != nil {
		return nil, err
	}
	if cfg.MaxKeys <= 0 {
		cfg.MaxKeys = 10_000
	}
	if cfg.Idle <= 0 {
		cfg.Idle = time.Minute
	}
	return &Set{cfg: cfg, gates: map[string]*member{}, swept: time.Now()}, nil
}

// Gate returns the gate of the key. It does not block on any gate's queue; the
// error is a state folder that cannot be used. Ask for the gate at each call:
// one that was forgotten refuses with ErrDraining.
func (s *Set) Gate(key string) (*Gate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if m := s.gates[key]; m != nil {
		m.used = now
		return m.gate, nil
	}
	if len(s.gates) >= s.cfg.MaxKeys || now.Sub(s.swept) >= s.cfg.Idle {
		s.sweep(now)
	}
	if len(s.gates) >= s.cfg.MaxKeys {
		s.spilled++
		if s.overflow == nil {
			g, err := s.make(overflowKey)
			if err != nil {
				return nil, err
			}
			s.overflow = g
		}
		return s.overflow, nil
	}
	g, err := s.make(key)
	if err != nil {
		return nil, err
	}
	s.gates[key] = &member{gate: g, used: now}
	return g, nil
}

func (s *Set) make(key string) (*Gate, error) {
	cfg := s.cfg.Gate
	cfg.Name = key
	return New(cfg)
}

// sweep forgets what is idle. It looks at every gate, at most once per tenth
// of Idle, so that a flood of keys cannot make every call pay for it.
func (s *Set) sweep(now time.Time) {
	if now.Sub(s.swept) < s.cfg.Idle/10 {
		return
	}
	s.swept = now
	for key, m := range s.gates {
		if now.Sub(m.used) >= s.cfg.Idle && m.gate.forgettable(now.Sub(m.used)) {
			_ = m.gate.Close()
			delete(s.gates, key)
		}
	}
}

// forgettable reports whether a new gate would be as good as this one, which
// has been idle for a while. What was learned of the provider's ways is good
// for ten minutes.
func (g *Gate) forgettable(idle time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	q := &g.q
	q.pace(now)
	if q.inUse > 0 || q.waiting > 0 || q.pause.closed(now) > now || q.pause.rampFrom > 0 || q.pause.search.on {
		return false
	}
	if q.circuit.Ready(now) > now || idle < quietAfter && (q.auto != nil || q.pause.probing || q.circuit.State(now) != breaker.Closed) {
		return false
	}
	q.lower(now)
	for i := range q.limits {
		if q.limits[i].lowered > 0 || len(q.limits[i].meter.Spent(now)) > 0 {
			return false
		}
	}
	return true
}

// Gates returns the gates that exist now, the overflow gate included.
func (s *Set) Gates() []*Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Gate
	for _, m := range s.gates {
		list = append(list, m.gate)
	}
	if s.overflow != nil {
		list = append(list, s.overflow)
	}
	return list
}

// Spilled is how many times a key had to share the overflow gate.
func (s *Set) Spilled() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spilled
}

// Close closes all gates.
func (s *Set) Close() error {
	var first error
	for _, g := range s.Gates() {
		if err := g.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// HostKey is the key of the place that a URL connects to: scheme, host and
// port. However it is spelt, one place has one key: the host is in lower case
// and ASCII and has no trailing dot, the port is always there, and what else a
// URL holds (user, path, query) is left out.
func HostKey(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	port := strings.TrimLeft(u.Port(), "0")
	if port == "" {
		switch scheme {
		case "http", "ws":
			port = "80"
		case "https", "wss":
			port = "443"
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
