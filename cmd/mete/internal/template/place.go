package template

import "strings"

// place is where in the rendered text a value stands; it decides the escaping.
type place int

const (
	plain     place = iota
	urlStart        // nothing before: the scheme or the host would come from the value
	urlRef          // after text without a scheme, or after a raw value
	urlHost         // user, password, host and port
	urlPath         // joined with urlQuery the result is urlQuery
	urlQuery        // or the fragment
	jsonValue       // outside quotes
	jsonString
	jsonEscape // inside quotes after a backslash
)

// after returns the place after some text of the template.
func (p place) after(text string) place {
	switch p {
	case plain:
		return plain
	case jsonValue, jsonString, jsonEscape:
		return p.afterJSON(text)
	}
	if text == "" {
		return p
	}
	if p == urlStart || p == urlRef {
		i := strings.Index(text, "://")
		switch {
		case i >= 0 && !strings.ContainsAny(text[:i], "/?#"):
			p, text = urlHost, text[i+3:]
		default:
			p = urlRef
		}
	}
	if p == urlHost {
		i := strings.IndexAny(text, "/?#")
		if i < 0 {
			return urlHost
		}
		p, text = urlPath, text[i:]
	}
	switch {
	case p == urlQuery || strings.ContainsAny(text, "?#"):
		return urlQuery
	case strings.Contains(text, "/"):
		return urlPath
	}
	return p
}

func (p place) afterJSON(text string) place {
	for i := range len(text) {
		switch c := text[i]; {
		case p == jsonEscape:
			p = jsonString
		case c == '\\' && p == jsonString:
			p = jsonEscape
		case c == '"' && p == jsonString:
			p = jsonValue
		case c == '"':
			p = jsonString
		}
	}
	return p
}

// afterValue returns the place after a value, which never leaves its place
// unless it is raw.
func (p place) afterValue() place {
	if p == urlStart {
		return urlRef
	}
	return p
}

// join returns the place after two branches, and false if there is no one
// place: what follows could then not be escaped.
func (p place) join(q place) (place, bool) {
	part := func(p place) bool { return p == urlRef || p == urlPath || p == urlQuery }
	if part(p) && part(q) {
		return max(p, q), true
	}
	return p, p == q
}

// escape returns the escaper of the place. It appends the value to dst.
func (p place) escape() func(dst []byte, value string) []byte {
	switch p {
	case urlStart, urlRef, urlPath, urlQuery:
		return escapeURL
	case urlHost:
		return escapeHost
	case jsonValue:
		return escapeJSON
	case jsonString:
		return escapeJSONText
	}
	return func(dst []byte, value string) []byte { return append(dst, value...) }
}
