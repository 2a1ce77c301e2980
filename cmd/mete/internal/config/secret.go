package config

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	masked    = "***"
	minSecret = 4 // bytes; masking shorter values would riddle every text
)

// Secret is a text that is shown as "***" wherever it is printed, unless it
// stood plainly in the file and nothing about it is secret. Only Reveal gives
// the value. The zero Secret is empty.
type Secret struct {
	// A pointer, because fmt ignores String when a Secret lies in another
	// type's unexported field: it then prints an address.
	value *string
	plain bool
}

// newSecret returns the secret s.
func newSecret(s string) Secret { return Secret{value: &s} }

// Reveal returns the value.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsSecret reports whether the value is masked when printed.
func (s Secret) IsSecret() bool { return s.value != nil && !s.plain }

// String returns "***", or the value if it is not secret.
func (s Secret) String() string {
	if s.IsSecret() {
		return masked
	}
	return s.Reveal()
}

// GoString is String in quotes.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalJSON encodes String.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalText encodes String, for everything that is not JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue logs String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// secrets are the values that a text must not show.
type secrets struct{ values []string }

// add registers a value in the forms in which it may come back: as it is, in a
// URL, and quoted.
func (s *secrets) add(value string) {
	quoted, _ := json.Marshal(value)
	plain := strconv.Quote(value)
	forms := []string{
		value,
		strings.TrimSpace(value),
		url.QueryEscape(value),
		url.PathEscape(value),
		string(quoted[1 : len(quoted)-1]),
		plain[1 : len(plain)-1],
	}
	for _, form := range forms {
		if len(form) >= minSecret && !slices.Contains(s.values, form) {
			s.values = append(s.values, form)
		}
	}
}

// mask replaces every value in text by "***". Values that overlap are masked
// together, so that no end of one is left standing. It costs one pass over the
// text for each value.
func (s *secrets) mask(text string) string {
	type span struct{ from, to int }
	var spans []span
	for _, v := range s.values {
		for from := 0; ; {
			i := strings.Index(text[from:], v)
			if i < 0 {
				break
			}
			spans = append(spans, span{from + i, from + i + len(v)})
			from += i + 1
		}
	}
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	end := 0
	for _, sp := range spans {
		if sp.from > end || sp.from == 0 && end == 0 {
			b.WriteString(text[end:sp.from])
			b.WriteString(masked)
		}
		end = max(end, sp.to)
	}
	b.WriteString(text[end:])
	return b.String()
}

// secretKey matches keys whose values are secrets by their name.
var secretKey = regexp.MustCompile(`(?i)^(value|key)$|token$|secret|passw|credential|cookie|authorization|bearer|api[-_]?key|access[-_]?key|private[-_]?key|(^|-)auth$`)

// secretLine finds such a key in a line that is no YAML.
var secretLine = regexp.MustCompile(`(?i)((?:value|key|token|secret|passw\w*|credentials?|cookie|authorization)["']?\s*:\s*)(.*)$`)

// maskByName hides what stands behind such a key, for a file that could not be
// parsed. A mere "${VAR}" may stay: it shows no secret.
func maskByName(line string) string {
	line = userInfo.ReplaceAllString(line, "://"+masked+"@")
	return secretLine.ReplaceAllStringFunc(line, func(m string) string {
		part := secretLine.FindStringSubmatch(m)
		rest := part[2]
		if rest == "" || onlyVariable.MatchString(rest) {
			return m
		}
		return part[1] + masked
	})
}

var userInfo = regexp.MustCompile(`://[^/\s]*@`)

var onlyVariable = regexp.MustCompile(`^(?:"?\$\{\w+\}"?|[{\[])?[\s}\],]*$`)

// hideLiterals registers every literal secret of the file before anything else
// is read, so that no error shows one in its source lines: not even an error in
// a part that mete does not know.
func (d *decoder) hideLiterals(n *node, secret bool) {
	switch n.kind {
	case mapping:
		for _, p := range n.pairs {
			name := p.key.text
			inside := secret && name != "header" && name != "query" && name != "name"
			d.hideLiterals(p.value, inside || p.key.kind == refused || secretKey.MatchString(name) && p.value.kind != mapping ||
				strings.EqualFold(name, "auth") && p.value.kind == mapping)
		}
	case list:
		for _, item := range n.items {
			d.hideLiterals(item, secret)
		}
	case text, number:
		if secret {
			d.hideText(n.text)
			d.hideRaw(n.raw)
		}
		if at := strings.Index(n.text, "://"); at >= 0 {
			d.hideURL(n.text)
		}
	}
}

// hideText hides the literal parts of a value: all of it, or the default of
// each ${VAR:-default}.
func (d *decoder) hideText(s string) {
	if strings.Contains(s, "${") {
		for _, m := range variable.FindAllStringSubmatch(s, -1) {
			if _, def, found := strings.Cut(m[1], ":-"); found {
				d.hidden.add(def)
			}
		}
		return
	}
	d.hidden.add(s)
	for _, word := range strings.Fields(s) {
		d.hidden.add(word) // "Bearer abc": abc alone may come back
	}
}

// hideRaw hides a value as it is written in the file, which may be over several
// lines and with escapes.
func (d *decoder) hideRaw(raw string) {
	if strings.Contains(raw, "${") {
		return
	}
	for line := range strings.SplitSeq(raw, "\n") {
		d.hidden.add(strings.Trim(strings.TrimSpace(line), `"'`))
	}
}

// hideURL hides the password and the query of a URL.
func (d *decoder) hideURL(s string) {
	_, rest, _ := strings.Cut(s, "://")
	if user, _, found := strings.Cut(rest, "@"); found {
		_, password, found := strings.Cut(user, ":")
		if !found {
			password = user
		}
		d.hideText(password)
	}
	if _, query, found := strings.Cut(rest, "?"); found {
		for part := range strings.SplitSeq(query, "&") {
			if _, value, found := strings.Cut(part, "="); found {
				d.hideText(value)
			}
		}
	}
}
