package runner

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/cost"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/metehttp"
)

// Spec is what the user said of a provider, or of every place that rows name
// without one.
type Spec struct {
	Base       *url.URL // nil for places that rows name themselves
	Auth       config.Auth
	Headers    []config.Header
	Gate       mete.Config
	Timeout    config.Timeout
	Idempotent bool
	MaxPause   time.Duration
	// Preset is the dialect of its headers and errors; Classify says what its
	// answers mean beside that, and RetryOn narrows what is repeated.
	Preset   string
	Classify classify.Rules
	RetryOn  []string
	// Costs is what a request costs in units other than requests. Bounds are
	// the units of Options.MaxCost, which every row must have a cost in.
	Costs  []cost.Rule
	Bounds []string
	// Fallback are the providers to ask in its place, in order; with one, a row
	// sits out no longer pause than MaxWait (0: mete.DefaultMaxWait; negative:
	// as long as without).
	Fallback []string
	MaxWait  time.Duration
}

// manyPlaces is how many places that rows name keep durable state and figures
// of their own; the rest share one line in the summary.
const manyPlaces = 64

// known is what is known of a provider before it is opened.
type known struct {
	name   string
	origin string // credentials go nowhere else
	spec   *Spec
}

// provider is one provider at work: its gate, its connections, and what it was
// asked so far.
type provider struct {
	known
	gate   *mete.Gate
	client http.RoundTripper
	admit  context.Context // ends when nothing more is to start
	park   context.CancelCauseFunc
	// isParked is under the run's mutex.
	isParked bool

	traffic traffic

	latency progress.Latency
	mu      sync.Mutex
	first   time.Time // start
	last    time.Time
	counts  progress.Provider
	denied  int // answers in a row that refuse the shared credential
	slow    sync.Once
	costs   []progress.Cost // by unit
}

// errParked ends the admission of a provider that cannot be used any more.
var errParked = errors.New("parked")

// places finds the provider of a row.
type places struct {
	named map[string]*provider
	other *Spec // for rows that name a place of their own
	usual string
	tls   *tls.Config
	admit context.Context
	note  func(string)

	mu      sync.Mutex
	byHost  map[string]*provider
	client  http.RoundTripper // of the places that rows name
	permits int               // of places that open from now on; 0 is as configured
}

func newPlaces(ctx context.Context, o *Options, note func(string)) (*places, error) {
	p := &places{named: map[string]*provider{}, other: &o.Other, usual: o.Provider, tls: o.TLS, admit: ctx, note: note, byHost: map[string]*provider{}}
	for name, spec := range o.Providers {
		prov, err := p.open(name, spec)
		if err != nil {
			return nil, err
		}
		prov.origin = mete.HostKey(spec.Base)
		prov.client = p.connections(spec)
		p.named[name] = prov
	}
	p.client = p.connections(p.other)
	return p, nil
}

// connections is a pool that keeps a connection for every permit.
func (p *places) connections(s *Spec) http.RoundTripper {
	t := metehttp.NewPool(s.Gate.MaxConcurrency())
	t.TLSClientConfig = p.tls
	t.ResponseHeaderTimeout = s.Timeout.TTFB
	connect := s.Timeout.Connect
	if connect <= 0 {
		connect = 5 * time.Second
	}
	t.DialContext = metehttp.Watched((&net.Dialer{Timeout: connect}).DialContext)
	t.TLSHandshakeTimeout = connect
	return t
}

func (p *places) open(name string, spec *Spec) (*provider, error) {
	cfg := spec.Gate
	cfg.Name = name
	cfg.MaxWait = -1 // rows wait as long as it takes
	gate, err := mete.New(cfg)
	if inUse, ok := errors.AsType[*mete.StateInUseError](err); ok {
		p.note(inUse.Error())
		cfg.State = ""
		gate, err = mete.New(cfg)
	}
	if err != nil {
		return nil, err
	}
	prov := &provider{known: known{name: name, spec: spec}, gate: gate}
	prov.admit, prov.park = context.WithCancelCause(p.admit)
	prov.counts.Name = name
	prov.counts.Concurrency = cfg.MaxConcurrency()
	for _, l := range cfg.Limits {
		per := float64(l.N) / l.Per.Seconds()
		if (l.Unit == "" || l.Unit == mete.Requests) && l.Per > 0 && (prov.counts.Limit == "" || per < prov.counts.LimitPerSecond) {
			prov.counts.Limit, prov.counts.LimitPerSecond = l.String(), per
		}
	}
	return prov, nil
}

