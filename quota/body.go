package quota

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statement is what a body, or a header that stands for one, says.
type statement struct {
	throttled, terminal bool
	delay               time.Duration // in a field of its own, so as binding as a header
	hasDelay            bool
	fallback            time.Duration // the provider's usual delay for this code
	cost                *cost
}

func (s *statement) add(c code) {
	s.throttled = true
	s.terminal = s.terminal || c.terminal
	s.fallback = max(s.fallback, c.delay)
}

func (s *statement) wait(d time.Duration) {
	s.delay, s.hasDelay = max(s.delay, clampDelay(d)), true
}

// isThrottleType reads the header in which AWS repeats the code of the body.
func (f fields) isThrottleType() bool {
	return slices.ContainsFunc(f["x-amzn-errortype"], func(v string) bool {
		return slices.Contains(awsThrottles, awsCode(v))
	})
}

// forbidsRetry reads the headers with which OpenAI and Stripe say so.
func (f fields) forbidsRetry() bool {
	for _, name := range []string{"x-should-retry", "stripe-should-retry"} {
		if slices.ContainsFunc(f.members(name), func(v string) bool { return strings.EqualFold(v, "false") }) {
			return true
		}
	}
	return false
}

// readBody reads JSON and the errors of AWS in XML. Anything else, a JSON text
// that is cut short included, says nothing here.
func readBody(r Response, p *profile) statement {
	var s statement
	body := trimBody(r.Body)
	if len(body) == 0 {
		return s
	}
	switch body[0] {
	case '<':
		if slices.ContainsFunc(xmlCodes(body), func(c string) bool { return slices.Contains(awsThrottles, c) }) {
			s.throttled = true
		}
	case '{', '[':
		if isSuccess(r.Status) && (body[0] == '[' || !suspicious(body, p)) {
			return s // spares the decoding of what is nearly always just data
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil && !d.More() {
			s.readJSON(v, r.Status, p)
		}
	}
	return s
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

func firstPart(body []byte) []byte { return body[:min(len(body), MaxBody)] }

func (s *statement) readJSON(v any, status int, p *profile) {
	success := isSuccess(status)
	if list, ok := v.([]any); ok && len(list) > 0 && !success {
		// Gemini and Salesforce wrap an error in an array. On a success it
		// would be data, in which a code means nothing.
		if object, ok := list[0].(map[string]any); ok {
			s.readJSON(object, status, p)
		}
	}
	for _, c := range codes {
		if c.applies(success, p) && slices.ContainsFunc(textsAt(v, c.path), c.matches) {
			s.add(c)
		}
	}
	// discord-api-docs, rate limits: seconds, with a fraction.
	if n, ok := field(v, "retry_after").(json.Number); ok && !success {
		if d, ok := jsonSeconds(n); ok {
			s.wait(d)
		}
	}
	// google.rpc.RetryInfo holds a Duration of protobuf: "3.957s".
	for _, path := range []string{"error.details[]", "details[]"} {
		for _, detail := range valuesAt(v, path) {
			kind, _ := field(detail, "@type").(string)
			text, _ := field(detail, "retryDelay").(string)
			number, ok := strings.CutSuffix(text, "s")
			if n, valid := parseDecimal(number); ok && valid && strings.HasSuffix(kind, "google.rpc.RetryInfo") {
				s.wait(time.Duration(n.times(uint64(time.Second))))
			}
		}
	}
	s.readCost(v)
}

// applies reports whether the code counts in a success or failure of a provider.
func (c code) applies(success bool, p *profile) bool {
	if success && (strings.HasPrefix(c.path, "[]") || c.loose != "" && !p.is(c.loose)) {
		return false
	}
	return c.only == "" || p.is(c.only)
}

// matches compares one value of a body.
func (c code) matches(v string) bool {
	return slices.ContainsFunc(c.values, func(want string) bool {
		switch c.match {
		case endsWith:
			return strings.HasSuffix(v, want)
		case mentions:
			return strings.Contains(strings.ToLower(v), strings.ToLower(want))
		case namesCode:
			return awsCode(v) == want
		}
		return v == want
	})
}

// awsCode cuts "com.amazonaws.x#Code:http://..." down to Code.
func awsCode(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return trim(s[strings.LastIndexByte(s, '#')+1:])
}

// xmlCodes returns the contents of all Code elements.
func xmlCodes(body []byte) []string {
	var found []string
	for {
		_, rest, ok := bytes.Cut(body, []byte("<Code>"))
		if !ok {
			return found
		}
		text, tail, ok := bytes.Cut(rest, []byte("</Code>"))
		if !ok {
			return found
		}
		found = append(found, string(bytes.TrimSpace(text)))
		body = tail
	}
}

// valuesAt returns what is at a path such as "errors[].extensions.code".
func valuesAt(v any, path string) []any {
	found := []any{v}
	for step := range strings.SplitSeq(path, ".") {
		name, each := strings.CutSuffix(step, "[]")
		var next []any
		for _, v := range found {
			if name != "" {
				v = field(v, name)
			}
			if list, ok := v.([]any); ok && each {
				next = append(next, list...)
			} else if !each && v != nil {
				next = append(next, v)
			}
		}
		found = next
	}
	return found
}

// textsAt returns the strings and numbers at a path.
func textsAt(v any, path string) []string {
	var found []string
	for _, v := range valuesAt(v, path) {
		switch v := v.(type) {
		case string:
			found = append(found, v)
		case json.Number:
			found = append(found, v.String())
		}
	}
	return found
}

// field returns a member of an object, or nil.
func field(v any, name string) any {
	object, _ := v.(map[string]any)
	return object[name]
}

// jsonSeconds reads a JSON number, which unlike one in a header may have an
// exponent.
func jsonSeconds(n json.Number) (time.Duration, bool) {
	if d, ok := parseDecimal(n.String()); ok {
		return time.Duration(d.times(uint64(time.Second))), true
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	switch {
	case f < 0 || err != nil && f == 0:
		return 0, false
	case f >= MaxDelay.Seconds(): // +Inf as well
		return MaxDelay, true
	}
	return time.Duration(f * float64(time.Second)), true
}
