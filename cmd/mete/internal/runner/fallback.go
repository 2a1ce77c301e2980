package runner

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/metehttp"
)

// A row is asked of its own provider and, when that cannot answer, of its
// fallbacks in order. It moves on
//
//   - when the provider does not take it: it is paused for longer than its
//     MaxWait, parked, its breaker is open, or a quota or budget is used up;
//   - when an attempt there failed for good in a way that may be repeated, or
//     before anything was sent.
//
// It never moves on after an answer that is the row's own fault, nor where
// nobody knows whether the provider has done what it was asked and a
// repetition is not safe. All its providers share the attempts of the first,
// which leaves one to each that may follow.
//
// Where nobody takes a row it waits for whoever opens first.

// elsewhere is the error of a row that its provider does not take.
type elsewhere struct{ refusal *mete.Rejected }

func (*elsewhere) Error() string { return "not taken by its provider" }

// route is the way of one row through its providers.
type route struct {
	list    []*provider
	refused []*mete.Rejected // by provider: why it did not take the row
	asked   []bool
	at      int
	left    int  // attempts
	last    bool // nobody else takes the row: it waits
	failed  bool // it has been sent, and has failed
}

// falls reports whether a provider may have fallbacks at all.
func (o *Options) falls(s *Spec) bool { return len(o.Fallback) > 0 || len(s.Fallback) > 0 }

// fallbacks are the names of a provider's fallbacks in order, theirs in turn
// included. With --fallback they are those, for every provider.
func (o *Options) fallbacks(name string, s *Spec) []string {
	list := []string{}
	if len(o.Fallback) > 0 {
		for _, f := range o.Fallback {
			if f != name {
				list = append(list, f)
			}
		}
		return list
	}
	var add func(s *Spec)
	add = func(s *Spec) {
		for _, f := range s.Fallback {
			if next := o.Providers[f]; next != nil && f != name && !slices.Contains(list, f) {
				list = append(list, f)
				add(next)
			}
		}
	}
	add(s)
	return list
}

// route begins the way of a row. A row that leads away from its provider has
// nowhere else to go.
func (r *run) route(row *input.Row, p *provider) *route {
	w := &route{list: []*provider{p}, left: max(p.spec.Gate.Retry.Attempts, 1)}
	if r.o.falls(p.spec) && mete.HostKey(row.URL) == p.origin {
		for _, name := range r.o.fallbacks(p.name, p.spec) {
			w.list = append(w.list, r.places.named[name])
		}
	}
	w.refused, w.asked = make([]*mete.Rejected, len(w.list)), make([]bool, len(w.list))
	return w
}

// send asks the providers of a row until one answers.
func (r *run) send(rec *record.Record, row *input.Row, p *provider) error {
	w := r.route(row, p)
	if done, err := r.fromCache(rec, row, w); done {
		return err
	}
	for w.next(r) {
		err := r.ask(rec, row, w)
		e, ok := errors.AsType[*elsewhere](err)
		switch {
		case ok && e.refusal != nil:
			w.refused[w.at] = e.refusal
			r.moved(w, "", e.refusal)
		case ok:
		case errors.Is(err, errUnfinished) && len(w.list) > 1 && r.parkedAlone(w.list[w.at]):
			r.moved(w, "it cannot be used any more", &mete.Rejected{RetryAfter: forever})
		default:
			return err
		}
	}
	return r.nowhere(rec, w)
}

// next goes to the first provider that was not asked yet; then, for good, to
// the one that takes the row soonest.
func (w *route) next(r *run) bool {
	if w.last || w.left <= 0 {
		return false
	}
	for i, p := range w.list {
		if !w.asked[i] && !r.parkedAlone(p) {
			w.at, w.asked[i] = i, true
			w.last = len(w.list) == 1
			return true
		}
	}
	soonest := time.Duration(-1)
	for i, p := range w.list {
		e, most := w.refused[i], p.spec.MaxPause
		if e == nil || r.parkedAlone(p) || p.budget(e) != nil || most > 0 && e.RetryAfter > most {
			continue
		}
		if soonest < 0 || e.RetryAfter < soonest {
			soonest, w.at, w.last = e.RetryAfter, i, true
		}
	}
	return w.last
}

