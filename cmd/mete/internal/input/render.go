package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// render sets the row from its template. id is the value that names the row if
// there is no template for that; at is its place, or -1 if there is none.
func (s *Source) render(r *Row, values []string, id string, at int) *fault {
	req, err := s.template.Render(values)
	switch {
	case s.template.NamesRows():
		if err == nil || req.ID != "" {
			if f := r.nameBy("--id", req.ID, -1); f != nil {
				return f
			}
		}
	case at >= 0:
		if f := r.nameBy("id", id, at); f != nil {
			return f
		}
	}
	if err != nil {
		return &fault{-1, err.Error()}
	}
	for i, h := range req.Headers {
		if listed(req.Headers[:i], h.Name) {
			continue
		}
		var values []string
		for _, other := range req.Headers[i:] {
			if other.Name == h.Name {
				values = append(values, other.Value)
			}
		}
		if msg := r.setHeader(h.Name, values); msg != "" {
			return &fault{-1, "-H: " + msg}
		}
	}
	if req.HasBody {
		r.Body, r.HasBody = req.Body, true
		if req.JSON && r.Header.Get("Content-Type") == "" {
			r.ContentType = "application/json"
		}
	}
	if req.URL != "" || r.URL == nil {
		if f := r.setURL(req.URL, s.options.BaseURL); f != nil {
			return &fault{-1, "--url: " + f.msg}
		}
	}
	if r.Method == "" {
		r.Method = s.options.methodOf(r)
	}
	return nil
}

// listed reports whether there is a header with a name.
func listed(headers []template.Header, name string) bool {
	for _, h := range headers {
		if h.Name == name {
			return true
		}
	}
	return false
}

// nameBy sets the id of a rendered row.
func (r *Row) nameBy(what, id string, at int) *fault {
	switch n := len(id); {
	case n == 0:
		return &fault{at, what + " is empty"}
	case n > longestID:
		return faultf(at, "%s has %d bytes, more than %d", what, n, longestID)
	}
	r.ID, r.IDGiven = strings.Clone(id), true
	return nil
}

// parseLine sets the row from a line of plain text. Blanks around it belong to
// it, a carriage return at its end does not.
func (s *Source) parseLine(r *Row, line []byte) *fault {
	if f := unreadable(line); f != nil {
		return f
	}
	s.values = append(s.values[:0], string(bytes.TrimSuffix(line, []byte{'\r'})))
	if f := s.render(r, s.values, "", -1); f != nil {
		return f
	}
	r.Meta = s.table.object(s.values)
	return nil
}

// parseObject sets the row from a JSON object whose top-level fields are the
// columns of the template: strings, and numbers and booleans as written.
func (s *Source) parseObject(r *Row, line []byte) *fault {
	o, f := readObject(line)
	if f != nil {
		return f
	}
	s.values = s.values[:0]
	for _, name := range s.names {
		v, ok := o.fields[name]
		if !ok {
			return faultf(o.start, "the object has no field %s%s", quote(name), o.hint(name))
		}
		switch v.value[0] {
		case '"':
			s.values = append(s.values, string(unquote(v.value)))
		case '{', '[', 'n':
			return faultf(v.at, "%s is %s: a template takes strings, numbers and booleans", quote(name), kind(v.value))
		default:
			s.values = append(s.values, string(v.value))
		}
	}
	id, at := "", -1
	if v, ok := o.fields["id"]; ok && !s.template.NamesRows() {
		var all [fields]field
		all[fID] = v
		if f := r.setID(&all); f != nil {
			return f
		}
		id, at = r.ID, v.at
	}
	if f := s.render(r, s.values, id, at); f != nil {
		return f
	}
	r.Meta = json.RawMessage(bytes.Clone(bytes.TrimSpace(line)))
	return nil
}

// object is a JSON object whose values are not looked into.
type object struct {
	start  int
	names  []string
	fields map[string]field
}

func (o *object) hint(name string) string {
	if near := template.Nearest(name, o.names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", quote(near))
	}
	if len(o.names) == 0 || len(o.names) > 30 {
		return ""
	}
	return ": it has " + clip(strings.Join(o.names, ", "))
}

// readObject takes a line that is one JSON object.
func readObject(line []byte) (object, *fault) {
	o := object{fields: make(map[string]field)}
	if f := unreadable(line); f != nil {
		return o, f
	}
	s := scanner{text: line}
	if s.peek() != '{' {
		return o, s.unexpected("an object")
	}
	o.start = s.at
	f := s.object(func(at int, key []byte) *fault {
		name := string(unquote(key))
		if _, twice := o.fields[name]; twice {
			return faultf(at, "field %s is given twice", quote(name))
		}
		valueAt := s.at
		value, f := s.value(1)
		if f == nil {
			o.fields[name] = field{valueAt, value}
			o.names = append(o.names, name)
		}
		return f
	})
	if f == nil {
		if s.space(); s.at < len(line) {
			f = &fault{s.at, "more text after the object: one object per line"}
		}
	}
	return o, f
}