// of returns the provider of a row: the one it names, the usual one, the one
// whose place its URL is, or one made for that place.
func (p *places) of(row *input.Row) (*provider, error) {
	name := row.Provider
	if name == "" {
		name = p.usual
	}
	if name != "" {
		if prov := p.named[name]; prov != nil {
			return prov, nil
		}
		return nil, errors.New("provider " + name + " is not configured")
	}
	return p.at(row.URL)
}

// next returns the provider of a redirect: the same while it stays at its
// place.
func (p *places) next(now *provider, u *url.URL) (*provider, error) {
	if now.origin == mete.HostKey(u) {
		return now, nil
	}
	return p.at(u)
}

// at returns the provider of a place.
func (p *places) at(u *url.URL) (*provider, error) {
	key := mete.HostKey(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	if prov := p.byHost[key]; prov != nil {
		return prov, nil
	}
	// Of several providers at one place the first by name.
	for _, name := range slices.Sorted(maps.Keys(p.named)) {
		if prov := p.named[name]; prov.origin == key {
			p.byHost[key] = prov
			return prov, nil
		}
	}
	spec := *p.other
	if len(p.byHost) >= manyPlaces {
		spec.Gate.State = ""
	}
	if p.permits > 0 {
		spec.Gate.Concurrency, spec.Gate.Adaptive = p.permits, nil
	}
	prov, err := p.open(key, &spec)
	if err != nil {
		return nil, err
	}
	prov.origin, prov.client = key, p.client
	p.byHost[key] = prov
	return prov, nil
}

// all lists the providers that were opened, in the order of their names.
func (p *places) all() []*provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*provider
	for _, prov := range p.named {
		list = append(list, prov)
	}
	for _, prov := range p.byHost {
		if prov.spec.Base == nil {
			list = append(list, prov)
		}
	}
	slices.SortFunc(list, func(a, b *provider) int {
		switch {
		case a.name < b.name:
			return -1
		case a.name > b.name:
			return 1
		}
		return 0
	})
	return list
}

func (p *places) close() error {
	var errs []error
	for _, prov := range p.all() {
		errs = append(errs, prov.gate.Close())
		prov.park(nil)
		if t, ok := prov.client.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
	return errors.Join(errs...)
}

// started books an attempt that went to the wire.
func (p *provider) started(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Starts++
	if p.first.IsZero() || at.Before(p.first) {
		p.first = at
	}
	if at.After(p.last) {
		p.last = at
	}
}

// paid books what an attempt cost that went to the wire at a time.
func (p *provider) paid(unit string, at time.Time, est, act int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cost(unit)
	c.Estimate += est
	c.True += act
	if !at.Before(p.last) {
		c.Last = act
	}
}

// unpriced counts an attempt whose true cost could not be told.
func (p *provider) unpriced(unit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cost(unit).Unknown++
}

func (p *provider) cost(unit string) *progress.Cost {
	i := slices.IndexFunc(p.costs, func(c progress.Cost) bool { return c.Unit == unit })
	if i < 0 {
		i = len(p.costs)
		p.costs = append(p.costs, progress.Cost{Unit: unit})
	}
	return &p.costs[i]
}

func (p *provider) retried() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Retries++
}

func (p *provider) throttled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Throttled++
}

func (p *provider) finished(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.counts.OK++
	} else {
		p.counts.Failed++
	}
}

// figures is what the provider was asked.
func (p *provider) figures() progress.Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	if !p.first.IsZero() {
		c.Sending = p.last.Sub(p.first)
	}
	c.Latency = p.latency.Quantiles()
	c.Limit, c.LimitPerSecond = pacing(p.spec.Gate.Limits, mete.Requests, c.Starts)
	c.Costs = p.costFigures()
	return c
}

// pacing is the limit that n units take longest under, and how many it lets
// start per second while they last: the shortest window paces its starts, the
// longer ones let N go and then close until the window is over.
func pacing(limits []mete.Limit, unit string, n int64) (text string, perSecond float64) {
	longest := -1.0
	for _, l := range limits {
		if unitOf(l) != unit || l.Per <= 0 || l.N <= 0 {
			continue
		}
		paced := true
		for _, o := range limits {
			paced = paced && (unitOf(o) != unit || o.Per <= 0 || o.Per >= l.Per)
		}
		rate := float64(l.N) / l.Per.Seconds()
		took := float64(max(n-1, 0)) / rate
		if !paced {
			took = float64(max(n-1, 0)/l.N) * l.Per.Seconds()
			if took > 0 {
				rate = float64(n-1) / took
			}
		}
		if took > longest {
			longest, text, perSecond = took, l.String(), rate
		}
	}
	return text, perSecond
}