// ready counts the providers after the present one that would take the row.
func (w *route) ready(r *run) (n int) {
	for i, p := range w.list {
		if !w.asked[i] && !r.parkedAlone(p) && (p.patience() == 0 || p.gate.Stats().Paused <= p.patience()) {
			n++
		}
	}
	return n
}

// follows reports whether somebody takes the row after an attempt that failed:
// a provider that was not asked yet, or in the end the one that refused e, which
// is noted, because it asks for more patience than a row with others has.
func (w *route) follows(r *run, tries *mete.Tries, e *elsewhere) bool {
	refusal, ok := errors.AsType[*mete.Rejected](tries.Refusal())
	if ok && refusal.Reason == mete.Paused {
		e.refusal = refusal
	}
	return w.ready(r) > 0 || e.refusal != nil && !w.last
}

// call is what the row asks of the gate: with others to ask it is less patient.
func (w *route) call(p *provider, row *input.Row) (mete.Call, error) {
	c, err := p.call(row)
	c.MaxPause, c.Patient = p.spec.MaxPause, w.last // where it waits, for the breaker too
	if most := p.patience(); !w.last && most > 0 && (c.MaxPause == 0 || most < c.MaxPause) {
		c.MaxPause = most
	}
	return c, err
}

// callAt is what the row asks of a gate that a redirect leads to, with what it
// costs there. The row's lane need not be known there.
func (w *route) callAt(p *provider, row *input.Row) (mete.Call, error) {
	if !p.hasLane(row.Lane) {
		there := *row
		there.Lane, row = "", &there
	}
	return w.call(p, row)
}

// patience is the longest pause that a row with a fallback sits out; 0 is any.
func (p *provider) patience() time.Duration {
	switch {
	case p.spec.MaxWait < 0:
		return 0
	case p.spec.MaxWait == 0:
		return mete.DefaultMaxWait
	}
	return p.spec.MaxWait
}

// parkedAlone reports whether a provider cannot be used any more while the run
// goes on.
func (r *run) parkedAlone(p *provider) bool {
	return p.admit.Err() != nil && r.places.admit.Err() == nil
}

// ask makes the calls of one row at one provider: one, and one for each
// redirect.
func (r *run) ask(rec *record.Record, row *input.Row, w *route) error {
	p := w.list[w.at]
	rec.Provider, rec.Fallback = p.name, w.at
	q, err := r.request(row, &w.list[0].known, &p.known)
	if err != nil {
		rec.URL = r.shown(row.URL)
		return r.fail(rec, record.Render, "render", err.Error())
	}
	rec.URL = q.shown
	call, err := w.call(p, row)
	if err != nil {
		return r.fail(rec, record.InvalidRow, "admission", err.Error())
	}
	q.row, q.costs = row, call.Costs
	key, keep := cache.Key{}, false
	if r.o.Cache != nil {
		key, keep = r.cacheKey(row, p, q)
	}
	repeatable := idempotent(q.method) || q.keyed || r.o.Idempotent || p.spec.Idempotent
	for hop := 0; ; hop++ {
		tries := p.gate.Tries(p.admit, call)
		most := max(w.left-w.ready(r), 1)
		permit, x, err := r.attempts(rec, p, tries, q, most)
		w.left -= tries.Attempts()
		if err != nil || permit == nil {
			if _, ok := errors.AsType[*elsewhere](err); ok && hop > 0 && !repeatable {
				return errUnfinished
			}
			return err // it was refused, and has its record
		}
		to := ""
		if x.attempt.Err == nil && x.verdict.rule == nil {
			to = redirected(x)
		}
		if e := (&elsewhere{}); to == "" && w.left > 0 && (hop == 0 || repeatable) && movable(q, x) && w.follows(r, tries, e) {
			if e.refusal == nil {
				r.moved(w, string(rec.Tries[len(rec.Tries)-1].Error), nil)
			}
			w.failed = true
			r.discard(x)
			permit.Release()
			return e
		}
		if to == "" || hop == 10 {
			if to != "" {
				rec.Error = &record.Error{Kind: record.Redirect, Phase: "redirect", Message: errTooManyRedirects.Error()}
			}
			r.returned(w, x)
			if keep {
				r.store(rec, key, x)
			}
			err := r.finish(rec, p, x)
			permit.Release()
			return err
		}
		// The next hop is a call of its own, and nothing is held for it.
		next, at, err := r.follow(q, p, x.status, to)
		if err == nil && at != p {
			if call, err = w.callAt(at, row); err == nil {
				next.costs = call.Costs
			}
		}
		if err != nil {
			rec.Error = &record.Error{Kind: record.Redirect, Phase: "redirect", Message: err.Error()}
			err := r.finish(rec, p, x)
			permit.Release()
			return err
		}
		permit.Release()
		r.discard(x)
		q, p = next, at
		w.left++ // a redirect is no repetition
	}
}

func idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// movable reports whether a failure may be followed by an attempt elsewhere.
func movable(q *request, x *exchanged) bool {
	v := &x.verdict
	switch {
	case v.Repeat:
		return true
	case v.Terminal, v.Throttled:
		return true // the provider refuses everybody, and has done nothing
	case v.rule != nil:
		return q.shared && v.rule.As == classify.Auth // whatever the status
	case x.attempt.Response != nil:
		return q.shared && (x.status == http.StatusUnauthorized || x.status == http.StatusPaymentRequired)
	}
	// What was not sent here may be sent there, also where it would fail here
	// again.
	class := metehttp.Class(v.kind)
	return x.sent.IsZero() && (class == metehttp.DNS || class == metehttp.Connect || class == metehttp.TLS)
}

// request makes the request of a row for one of its providers: for another one
// than its own, with the path below that one's base, and without the row's
// credentials.
func (r *run) request(row *input.Row, own, p *known) (*request, error) {
	if p == own {
		return r.build(row, p)
	}
	there := *row
	there.URL = moveURL(row.URL, own.spec.Base, p.spec.Base, own.spec.Auth.Query)
	there.Host = ""
	q, err := r.build(&there, p)
	if err != nil || p.origin == own.origin {
		return q, err
	}
	r.dropCredentials(q.header, func(name string) bool {
		for _, h := range p.spec.Headers {
			if strings.EqualFold(h.Name, name) {
				return true
			}
		}
		return strings.EqualFold(p.spec.Auth.Header, name)
	})
	return q, nil
}

// moveURL is what u, which is below or beside the base from, is at the base to.
func moveURL(u, from, to *url.URL, secret string) *url.URL {
	moved := *to
	moved.Fragment, moved.RawFragment = "", ""
	rest := u.EscapedPath()
	if from != nil {
		base := strings.TrimSuffix(from.EscapedPath(), "/")
		if below, ok := strings.CutPrefix(rest, base); ok && (below == "" || below[0] == '/') {
			rest = below
		}
	}
	path := strings.TrimSuffix(to.EscapedPath(), "/") + rest
	if rest == "" {
		path = to.EscapedPath()
	}
	if plain, err := url.PathUnescape(path); err == nil {
		moved.Path, moved.RawPath = plain, path
	}
	moved.RawQuery = u.RawQuery
	if secret != "" && u.RawQuery != "" {
		moved.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(pair string) bool {
			name, _, _ := strings.Cut(pair, "=")
			name, _ = url.QueryUnescape(name)
			return name == secret
		}), "&")
	}
	return &moved
}

// nowhere ends a row that no provider takes.
func (r *run) nowhere(rec *record.Record, w *route) error {
	if r.places.admit.Err() != nil {
		return errUnfinished
	}
	for i, p := range w.list {
		if e := w.refused[i]; e != nil && e.RetryAfter > 0 {
			r.spent(p, e)
		}
	}
	if !w.failed {
		return errUnfinished
	}
	last := rec.Tries[len(rec.Tries)-1]
	rec.Provider, rec.Status = last.Provider, last.Status
	rec.Error = &record.Error{Kind: last.Error, Phase: "request", Retryable: true,
		Message: fmt.Sprintf("the last attempt failed (%s), and no other provider can be used", last.Error)}
	return r.write(rec, w.list[w.at])
}
