package runner

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/classify"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/metehttp"
	"github.com/metehq/mete/quota"
)

// verdict is what an attempt means: for the gate, and for the record.
type verdict struct {
	mete.Outcome
	kind record.Kind // empty is success
	rule *classify.Rule
}

// as is the status of the answers that are treated as those of a kind.
var as = map[classify.Kind]int{
	classify.OK:             http.StatusOK,
	classify.RateLimited:    http.StatusTooManyRequests,
	classify.Overloaded:     529,
	classify.ServerError:    http.StatusInternalServerError,
	classify.ClientError:    http.StatusBadRequest,
	classify.Auth:           http.StatusUnauthorized,
	classify.QuotaExhausted: http.StatusPaymentRequired,
}

// conclude says what an attempt means: by the first of the provider's rules that
// fits, else by what is known of all providers.
func (r *run) conclude(p *provider, x *exchanged) {
	v := &x.verdict
	a := x.attempt
	v.Outcome = a.Outcome()
	v.kind = x.failure()
	if _, local := errors.AsType[*localError](a.Err); local {
		v.Repeat = false
		return
	}
	if a.Response != nil && (a.Err == nil || x.status >= 400) {
		var slow *classify.Rule
		if v.rule, slow = p.spec.Classify.Find(x.status, a.Body); slow != nil {
			p.slow.Do(func() {
				r.o.Note(fmt.Sprintf("%s: the expression takes too long and is taken as not true: %s", slow.At, slow.JQ))
			})
		}
		if v.rule != nil {
			v.byRule(a)
		}
	}
	if len(p.spec.RetryOn) > 0 && v.Repeat && !reason(p.spec.RetryOn, x) {
		v.Repeat = false
	}
}

// byRule judges an answer as one with the status that the rule stands for.
func (v *verdict) byRule(a metehttp.Attempt) {
	kind := v.rule.As
	status := a.Response.StatusCode
	like := *a.Response
	like.StatusCode = as[kind]
	a.Response = &like
	if kind != classify.RateLimited && kind != classify.Overloaded {
		a.Body = nil // what it says of limits is overruled
	}
	v.Outcome = a.Outcome()
	v.kind = record.Kind(kind)
	switch kind {
	case classify.OK:
		v.kind = ""
		return
	case classify.RateLimited, classify.Overloaded:
		v.Repeat, v.Terminal = a.Replayable, false
	case classify.QuotaExhausted:
		v.Repeat, v.Terminal = false, true
	}
	v.Err = &ruled{status, v.rule, v.Err}
}

// ruled is the error of an answer that a rule judged.
type ruled struct {
	status int
	rule   *classify.Rule
	cause  error
}

func (e *ruled) Error() string {
	return fmt.Sprintf("%s, which is %s by %s", statusText(e.status), e.rule.As, e.rule.At)
}

func (e *ruled) Unwrap() error { return e.cause }

// reason reports whether an attempt failed for one of the reasons of retry.on.
func reason(on []string, x *exchanged) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(on, w) })
	}
	if x.verdict.Throttled && has(config.OnRateLimited) {
		return true
	}
	if x.status >= 500 && has(config.OnServerError) || x.status > 0 && has(strconv.Itoa(x.status)) {
		return true
	}
	switch metehttp.Class(x.verdict.kind) {
	case metehttp.ServerError:
		return has(config.OnServerError)
	case metehttp.DNS, metehttp.Connect, metehttp.TLS:
		return has(config.OnConnect)
	case metehttp.Reset, metehttp.Write, metehttp.BodyRead:
		return has(config.OnReset)
	case metehttp.Timeout:
		return has(config.OnTimeout)
	}
	return false
}

// failure names the failure of an attempt in records.
func (x *exchanged) failure() record.Kind {
	if _, ok := errors.AsType[*localError](x.attempt.Err); ok {
		return record.IO
	}
	switch {
	case x.attempt.Err == nil && x.tooLarge:
		return record.BodyTooLarge
	case x.attempt.Err != nil && x.sent.IsZero() && x.attempt.Wire == nil:
		return record.Render
	}
	if x.attempt.Err == nil && x.verdict.Err == nil && x.status < 300 {
		return "" // as for nearly all: spares the reading of the body
	}
	class := x.attempt.Class()
	// Sent, not answered, and not safe to repeat: nobody knows whether it was
	// done.
	if x.attempt.Err != nil && x.attempt.Response == nil && !x.sent.IsZero() && !x.verdict.Repeat &&
		(class == metehttp.Reset || class == metehttp.Timeout || class == metehttp.Write) {
		return record.UnknownOutcome
	}
	return record.Kind(class)
}

// beginning is the part of a body that says what is wrong, decoded. The
// transport unpacks what it asked to be packed; what a row asked for itself
// comes as it was sent.
func beginning(h http.Header, body []byte) []byte {
	part := body[:min(len(body), quota.MaxBody)]
	switch strings.ToLower(h.Get("Content-Encoding")) {
	case "", "identity":
		// One byte more tells a body of just this size from a longer one.
		return body[:min(len(body), quota.MaxBody+1)]
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(part))
		if err != nil {
			return nil
		}
		plain, _ := io.ReadAll(io.LimitReader(z, quota.MaxBody+1)) // as far as it goes
		return plain
	}
	return nil
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}
