package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/quota"
)

// cacheKey names a request of a row: by its provider, method, URL, body and
// headers, and not by credentials. A row that brings its own credential has no
// key, for its answer is nobody else's, and neither has one that sends a file.
func (r *run) cacheKey(row *input.Row, p *provider, q *request) (k cache.Key, ok bool) {
	if q.file != "" {
		return k, false
	}
	for name := range row.Header {
		if r.o.secretHeader(&p.known, name) {
			return k, false
		}
	}
	h := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			_ = binary.Write(h, binary.BigEndian, int64(len(part)))
			_, _ = io.WriteString(h, part)
		}
	}
	add("1", p.name, q.method, withoutParameter(q.url, p.spec.Auth.Query), q.host)
	names := make([]string, 0, len(q.header))
	for name := range q.header {
		switch {
		case r.o.secretHeader(&p.known, name), name == "User-Agent", http.CanonicalHeaderKey(r.o.IdempotencyHeader) == name:
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		add(append([]string{"h", name}, q.header[name]...)...)
	}
	add("b", string(q.body))
	h.Sum(k[:0])
	return k, true
}

// withoutParameter is u without a parameter of its query.
func withoutParameter(u *url.URL, name string) string {
	if name == "" {
		return u.String()
	}
	bare := *u
	bare.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(pair string) bool {
		n, _, _ := strings.Cut(pair, "=")
		n, _ = url.QueryUnescape(n)
		return n == name
	}), "&")
	return bare.String()
}

// fromCache answers a row with what one of its providers has answered before.
// It reports whether the row has its record; it waits for no permit and pays
// nothing.
func (r *run) fromCache(rec *record.Record, row *input.Row, w *route) (bool, error) {
	if r.o.Cache == nil {
		return false, nil
	}
	for i, p := range w.list {
		q, err := r.request(row, &w.list[0].known, &p.known)
		if err != nil {
			continue // what is wrong is said where it is sent
		}
		k, ok := r.cacheKey(row, p, q)
		if !ok {
			break
		}
		if e, ok := r.o.Cache.Get(k); ok && p.accepts(e) {
			rec.Provider, rec.Fallback, rec.URL = p.name, i, q.shown
			return true, r.hit(rec, e)
		}
	}
	if !r.o.CacheOnly {
		return false, nil
	}
	rec.URL, rec.Cache = r.shown(row.URL), "miss"
	return true, r.fail(rec, record.Budget, "cache", "no answer is stored, and --cache-only sends nothing")
}

// accepts reports whether a stored answer is good by the provider's rules, which
// may be newer than it.
func (p *provider) accepts(e *cache.Entry) bool {
	if len(p.spec.Classify) == 0 {
		return true
	}
	rule, _ := p.spec.Classify.Find(e.Status, e.Body[:min(len(e.Body), quota.MaxBody+1)])
	return rule == nil || rule.As == classify.OK
}

// hit writes the record of a row whose answer is stored.
func (r *run) hit(rec *record.Record, e *cache.Entry) error {
	rec.Cache, rec.Status, rec.Headers = "hit", e.Status, e.Headers
	rec.Body, rec.BodyBytes = e.Body, int64(len(e.Body))
	if rec.Body == nil {
		rec.Body = []byte{}
	}
	if r.o.Value != nil {
		value, err := r.o.Value(e.Body)
		if err != nil {
			rec.Error = &record.Error{Kind: record.Render, Phase: "jq", Message: r.o.Mask(err.Error())}
		}
		rec.Value = value
	}
	rec.End = time.Now()
	return r.write(rec, nil)
}

// store keeps a complete answer that is a success. A disk that does not take it
// is said once, and changes nothing else.
func (r *run) store(rec *record.Record, k cache.Key, x *exchanged) {
	rec.Cache = "miss"
	if x.attempt.Err != nil || x.verdict.kind != "" || x.status/100 != 2 ||
		x.file != nil || x.cut || x.body == nil || int64(x.body.Len()) != x.bytes {
		return
	}
	err := r.o.Cache.Put(k, &cache.Entry{
		Status: x.status, At: time.Now(), Headers: record.SelectHeaders(x.header, r.secretParameter), Body: x.body.Bytes(),
	})
	if err != nil {
		r.cacheFull.Do(func() { r.o.Note("--cache: " + err.Error()) })
	}
}
