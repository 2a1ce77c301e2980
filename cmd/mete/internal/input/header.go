package input

import (
	"net/http"
	"net/textproto"
	"strings"
)

// ownHeaders are decided by the connection, not by a row.
var ownHeaders = map[string]string{
	"Connection":          "belongs to one connection",
	"Keep-Alive":          "belongs to one connection",
	"Proxy-Connection":    "belongs to one connection",
	"Proxy-Authenticate":  "belongs to one connection",
	"Proxy-Authorization": "belongs to one connection",
	"Te":                  "belongs to one connection",
	"Trailer":             "belongs to one connection",
	"Transfer-Encoding":   "belongs to one connection",
	"Upgrade":             "belongs to one connection",
	"Content-Length":      "follows from the body",
}

// secretHeader reports whether a header, by its name, carries a credential. Such
// headers are no part of a row's identity, so that a new key re-sends nothing.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key", "auth-key", "credential"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func token(s string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// setHeader adds one header of the row. The messages hold names, never values.
func (r *Row) setHeader(name string, values []string) string {
	if !token(name) {
		return "not a header name: " + quote(name)
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if why, ok := ownHeaders[canonical]; ok {
		return "header " + canonical + " is refused: it " + why
	}
	for i, v := range values {
		v = strings.Trim(v, " \t")
		for j := range len(v) {
			if v[j] < ' ' && v[j] != '\t' || v[j] == 0x7F {
				return "header " + canonical + " holds a control character"
			}
		}
		values[i] = v
	}
	if len(values) == 0 {
		return "header " + canonical + " has no value"
	}
	switch canonical {
	case "Host", "Idempotency-Key":
		if len(values) > 1 {
			return "header " + canonical + " takes one value"
		}
		if values[0] == "" {
			return "header " + canonical + " is empty"
		}
	}
	switch canonical {
	case "Host":
		if r.Host != "" {
			return twice(canonical)
		}
		for i := range len(values[0]) {
			if c := values[0][i]; !alnum(c) && strings.IndexByte("-._:[]", c) < 0 {
				return "header Host is not a host"
			}
		}
		r.Host = values[0]
		return ""
	case "Idempotency-Key":
		if r.IdempotencyKey != "" {
			return twice(canonical)
		}
		r.IdempotencyKey = values[0]
		return ""
	}
	if _, ok := r.Header[canonical]; ok {
		return twice(canonical)
	}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header[canonical] = values
	return ""
}

func twice(name string) string {
	return "header " + name + " is given twice: use an array of values"
}
