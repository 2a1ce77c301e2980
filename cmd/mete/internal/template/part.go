package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	texttemplate "text/template"
	"text/template/parse"
)

// part is one compiled part of a request. A template of text and values only is
// kept as segments, which take a tenth of the time that text/template takes.
type part struct {
	place    string
	start    place
	segments []segment
	raw      bool
	number   bool

	slow   *texttemplate.Template // instead of segments
	row    *columns
	values map[string]string // of the row, for slow
	out    bytes.Buffer
}

// segment is text, or a value.
type segment struct {
	text   string
	value  *expression
	escape func([]byte, string) []byte // nil for none
	at     int                         // in the template
}

// expression is a column or a constant that goes through functions.
type expression struct {
	column int // -1 for a constant
	text   string
	steps  []func(string) (string, error)
}

func (e *expression) eval(values []string) (string, error) {
	v := e.text
	if e.column >= 0 {
		v = values[e.column]
	}
	for _, step := range e.steps {
		var err error
		if v, err = step(v); err != nil {
			return "", err
		}
	}
	return v, nil
}

// append renders the part for a row.
func (p *part) append(dst []byte, values []string) ([]byte, error) {
	if p.slow != nil {
		return p.execute(dst, values)
	}
	for i := range p.segments {
		s := &p.segments[i]
		if s.value == nil {
			dst = append(dst, s.text...)
			continue
		}
		v, err := s.value.eval(values)
		if err != nil {
			return dst, &RowError{p.place, err.Error()}
		}
		if s.escape == nil {
			dst = append(dst, v...)
		} else {
			dst = s.escape(dst, v)
		}
	}
	return dst, nil
}

func (p *part) execute(dst []byte, values []string) ([]byte, error) {
	for i, name := range p.row.names {
		p.values[name] = values[i]
	}
	p.out.Reset()
	if err := p.slow.Execute(&p.out, p.values); err != nil {
		if bad, ok := errors.AsType[*valueError](err); ok {
			return dst, &RowError{p.place, bad.msg}
		}
		return dst, &RowError{p.place, err.Error()}
	}
	return append(dst, p.out.Bytes()...), nil
}

// expression compiles a checked pipeline, if text/template is not needed for
// it. in is the value piped into it, if not nil.
func (c *compiler) expression(p *parse.PipeNode, in *expression) (*expression, bool) {
	for _, cmd := range p.Cmds {
		var ok bool
		if in, ok = c.call(cmd, in); !ok {
			return nil, false
		}
	}
	return in, true
}

func (c *compiler) call(cmd *parse.CommandNode, in *expression) (*expression, bool) {
	id, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok {
		return c.value(cmd.Args[0])
	}
	args := cmd.Args[1:]
	switch id.Ident {
	case "index":
		return &expression{column: c.row.index[args[1].(*parse.StringNode).Text]}, true
	case "env":
		value, _ := c.env(args[0].(*parse.StringNode).Text)
		return &expression{column: -1, text: value}, true
	}
	var step func(string) (string, error)
	switch f := functions[id.Ident]; {
	case f.unary != nil:
		step = f.unary
	case id.Ident == "default":
		def, ok := args[0].(*parse.StringNode)
		if !ok {
			return nil, false
		}
		step = func(v string) (string, error) { return orElse(def.Text, v), nil }
		args = args[1:]
	default:
		return nil, false
	}
	if in == nil {
		if in, ok = c.value(args[0]); !ok {
			return nil, false
		}
	}
	in.steps = append(in.steps, step)
	return in, true
}

func (c *compiler) value(n parse.Node) (*expression, bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		return &expression{column: c.row.index[n.Ident[0]]}, true
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) == 2 {
			return &expression{column: c.row.index[n.Ident[1]]}, true
		}
	case *parse.StringNode:
		return &expression{column: -1, text: n.Text}, true
	case *parse.PipeNode:
		return c.expression(n, nil)
	}
	return nil, false
}

// checkJSON renders an example, unless raw values or branches decide whether
// the result is JSON: then each row is checked.
func (p *part) checkJSON(c *compiler, end place) error {
	if end != jsonValue {
		return c.errorf(len(c.text), "the JSON ends inside quotes")
	}
	if p.raw || p.slow != nil {
		return nil
	}
	row := slices.Repeat([]string{"0"}, len(c.row.names))
	var example []byte
	var ends []int
	for i := range p.segments {
		one := part{place: p.place, segments: p.segments[i : i+1]}
		var err error
		if example, err = one.append(example, row); err != nil {
			return c.errorf(p.segments[i].at, "%s", err.(*RowError).Message)
		}
		ends = append(ends, len(example))
	}
	var v json.RawMessage
	err := json.Unmarshal(example, &v)
	if err == nil {
		return nil
	}
	at, wrong := len(c.text), 0
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && int(syntax.Offset) <= len(example) && !strings.Contains(err.Error(), "unexpected end") {
		wrong = max(0, int(syntax.Offset)-1)
		for i, end := range ends {
			if wrong < end {
				at = p.segments[i].at
				if p.segments[i].value == nil {
					at += wrong - (end - len(p.segments[i].text))
				}
				break
			}
		}
	}
	return c.errorf(at, "this gives no JSON: %v", err)
}

// notJSON says that a row's JSON is none.
func notJSON(place string, text []byte) error {
	var v json.RawMessage
	return &RowError{place, fmt.Sprintf("the row gives no JSON: %v", json.Unmarshal(text, &v))}
}
