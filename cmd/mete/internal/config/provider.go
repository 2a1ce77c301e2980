package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
)

// provider decodes one provider, beginning with the defaults.
func (d *decoder) provider(p pair, defaults Settings) Provider {
	name := p.key.text
	provider := Provider{Name: name}
	if p.value.kind == empty {
		d.errorf(p.key, "provider %q has no settings: it needs at least a url", name)
		return provider
	}
	s := d.section(p.value, "provider", "providers."+name)
	if s == nil {
		return provider
	}
	d.settings(s, &defaults, "providers."+name)
	if n := s["preset"]; n != nil {
		d.preset(n, &provider.Preset)
	}
	if n := s["idempotent"]; n != nil {
		provider.Idempotent, _ = d.truth(n, "idempotent")
	}
	if n := s["url"]; n != nil {
		provider.URL = d.url(n)
	} else if !s.has("url") {
		d.errorf(p.key, "provider %q has no url", name)
	}
	if n := s["auth"]; n != nil {
		provider.Auth = d.auth(n, "providers."+name+".auth")
	}
	if n := s["headers"]; n != nil {
		provider.Headers = d.headers(n, provider.Auth.Header)
	}
	if provider.Auth.Value.Reveal() != "" && plainHTTP(provider.Base()) {
		d.warnf(s["url"], "the credentials go over plain http: anyone on the way can read them")
	}
	provider.Timeout = defaults.Timeout
	provider.Cost = defaults.Cost
	provider.MaxPause = defaults.MaxPause
	provider.RetryOn, provider.Classify = defaults.RetryOn, defaults.Classify
	provider.Gate = mete.Config{
		Name:        name,
		Concurrency: defaults.Concurrency,
		Adaptive:    defaults.Adaptive,
		Limits:      d.limits(s, name),
		Retry:       defaults.Retry,
		Breaker:     defaults.Breaker,
		Learn:       defaults.Learn,
		Timeout:     defaults.Timeout.Attempt,
		MaxWait:     defaults.MaxWait,
		MaxQueue:    defaults.MaxQueue,
	}
	return provider
}

// settings decodes what defaults and a provider have in common, over what is
// in to already.
func (d *decoder) settings(s section, to *Settings, where string) {
	if n := s["headers_learn"]; n != nil {
		d.oneOf(n, "headers_learn", learnWords, (*string)(&to.Learn))
	}
	if n := s["breaker"]; n != nil {
		to.Breaker = d.breaker(n, where+".breaker")
	}
	if n := s["classify"]; n != nil {
		to.Classify = d.classify(n, where+".classify")
	}
	if n := s["concurrency"]; n != nil {
		d.concurrency(n, to)
	}
	if n := s["timeout"]; n != nil {
		d.timeout(n, &to.Timeout)
	}
	if n := s["cost"]; n != nil {
		d.costs(n, &to.Cost)
	}
	if n := s["retry"]; n != nil {
		d.retry(n, to)
	}
	if n := s["max_wait"]; n != nil {
		if wait, ok := d.duration(n, "max_wait", true); ok && wait == 0 {
			to.MaxWait = -1 // none: to the library 0 means its own default
		} else if ok {
			to.MaxWait = wait
		}
	}
	if n := s["max_pause"]; n != nil {
		set(&to.MaxPause)(d.duration(n, "max_pause", true))
	}
	if n := s["max_queue"]; n != nil {
		set(&to.MaxQueue)(d.bound(n, "max_queue"))
	}
}

// set returns a function that stores a value if it was good, so that a bad one
// leaves the default for the checks that follow.
func set[T any](to *T) func(T, bool) {
	return func(v T, ok bool) {
		if ok {
			*to = v
		}
	}
}

func (d *decoder) timeout(n *node, to *Timeout) {
	if !d.is(n, mapping, "timeout", "{attempt: 30s}") {
		return
	}
	s := d.section(n, "timeout", "timeout")
	for key, field := range map[string]*time.Duration{
		"connect": &to.Connect, "ttfb": &to.TTFB, "idle": &to.Idle, "attempt": &to.Attempt,
	} {
		if n := s[key]; n != nil {
			set(field)(d.duration(n, key, true))
		}
	}
	for _, phase := range []struct {
		key string
		t   time.Duration
	}{{"connect", to.Connect}, {"ttfb", to.TTFB}, {"idle", to.Idle}} {
		if at := s[phase.key]; at != nil && to.Attempt > 0 && phase.t >= to.Attempt {
			d.warnf(at, "%s %v is never reached: the attempt ends after %v", phase.key, phase.t, to.Attempt)
		}
	}
}

func (d *decoder) retry(n *node, settings *Settings) {
	if !d.is(n, mapping, "retry", "{attempts: 4}") {
		return
	}
	to := &settings.Retry
	s := d.section(n, "retry", "retry")
	if n := s["on"]; n != nil {
		settings.RetryOn = d.retryOn(n)
	}
	if n := s["attempts"]; n != nil {
		if n.kind == number && n.text == "0" {
			d.errorf(n, "attempts must be at least 1: it counts the first one, so 1 means no repetition")
		} else {
			set(&to.Attempts)(d.count(n, "attempts", 1))
		}
	}
	if n := s["budget"]; n != nil {
		set(&to.Budget)(d.share(n, "budget"))
	}
	if n := s["keep_permit"]; n != nil {
		set(&to.KeepPermit)(d.truth(n, "keep_permit"))
	}
	if n := s["backoff"]; n != nil {
		b := d.section(n, "backoff", "retry.backoff")
		if n := b["base"]; n != nil {
			set(&to.Base)(d.duration(n, "base", false))
		}
		if n := b["max"]; n != nil {
			set(&to.Max)(d.duration(n, "max", false))
		}
		if to.Base > to.Max {
			d.errorf(n, "the back-off's base %v is above its max %v", to.Base, to.Max)
		}
	}
}

