package runner

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// refusals is how many answers in a row may refuse the credential that rows
// share before nothing more is sent with it. One may be due to its row.
const refusals = 10

// denies counts answers that refuse the credential, and reports whether there
// were too many in a row.
func (p *provider) denies(q *request, x *exchanged) bool {
	v := &x.verdict
	if x.attempt.Response == nil || v.Throttled || v.kind == record.HTTP5xx {
		return false // says nothing of the credential
	}
	denied := v.kind == record.Auth || v.kind == record.QuotaExhausted
	p.mu.Lock()
	defer p.mu.Unlock()
	if !denied || !q.shared && v.rule == nil {
		p.denied = 0
		return false
	}
	p.denied++
	return p.denied >= refusals
}

// hopeless tells why no other request to the provider can succeed either;
// empty if one may.
func (r *run) hopeless(p *provider, q *request, x *exchanged) string {
	spent := x.verdict.Terminal
	if !spent && !p.denies(q, x) {
		return ""
	}
	answer := statusText(x.status)
	if said := saying(x.attempt.Body); said != "" {
		answer += ": " + said
	}
	why := ""
	switch {
	case spent && x.verdict.rule != nil:
		why = fmt.Sprintf("%s has no quota left, by the rule at %s (%s); when it has, go on with --resume", p.name, x.verdict.rule.At, answer)
	case spent:
		why = fmt.Sprintf("%s has no quota left (%s); when it has, go on with --resume", p.name, answer)
	case x.status == http.StatusPaymentRequired:
		why = fmt.Sprintf("%s wants to be paid (%s to %d requests in a row); then go on with --resume --retry-failed", p.name, answer, refusals)
	default:
		why = fmt.Sprintf("%s refuses the credential (%s to %d requests in a row); put it right and go on with --resume --retry-failed", p.name, answer, refusals)
	}
	return r.o.Mask(why)
}

// saying is the message of an error in JSON, in one line that can be shown.
func saying(body []byte) string {
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return ""
	}
	const most = 200
	for _, key := range []string{"message", "error_message", "error_description", "detail", "description", "title", "error", "errors"} {
		text := []rune(progress.Printable(textOf(v[key])))
		if len(text) > most {
			return strings.TrimSpace(string(text[:most-1])) + "…"
		}
		if len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// textOf finds the text of {"message": …}, or of the first of a list of them.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			return textOf(v[0])
		}
	case map[string]any:
		for _, key := range []string{"message", "detail", "description", "title", "code"} {
			if text, ok := v[key].(string); ok && text != "" {
				return text
			}
		}
	}
	return ""
}
