package record

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Masked stands where a secret was.
const Masked = "***"

// MaskURL replaces the values of secret query parameters, and any password, in
// a URL. secret is asked with each parameter's decoded name. It allocates only
// if there is something to hide.
func MaskURL(raw string, secret func(name string) bool) string {
	raw = maskPassword(raw)
	start := strings.IndexByte(raw, '?') + 1
	if start == 0 {
		return raw
	}
	end := len(raw)
	if i := strings.IndexByte(raw[start:], '#'); i >= 0 {
		end = start + i
	}
	var b strings.Builder
	copied := 0
	for i := start; i < end; {
		n := strings.IndexAny(raw[i:end], "&;")
		if n < 0 {
			n = end - i
		}
		name, value, ok := strings.Cut(raw[i:i+n], "=")
		if ok && value != "" && secret(decodeName(name)) {
			b.WriteString(raw[copied : i+len(name)+1])
			b.WriteString(Masked)
			copied = i + n
		}
		i += n + 1
	}
	if copied == 0 {
		return raw
	}
	b.WriteString(raw[copied:])
	return b.String()
}

// decodeName decodes a parameter's name: k%65y is key to the server too.
func decodeName(name string) string {
	if strings.ContainsAny(name, "%+") {
		if s, err := url.QueryUnescape(name); err == nil {
			return s
		}
	}
	return name
}

func maskPassword(raw string) string {
	start := strings.Index(raw, "://") + 3
	if start < 3 {
		return raw
	}
	end := len(raw)
	if i := strings.IndexAny(raw[start:], "/?#"); i >= 0 {
		end = start + i
	}
	at := strings.LastIndexByte(raw[start:end], '@')
	if at < 0 {
		return raw
	}
	colon := strings.IndexByte(raw[start:start+at], ':')
	if colon < 0 {
		return raw
	}
	return raw[:start+colon+1] + Masked + raw[start+at:]
}

// SelectHeaders returns those of h that a record keeps by default, sorted:
// content-type, date, etag, location (masked), retry-after, and every name with
// ratelimit or request-id in it. Never set-cookie.
func SelectHeaders(h http.Header, secret func(name string) bool) []Header {
	var kept []Header
	for name, values := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "location":
			values = slices.Clone(values)
			for i := range values {
				values[i] = MaskURL(values[i], secret)
			}
		case lower == "content-type", lower == "date", lower == "etag", lower == "retry-after",
			strings.Contains(lower, "ratelimit"), strings.Contains(lower, "request-id"):
		default:
			continue
		}
		kept = append(kept, Header{Name: lower, Values: values})
	}
	slices.SortFunc(kept, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return kept
}