// url decodes the base address. Its messages show no part of it: it may hold a
// secret that is none of a variable.
func (d *decoder) url(n *node) Secret {
	s, ok := d.freeText(n, "url")
	if !ok {
		return s
	}
	u, err := url.Parse(strings.TrimSpace(s.Reveal()))
	switch {
	case err != nil:
		d.errorf(n, "not a URL: write it as in https://api.example.com/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		d.errorf(n, "the url must begin with https:// or http://")
	case u.Hostname() == "":
		d.errorf(n, "the url names no host")
	case u.User != nil:
		d.errorf(n, "the url must not hold a user or password: use auth: {header: Authorization, value: ...}")
	case u.RawQuery != "" || u.ForceQuery:
		d.errorf(n, "the url is a base and must not have a query: a key goes into auth: {query: NAME, value: ...}")
	case u.Fragment != "":
		d.errorf(n, "the url must not have a fragment (#...)")
	default:
		clean := newSecret(strings.TrimSpace(s.Reveal()))
		clean.plain = s.plain
		return clean
	}
	return Secret{}
}

// plainHTTP reports whether u sends to another machine without TLS.
func plainHTTP(u *url.URL) bool {
	if u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}

func (d *decoder) auth(n *node, where string) Auth {
	var a Auth
	if !d.is(n, mapping, where, `{header: Authorization, value: "Bearer ${TOKEN}"}`) {
		return a
	}
	s := d.section(n, "auth", where)
	switch {
	case s.has("header") && s.has("query"):
		d.errorf(n, "%s has header and query: choose one", where)
	case !s.has("header") && !s.has("query"):
		d.errorf(n, "%s must say where the value goes: header: Authorization, or query: key", where)
	}
	if at := s["header"]; at != nil {
		if a.Header, _ = d.word(at, "header"); a.Header != "" {
			d.headerName(at, a.Header)
		}
	}
	if at := s["query"]; at != nil {
		a.Query, _ = d.word(at, "query")
	}
	for _, key := range []string{"header", "query"} {
		if at := s[key]; at != nil && strings.TrimSpace(at.text) == "" {
			d.errorf(at, "%s must not be empty", key)
		}
	}
	at := s["value"]
	if at == nil {
		if !s.has("value") {
			d.errorf(n, `%s has no value: write value: "${TOKEN}"`, where)
		}
		return a
	}
	v, ok := d.credential(at, "value")
	switch {
	case !ok:
	case v.Reveal() == "":
		d.errorf(at, "value must not be empty")
	case a.Header != "" && !headerValue(v.Reveal()):
		d.errorf(at, "value holds a character that a header cannot carry, such as a line break")
	}
	a.Value = v
	return a
}

// credential is freeText that is secret even when it was written plainly; then
// it deserves a warning.
func (d *decoder) credential(n *node, what string) (Secret, bool) {
	s, ok := d.freeText(n, what)
	if !ok || !s.plain || s.Reveal() == "" {
		s.plain = false
		return s, ok
	}
	d.warnf(n, "a secret stands in the file: use ${VAR} or ${file:/path}")
	d.secret.add(s.Reveal())
	if _, token, found := strings.Cut(s.Reveal(), " "); found {
		d.secret.add(token) // "Bearer abc": abc may come back alone
	}
	s.plain = false
	return s, true
}

func (d *decoder) headers(n *node, auth string) []Header {
	if !d.is(n, mapping, "headers", "{name: value}") {
		return nil
	}
	var all []Header
	for _, p := range n.pairs {
		name := p.key.text
		same := func(h Header) bool { return strings.EqualFold(h.Name, name) }
		switch {
		case p.key.kind == refused || p.value.kind == refused:
			continue
		case !d.headerName(p.key, name):
			continue
		case slices.ContainsFunc(all, same):
			d.errorf(p.key, "header %q is there already", name)
			continue
		case strings.EqualFold(name, auth):
			d.errorf(p.key, "header %q is set by auth already", name)
			continue
		case p.value.kind == empty:
			d.errorf(p.key, `header %q has no value: write "" for an empty one`, name)
			continue
		}
		read := d.freeText
		if secretKey.MatchString(name) {
			read = d.credential
		}
		v, ok := read(p.value, "header "+name)
		if ok && !headerValue(v.Reveal()) {
			d.errorf(p.value, "header %q holds a character that no header can carry, such as a line break", name)
		}
		all = append(all, Header{name, v})
	}
	return all
}

// headerName checks a name: a token as in RFC 9110, 5.6.2, and none that the
// connection itself needs.
func (d *decoder) headerName(n *node, name string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || strings.ContainsRune(marks, r))
	})
	switch {
	case name == "" || bad:
		d.errorf(n, "%q cannot be the name of a header", name)
		return false
	case slices.Contains(hopByHop, strings.ToLower(name)):
		d.errorf(n, "header %q belongs to the connection and cannot be set", name)
		return false
	}
	return true
}

// hopByHop are the fields of RFC 9110, 7.6.1, and the length of the body.
var hopByHop = []string{"connection", "content-length", "keep-alive", "proxy-authenticate", "proxy-authorization",
	"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}

func headerValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
