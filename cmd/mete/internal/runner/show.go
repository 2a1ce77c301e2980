package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/input"
)

// spec finds what is said of the provider of a row without opening it.
func (o *Options) spec(row *input.Row) (known, error) {
	name := row.Provider
	if name == "" {
		name = o.Provider
	}
	if name == "" {
		key := mete.HostKey(row.URL)
		for n, s := range o.Providers {
			if mete.HostKey(s.Base) == key {
				return known{n, key, s}, nil
			}
		}
		return known{key, key, &o.Other}, nil
	}
	s := o.Providers[name]
	if s == nil {
		return known{}, fmt.Errorf("provider %s is not configured", name)
	}
	return known{name, mete.HostKey(s.Base), s}, nil
}

// Check reports why a row could not be sent, as far as that can be known
// before anything is.
func (o *Options) Check(row *input.Row) error {
	p, err := o.spec(row)
	if err != nil {
		return err
	}
	call, err := p.call(row)
	if err != nil {
		return err
	}
	row.Estimate = call.Costs
	if err := p.serves(row.URL); err != nil || !o.falls(p.spec) || mete.HostKey(row.URL) != p.origin {
		return err
	}
	for _, name := range o.fallbacks(p.name, p.spec) {
		other := known{name: name, spec: o.Providers[name]}
		if _, err := other.call(row); err != nil {
			return fmt.Errorf("fallback %s: %w", name, err)
		}
	}
	return nil
}

// shownBody is how much of a body Show shows.
const shownBody = 400

// Show is the request of a row as text, without secrets.
func Show(o *Options, row *input.Row) (string, error) {
	p, err := o.spec(row)
	if err != nil {
		return "", err
	}
	q, err := (&run{o: o, salt: "<salt>"}).build(row, &p)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	id := row.ID
	if strings.ContainsFunc(id, unicode.IsControl) {
		id = strconv.Quote(id)
	}
	fmt.Fprintf(&b, "# row %s, line %d, provider %s\n%s %s\n", id, row.Line, p.name, q.method, q.shown)
	names := make([]string, 0, len(q.header))
	for name := range q.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range q.header[name] {
			if o.secretHeader(&p, name) {
				v = "***"
			}
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	switch {
	case q.file != "":
		fmt.Fprintf(&b, "\n(the %d bytes of %s)\n", q.size, q.file)
	case len(q.body) > 0 && !utf8.Valid(q.body):
		fmt.Fprintf(&b, "\n(%d bytes that are not text)\n", len(q.body))
	case len(q.body) > shownBody:
		fmt.Fprintf(&b, "\n%s… (%d bytes)\n", strings.ToValidUTF8(string(q.body[:shownBody]), ""), len(q.body))
	case len(q.body) > 0:
		fmt.Fprintf(&b, "\n%s\n", q.body)
	}
	return plain(b.String()), nil
}

// secretHeader reports whether a header of a request to p holds a secret, by
// its name or by where its value comes from.
func (o *Options) secretHeader(p *known, name string) bool {
	lower := strings.ToLower(name)
	for _, word := range []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key", "auth-key", "credential"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	if strings.EqualFold(p.spec.Auth.Header, name) {
		return true
	}
	for _, h := range slices.Concat(o.Headers, p.spec.Headers) {
		if h.Value.IsSecret() && strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

// plain is a text without what could steer a terminal.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}

// usual is what holds for rows that name no provider.
func (o *Options) usual() *Spec {
	if p := o.Providers[o.Provider]; p != nil {
		return p
	}
	return &o.Other
}

// Pace is how many requests the limits let start per second in the long run; 0
// is no limit. With several providers it is that of the usual one.
func (o *Options) Pace() (perSecond float64) {
	for _, l := range o.usual().Gate.Limits {
		if (l.Unit == "" || l.Unit == mete.Requests) && l.Per > 0 && l.N > 0 {
			if r := float64(l.N) / l.Per.Seconds(); perSecond == 0 || r < perSecond {
				perSecond = r
			}
		}
	}
	return perSecond
}

// Least is the shortest time in which the limits let rows through that cost
// costs, and the limit that says so. With several providers it takes all rows
// to go to the one that is named as usual, or to one place.
func (o *Options) Least(rows int64, costs map[string]int64) (time.Duration, string) {
	least, by := time.Duration(0), ""
	for _, l := range o.usual().Gate.Limits {
		n, ok := costs[unitOf(l)]
		if unitOf(l) == mete.Requests {
			n, ok = rows, true
		}
		if !ok || l.N <= 0 || l.Per <= 0 {
			continue
		}
		d := time.Duration(float64(max(n-max(l.Burst, 1), 0)) / float64(l.N) * float64(l.Per))
		if by == "" || d > least {
			least, by = d, l.String()
		}
	}
	return least, by
}
