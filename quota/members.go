package quota

import (
	"bytes"
	"slices"
)

// Suspicious reports whether the body of a success may say that the server
// pushed back, or show a quota, so that Parse is worth its cost. It looks at
// the members of a JSON object only, in one pass, and allocates nothing for
// what is just data: about a nanosecond for each byte. provider is that of a
// Response.
func Suspicious(provider string, body []byte) bool {
	body = trimBody(body)
	if len(body) == 0 {
		return false
	}
	switch body[0] {
	case '<':
		return bytes.Contains(body, []byte("<Code>"))
	case '{':
		p := knownProfile(provider)
		if p == nil {
			p = &nameless
		}
		return suspicious(body, p)
	}
	return false
}

// nameless is a provider that may give itself away by its header.
var nameless = profile{names: "hubspot"}

func trimBody(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(firstPart(body), []byte("\ufeff")))
}

// suspicious looks for a member that readJSON would read a code or a quota
// from. An object that is cut short has none.
func suspicious(body []byte, p *profile) (found bool) {
	for i := space(body, 1); i < len(body); {
		if body[i] == '}' {
			return found && i == len(body)-1
		}
		end := endOfValue(body, i)
		if end < 0 || body[i] != '"' {
			return false
		}
		key := body[i+1 : end-1]
		if i = space(body, end); i == len(body) || body[i] != ':' {
			return false
		}
		i = space(body, i+1)
		if end = endOfValue(body, i); end <= i {
			return false
		}
		found = found || tells(key, body[i:end], p)
		if i = space(body, end); i < len(body) && body[i] == ',' {
			i = space(body, i+1)
		}
	}
	return false
}

// tells reports whether one member may be a code or a quota.
func tells(key, value []byte, p *profile) bool {
	if bytes.IndexByte(key, '\\') >= 0 {
		return true // whatever it is in full
	}
	switch string(key) {
	case "error", "errors":
		if value[0] == '{' || value[0] == '[' {
			return len(value) > len("[]") && mentionsCode(value)
		}
	case "extensions":
		return bytes.Contains(value, []byte("throttleStatus"))
	case "__type", "code", "message", "policyName", "status", "type":
	default:
		return false
	}
	if value[0] != '"' {
		return false
	}
	text := value[1 : len(value)-1]
	return slices.ContainsFunc(codes, func(c code) bool {
		return c.path == string(key) && c.applies(true, p) && (bytes.IndexByte(text, '\\') >= 0 || c.matches(string(text)))
	})
}

// mentionsCode reports whether the value of any code is in text.
func mentionsCode(text []byte) bool {
	lower := bytes.ToLower(text)
	return slices.ContainsFunc(codes, func(c code) bool {
		return slices.ContainsFunc(c.values, func(v string) bool {
			return bytes.Contains(lower, bytes.ToLower([]byte(v)))
		})
	}) || bytes.IndexByte(text, '\\') >= 0
}

func space(body []byte, i int) int {
	for i < len(body) && (body[i] == ' ' || body[i] == '\n' || body[i] == '\r' || body[i] == '\t') {
		i++
	}
	return i
}

// endOfValue returns the index after the JSON value at i, or -1 if it does not
// end. What is inside is not checked.
func endOfValue(body []byte, i int) int {
	if i == len(body) {
		return -1
	}
	switch body[i] {
	case '"':
		return endOfString(body, i+1)
	case '{', '[':
		return endOfNest(body, i+1)
	}
	for ; i < len(body); i++ {
		switch body[i] {
		case ',', '}', ']':
			return i
		}
	}
	return -1
}

// endOfNest is endOfValue of what is inside an array or object.
func endOfNest(body []byte, i int) int {
	for depth := 1; i < len(body); {
		c := body[i]
		i++
		switch {
		case c == '"':
			if i = endOfString(body, i); i < 0 {
				return -1
			}
		case c|0x20 == '{': // or [
			depth++
		case c|0x20 == '}': // or ]
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// endOfString returns the index after the quote that ends the string whose
// content begins at i, or -1.
func endOfString(body []byte, i int) int {
	for short := min(i+32, len(body)); i < short; i++ {
		switch body[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	// A long one is searched for a quote that is not escaped.
	for from := i; i < len(body); {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		back := i - 2
		for back >= from && body[back] == '\\' {
			back--
		}
		if (i-2-back)%2 == 0 {
			return i
		}
	}
	return -1
}
