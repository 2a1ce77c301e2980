package config

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteYAML writes values as a configuration file, with the origin of each as
// a comment if origins is true. What it writes can be read again, except that
// secrets are "***".
func WriteYAML(w io.Writer, values []Value, origins bool) error {
	var lines []yamlLine
	grow(values).yaml(&lines, "", "")
	// Comments stand in one column, but one long line moves only its own.
	const most = 60
	width := 0
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.text); l.origin != "" && n <= most {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		if origins && l.origin != "" {
			pad := max(width-utf8.RuneCountInString(l.text), 0)
			b.WriteString(strings.Repeat(" ", pad) + "  # " + l.origin)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes {"config": ...}, which has the shape of the file, and if
// origins is true beside it {"origins": {"providers.api.url": "mete.yaml:4"}}.
func WriteJSON(w io.Writer, values []Value, origins bool) error {
	var b strings.Builder
	b.WriteString(`{"config":`)
	grow(values).json(&b)
	if origins {
		b.WriteString(`,"origins":{`)
		for i, v := range values {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoteJSON(strings.ReplaceAll(strings.Join(v.Path, "."), ".[", "[")) + ":" + quoteJSON(v.Origin))
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(json.RawMessage(b.String()))
}

// branch is a mapping, a list (its branches are called [0], [1]) or, with a
// leaf, a value.
type branch struct {
	name string
	leaf *Value
	kids []*branch
}

// grow makes a tree of values, which keeps their order.
func grow(values []Value) *branch {
	root := &branch{}
	for i := range values {
		at := root
		for _, step := range values[i].Path {
			k := slices.IndexFunc(at.kids, func(b *branch) bool { return b.name == step })
			if k < 0 {
				k = len(at.kids)
				at.kids = append(at.kids, &branch{name: step})
			}
			at = at.kids[k]
		}
		at.leaf = &values[i]
	}
	return root
}

func (b *branch) isList() bool { return len(b.kids) > 0 && strings.HasPrefix(b.kids[0].name, "[") }

type yamlLine struct{ text, origin string }

// yaml appends the lines of what is in b. first goes before the first of them
// and indent before the others.
func (b *branch) yaml(lines *[]yamlLine, first, indent string) {
	for _, k := range b.kids {
		switch {
		case b.isList() && k.leaf != nil:
			*lines = append(*lines, yamlLine{first + "- " + scalarYAML(k.leaf.Value), k.leaf.Origin})
		case b.isList():
			k.yaml(lines, indent+"- ", indent+"  ")
		case k.leaf != nil:
			*lines = append(*lines, yamlLine{first + quoteYAML(k.name) + ": " + scalarYAML(k.leaf.Value), k.leaf.Origin})
		default:
			*lines = append(*lines, yamlLine{text: first + quoteYAML(k.name) + ":"})
			k.yaml(lines, indent+"  ", indent+"  ")
		}
		first = indent
	}
}

func (b *branch) json(w *strings.Builder) {
	if b.leaf != nil {
		switch v := b.leaf.Value.(type) {
		case nil:
			w.WriteString("[]")
		case string:
			w.WriteString(quoteJSON(v))
		default:
			fmt.Fprint(w, v)
		}
		return
	}
	ends := "{}"
	if b.isList() {
		ends = "[]"
	}
	w.WriteByte(ends[0])
	for i, k := range b.kids {
		if i > 0 {
			w.WriteByte(',')
		}
		if !b.isList() {
			w.WriteString(quoteJSON(k.name) + ":")
		}
		k.json(w)
	}
	w.WriteByte(ends[1])
}

func scalarYAML(v any) string {
	switch v := v.(type) {
	case nil:
		return "[]"
	case string:
		return quoteYAML(strings.ReplaceAll(v, "$", "$$"))
	}
	return fmt.Sprint(v)
}

var (
	// plain is text that is text in every version of YAML, also without quotes:
	// a word, a time, a rate, a size or a share, an address.
	plain = regexp.MustCompile(`^(/?[A-Za-z][A-Za-z0-9_./-]*|([0-9.]+(h|m|s|ms|us|µs|ns))+|[0-9]+/[a-z0-9]+|[0-9]+([KMG]i?)?B|[0-9.]+%|https?://[A-Za-z0-9._:/-]*[A-Za-z0-9_/-])$`)
	// reserved are the words that some version of YAML takes for something else.
	reserved = regexp.MustCompile(`(?i)^(y|yes|n|no|true|false|on|off|null|nan|inf)$`)
)

// quoteYAML writes text for a YAML file, in quotes where it needs them.
func quoteYAML(s string) string {
	if plain.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return quoteJSON(s) // what JSON quotes, YAML reads
}

// quoteJSON also escapes what JSON does not but a terminal obeys.
func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a Builder takes everything
	quoted := strings.TrimSuffix(b.String(), "\n")
	b.Reset()
	for _, r := range quoted {
		if r >= 0x7f && r < 0xa0 || r == '\ufeff' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
