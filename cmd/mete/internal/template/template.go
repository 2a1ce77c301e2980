package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/textproto"
	"slices"
)

// Spec holds the templates of a request. An empty one leaves its part out.
type Spec struct {
	URL     string
	Headers []Header // the names are no templates
	// Body is sent as it is rendered, JSON must render JSON; they exclude each
	// other.
	Body string
	JSON string
	// ID names a row.
	ID string
	// Env looks up what {{env "NAME"}} may read and reports whether it may, and
	// is set. Nil allows nothing.
	Env func(name string) (value string, ok bool)
}

// Header is one header of a request.
type Header struct{ Name, Value string }

// Check reports mistakes of the templates that show without knowing the
// columns, so that a user learns of them before any input is read.
func (s Spec) Check() error {
	_, err := Compile(s, nil)
	return err
}

// Template renders the requests of one table. It is not safe for use by
// several goroutines at once.
type Template struct {
	columns *columns
	url     *part
	body    *part
	id      *part
	json    bool
	headers []header
	buf     []byte
}

type header struct {
	name  string
	value *part
}

// Request is what a row renders to. Its memory is its own.
type Request struct {
	URL     string // empty without a template for it
	ID      string
	Headers []Header
	Body    []byte
	HasBody bool
	JSON    bool // the body is JSON
}

// Compile checks the templates of spec against the columns of a table. An
// unknown column, like any other mistake, is an *Error with its place. With nil
// columns any name is one, and Columns tells which are used.
func Compile(spec Spec, columns []string) (*Template, error) {
	if spec.Body != "" && spec.JSON != "" {
		return nil, errors.New("-d and --json exclude each other: a request has one body")
	}
	t := &Template{columns: newColumns(columns)}
	var err error
	compile := func(name, text string, start place) *part {
		if text == "" || err != nil {
			return nil
		}
		var p *part
		p, err = compilePart(name, text, start, t.columns, spec.Env)
		return p
	}
	t.url = compile("--url", spec.URL, urlStart)
	for _, h := range spec.Headers {
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		value := compile("-H "+name, h.Value, plain)
		if value == nil {
			value = &part{}
		}
		t.headers = append(t.headers, header{name, value})
	}
	t.body = compile("-d", spec.Body, plain)
	if spec.JSON != "" {
		t.body, t.json = compile("--json", spec.JSON, jsonValue), true
	}
	t.id = compile("--id", spec.ID, plain)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Columns returns the names of the values that Render takes, in their order.
func (t *Template) Columns() []string { return slices.Clone(t.columns.names) }

// NamesRows reports whether there is a template for ids.
func (t *Template) NamesRows() bool { return t.id != nil }

// Render renders the request of a row, whose values are in the order of
// Columns. The error is a *RowError; the ID is then set if it could be
// rendered.
func (t *Template) Render(values []string) (Request, error) {
	var r Request
	err := t.render(&r, values)
	return r, err
}

func (t *Template) render(r *Request, values []string) error {
	if t.id != nil {
		b, err := t.part(t.id, values)
		if err != nil {
			return err
		}
		r.ID = string(b)
	}
	if t.url != nil {
		b, err := t.part(t.url, values)
		if err != nil {
			return err
		}
		if !t.url.raw && dotSegment(b) {
			return &RowError{"--url", `a segment of the path is "." or "..": it would name another resource`}
		}
		r.URL = string(b)
	}
	for _, h := range t.headers {
		b, err := t.part(h.value, values)
		if err != nil {
			return err
		}
		if i := bytes.IndexFunc(b, control); i >= 0 {
			return &RowError{h.value.place, "a header cannot hold " + quote(string(b[i:i+1]))}
		}
		r.Headers = append(r.Headers, Header{h.name, string(b)})
	}
	if t.body == nil {
		return nil
	}
	b, err := t.part(t.body, values)
	if err != nil {
		return err
	}
	if t.json && (t.body.raw || t.body.number || t.body.slow != nil) && !json.Valid(b) {
		return notJSON(t.body.place, b)
	}
	r.Body, r.HasBody, r.JSON = append(make([]byte, 0, len(b)), b...), true, t.json
	return nil
}

// part renders one part; the result is valid until the next call.
func (t *Template) part(p *part, values []string) ([]byte, error) {
	b, err := p.append(t.buf[:0], values)
	t.buf = b
	return b, err
}

func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7F }
