package runner

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/cost"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// request is what a row asks for, ready to be sent any number of times.
type request struct {
	method string
	url    *url.URL
	shown  string // the URL without secrets
	host   string
	header http.Header
	body   []byte
	file   string // or a file to stream
	size   int64
	has    bool
	keyed  bool // the row's own Idempotency-Key: a repetition counts as one
	shared bool // it carries a credential that other rows carry too
	// timeout of an attempt; 0 is the provider's.
	timeout time.Duration
	row     *input.Row
	costs   map[string]int64 // estimated, by unit
}

// priced is what the true cost may depend on.
func (q *request) priced() *cost.Request { return priced(q.row) }

// build makes the request of a row for its provider. The error is a mistake in
// the row.
func (r *run) build(row *input.Row, p *known) (*request, error) {
	q := &request{method: row.Method, url: row.URL, host: row.Host, body: row.Body, file: row.BodyFile, size: row.BodySize, has: row.HasBody, timeout: row.Timeout}
	q.header = make(http.Header, len(row.Header)+4)
	for _, h := range r.o.Headers {
		q.header.Add(h.Name, h.Value.Reveal())
	}
	for _, h := range p.spec.Headers {
		q.header.Set(h.Name, h.Value.Reveal())
	}
	for name, values := range row.Header {
		q.header[name] = values
	}
	if row.ContentType != "" && q.header.Get("Content-Type") == "" {
		q.header.Set("Content-Type", row.ContentType)
	}
	if q.header.Get("User-Agent") == "" {
		q.header.Set("User-Agent", r.o.UserAgent)
	}
	if name := r.o.IdempotencyHeader; name != "" {
		switch {
		case row.IdempotencyKey != "":
			q.header.Set(name, row.IdempotencyKey)
		case q.method == http.MethodPost && q.header.Get(name) == "":
			// One key for all attempts and resumes, another for other outputs.
			q.header.Set(name, "mete-"+r.salt+"-"+hex.EncodeToString(row.Key[:8]))
		}
	}
	q.keyed = row.IdempotencyKeyGiven()
	if err := q.authorize(p); err != nil {
		return nil, err
	}
	q.shown = r.shown(q.url)
	q.shared = p.spec.Auth.Value.Reveal() != ""
	for _, h := range slices.Concat(r.o.Headers, p.spec.Headers) {
		q.shared = q.shared || row.Header.Get(h.Name) == "" && r.o.secretHeader(p, h.Name)
	}
	return q, nil
}

// serves reports that a request for u must not get the provider's credential,
// because it goes somewhere else.
func (p *known) serves(u *url.URL) error {
	if a := &p.spec.Auth; a.Header == "" && a.Query == "" {
		return nil
	}
	if key := mete.HostKey(u); key != p.origin {
		return fmt.Errorf("the row goes to %s, but provider %s is %s: its credentials are not sent there", key, p.name, p.origin)
	}
	return nil
}

// authorize adds the provider's credential.
func (q *request) authorize(p *known) error {
	if err := p.serves(q.url); err != nil {
		return err
	}
	a := &p.spec.Auth
	if a.Header != "" {
		q.header.Set(a.Header, a.Value.Reveal())
	}
	if a.Query != "" {
		u := *q.url
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += url.QueryEscape(a.Query) + "=" + url.QueryEscape(a.Value.Reveal())
		q.url = &u
	}
	return nil
}

// shown is a URL without what is secret in it.
func (r *run) shown(u *url.URL) string {
	return r.o.Mask(record.MaskURL(u.String(), r.secretParameter))
}

func (r *run) secretParameter(name string) bool {
	switch strings.ToLower(name) {
	case "key", "api_key", "apikey", "api-key", "token", "access_token", "secret", "password", "signature", "sig":
		return true
	}
	for _, s := range r.o.Providers {
		if s.Auth.Query != "" && strings.EqualFold(s.Auth.Query, name) {
			return true
		}
	}
	return false
}

// http makes the request for one attempt. What net/http may send again by
// itself, when a kept-alive connection breaks, is up to GetBody: only a request
// whose repetition is safe has it.
func (q *request) http(ctx context.Context, safe bool) (*http.Request, error) {
	header := q.header // which a RoundTripper leaves as it is
	if !safe {
		header = hideKey(header)
	}
	req := (&http.Request{
		Method:     q.method,
		URL:        q.url,
		Host:       q.host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}).WithContext(ctx)
	if !q.has || q.length() == 0 {
		return req, nil
	}
	body, err := q.open()
	if err != nil {
		return nil, err
	}
	req.Body, req.ContentLength = body, q.length()
	if safe {
		req.GetBody = q.open
	}
	return req, nil
}

// hideKey is h in which net/http does not take our own Idempotency-Key for the user's
// word that a repetition is safe: it looks for the name in this spelling alone,
// and sends what it finds in any other as it is. (A request without a body has
// no GetBody to leave out.)
func hideKey(h http.Header) http.Header {
	hidden := h
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := h[name]; ok {
			hidden = maps.Clone(hidden)
			delete(hidden, name)
			hidden[strings.ToLower(name)] = v
		}
	}
	return hidden
}

func (q *request) length() int64 {
	if q.file != "" {
		return q.size
	}
	return int64(len(q.body))
}

func (q *request) open() (io.ReadCloser, error) {
	if q.file == "" {
		return io.NopCloser(bytes.NewReader(q.body)), nil
	}
	f, err := os.Open(q.file)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Size() != q.size {
		f.Close()
		return nil, fmt.Errorf("%s: %d bytes, but %d when the row was read", q.file, info.Size(), q.size)
	}
	return f, nil
}

// redirect turns q into the request that a redirect asks for (RFC 9110, 15.4).
func (r *run) redirect(q *request, status int, location string) (*request, error) {
	to, err := q.url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("the redirect leads to no URL")
	}
	if to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("the redirect leads to %s", r.shown(to))
	}
	next := *q
	next.url, next.host, next.shown = to, "", r.shown(to)
	next.header = q.header.Clone()
	if status == 303 || ((status == 301 || status == 302) && q.method == http.MethodPost) {
		if q.method != http.MethodHead {
			next.method = http.MethodGet
		}
		next.has, next.body, next.file = false, nil, ""
		next.header.Del("Content-Type")
	}
	if mete.HostKey(to) != mete.HostKey(q.url) {
		next.shared = false
		r.dropCredentials(next.header, func(string) bool { return false })
	}
	return &next, nil
}

// dropCredentials takes the credentials off a request that goes elsewhere, save
// those that keep names.
func (r *run) dropCredentials(h http.Header, keep func(name string) bool) {
	drop := func(name string) {
		if !keep(name) {
			h.Del(name)
		}
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization", "Www-Authenticate"} {
		drop(name)
	}
	for _, s := range r.o.Providers {
		if s.Auth.Header != "" {
			drop(s.Auth.Header)
		}
	}
	for _, h := range r.o.Headers {
		if h.Value.IsSecret() {
			drop(h.Name)
		}
	}
}

// follow is the request that a redirect asks for, and the provider that it
// leads to.
func (r *run) follow(q *request, p *provider, status int, location string) (*request, *provider, error) {
	next, err := r.redirect(q, status, location)
	if err != nil {
		return nil, nil, err
	}
	at, err := r.places.next(p, next.url)
	return next, at, err
}

var errTooManyRedirects = errors.New("more than 10 redirects")
