// Package classify judges answers by the user's rules: what a status means for
// one provider, or what a JSON body says beside it. Some answer 200 and report
// in the body that the quota is used up.
package classify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// Kind is what an answer is taken for.
type Kind string

// The kinds, by what becomes of the request.
const (
	OK             Kind = "ok"              // a success, whatever the status
	RateLimited    Kind = "rate_limited"    // the provider pauses; repeated
	Overloaded     Kind = "overloaded"      // the same
	ServerError    Kind = "http_5xx"        // repeated where that is safe
	ClientError    Kind = "http_4xx"        // failed for good
	Auth           Kind = "auth"            // failed for good; many in a row end the provider
	QuotaExhausted Kind = "quota_exhausted" // ends the provider at once
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{OK, RateLimited, Overloaded, ServerError, ClientError, Auth, QuotaExhausted}
}

// MaxBody is the largest body that an expression sees, in bytes. Of a larger
// one it sees nothing: cut short it is no JSON.
const MaxBody = 64 << 10

// patience is what one expression gets: the user's mistake, such as a loop,
// must not hold a run up. It is far more than any needs for MaxBody bytes.
const patience = 100 * time.Millisecond

// Rule says what an answer means.
type Rule struct {
	Status []int  // none is any status
	JQ     string // true of the body; empty asks nothing of it
	As     Kind
	At     string // where the rule stands, as in "mete.yaml:14"

	code *gojq.Code
}

// Compile prepares JQ, and must be called before the rule is used. The error
// is an *ExprError. The expression sees neither the environment nor files.
func (r *Rule) Compile() error {
	if r.JQ == "" {
		return nil
	}
	query, err := gojq.Parse(r.JQ)
	if err != nil {
		at := len(r.JQ)
		if e, ok := errors.AsType[*gojq.ParseError](err); ok {
			at = min(max(e.Offset-len(e.Token), 0), len(r.JQ))
		}
		return &ExprError{Offset: at, Err: err}
	}
	if r.code, err = gojq.Compile(query); err != nil {
		return &ExprError{Err: err}
	}
	return nil
}

// ExprError is a mistake in an expression.
type ExprError struct {
	Offset int // in bytes; 0 also where the place is not known
	Err    error
}

// Error implements error.
func (e *ExprError) Error() string { return e.Err.Error() }

// Unwrap returns what jq says.
func (e *ExprError) Unwrap() error { return e.Err }

// Rules are tried in their order.
type Rules []Rule

// Find returns the first rule that fits an answer, or nil. body is the
// beginning of what came, decoded from its content encoding. An expression that
// fails, as on a body of another shape, fits nothing; one that runs for more
// than 100 ms is given up, and its rule comes back as slow.
func (rs Rules) Find(status int, body []byte) (found, slow *Rule) {
	var v any
	read, isJSON := false, false
	for i := range rs {
		r := &rs[i]
		if len(r.Status) > 0 && !slices.Contains(r.Status, status) {
			continue
		}
		if r.code == nil {
			return r, slow
		}
		if !read {
			v, isJSON = decode(body)
			read = true
		}
		if !isJSON {
			continue
		}
		fits, err := r.holds(v)
		if fits {
			return r, slow
		}
		if errors.Is(err, context.DeadlineExceeded) {
			slow = r
		}
	}
	return nil, slow
}

// holds reports whether the first output is neither null nor false.
func (r *Rule) holds(v any) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, ok := r.code.RunWithContext(ctx, v).Next()
	if err, failed := out.(error); failed {
		return false, err
	}
	return ok && out != nil && out != false, nil
}

// decode reads a body that is one JSON value.
func decode(body []byte) (any, bool) {
	if len(body) > MaxBody {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, errors.Is(err, io.EOF)
}

// String says what the rule is in one line, as in a file.
func (r *Rule) String() string {
	return strings.TrimSpace(r.At + " as " + string(r.As))
}
