package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxSize  = 1 << 20 // bytes of a file
	maxDepth = 32      // collections inside each other on one line
)

type kind int

const (
	empty   kind = iota // a key without a value, or null
	text                // any scalar that was quoted or reads as text
	number              // 5, -1, 1.5
	boolean             // true, false
	list
	mapping
	refused // reported already; nothing more is said about it
)

func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping", "unusable"}[k]
}

// node is one value of the file with its place. It is a small copy of the YAML
// tree: the parser's own has a dozen types, and loses places in some of them.
type node struct {
	kind      kind
	text      string // of a scalar, without quotes and escapes
	raw       string // of a scalar, as it is written
	line, col int
	pairs     []pair  // of a mapping, in the order of the file
	items     []*node // of a list
}

type pair struct {
	key   *node
	value *node
}

// parseTree reads data as one YAML document. All problems go to d.
func (d *decoder) parseTree(data []byte) *node {
	if !d.readable(data) {
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if at := tooDeep(tokens); at != nil {
		d.errorAt(at.Position.Line, at.Position.Column, "too many lists and mappings inside each other")
		return nil
	}
	// The parser stops at the first duplicate key, so it is told to let them
	// pass: section finds them all.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxError(err)
		return nil
	}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n := d.convert(doc.Body)
		if root != nil {
			d.errorf(n, "a second document: one file holds one configuration")
			break
		}
		root = n
	}
	d.parsed = true
	return root
}

// readable refuses what is no text before the YAML parser sees it.
func (d *decoder) readable(data []byte) bool {
	switch {
	case len(data) > maxSize:
		d.errorAt(1, 1, "the file has %d bytes, more than a configuration may have (1 MiB)", len(data))
	case strings.HasPrefix(string(data), "\xff\xfe"), strings.HasPrefix(string(data), "\xfe\xff"):
		d.errorAt(1, 1, "the file is UTF-16: save it as UTF-8")
	case !utf8.Valid(data):
		for i, line := range d.lines {
			if !utf8.ValidString(line) {
				good := line[:len(line)-len(strings.TrimLeftFunc(line, func(r rune) bool { return r != utf8.RuneError }))]
				d.errorAt(i+1, utf8.RuneCountInString(good)+1, "not UTF-8: save the file as UTF-8")
				break
			}
		}
	case strings.ContainsRune(string(data), 0):
		for i, line := range d.lines {
			if before, _, found := strings.Cut(line, "\x00"); found {
				d.errorAt(i+1, utf8.RuneCountInString(before)+1, "a NUL byte: this is not a text file")
				break
			}
		}
	default:
		return true
	}
	return false
}

// tooDeep returns the token at which collections nest too deeply. The parser
// is recursive and takes quadratic time in the depth. Nesting by indentation
// needs no check: it costs the writer a quadratic number of spaces.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, block, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, block = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			block++
		}
		if flow > maxDepth || block > maxDepth {
			return t
		}
	}
	return nil
}

// syntaxError reports that the file is no YAML. There the parser stops, but
// tabs, the commonest cause, are all found.
func (d *decoder) syntaxError(err error) {
	tabs := false
	for i, line := range d.lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && len(indent) < len(line) {
			d.errorAt(i+1, at+1, "a tab: YAML is indented with spaces")
			tabs = true
		}
	}
	if tabs {
		return
	}
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		d.errorAt(1, 1, "not YAML")
		return
	}
	pos := at.GetToken().Position
	message := "not YAML: " + at.GetMessage()
	if strings.Contains(d.line(pos.Line), "${") {
		message += ` (inside { } and [ ] write "${VAR}" with quotes)`
	}
	d.errorAt(pos.Line, pos.Column, "%s", message)
}

// convert copies the parser's tree. What a configuration does not need
// (anchors, aliases, tags, keys that are not plain words) is refused.
func (d *decoder) convert(from ast.Node) *node {
	n := &node{}
	if t := from.GetToken(); t != nil {
		n.line, n.col, n.text, n.raw = t.Position.Line, t.Position.Column, t.Value, t.Origin
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.kind = mapping
		for i, v := range from.Values {
			p := d.convertPair(v)
			if i == 0 && !from.IsFlowStyle {
				n.line, n.col = p.key.line, p.key.col
			}
			n.pairs = append(n.pairs, p)
		}
	case *ast.MappingValueNode:
		n.kind = mapping
		p := d.convertPair(from)
		n.line, n.col = p.key.line, p.key.col
		n.pairs = []pair{p}
	case *ast.SequenceNode:
		n.kind = list
		for _, v := range from.Values {
			n.items = append(n.items, d.convert(v))
		}
	case *ast.StringNode:
		n.kind = text
	case *ast.LiteralNode:
		n.kind = text
		if from.Value != nil {
			n.text = from.Value.Value
			if t := from.Value.GetToken(); t != nil {
				n.raw = t.Origin
			}
		}
	case *ast.IntegerNode, *ast.FloatNode:
		n.kind = number
	case *ast.BoolNode:
		n.kind = boolean
	case *ast.InfinityNode, *ast.NanNode:
		n.kind = text
	case *ast.NullNode:
		n.kind = empty
	case *ast.AnchorNode:
		d.errorf(n, noAnchors)
		return d.convert(from.Value)
	case *ast.AliasNode:
		n.kind = refused
		d.errorf(n, noAnchors)
	case *ast.TagNode:
		d.errorf(n, "YAML tags are not supported: put text in quotes instead")
		return d.convert(from.Value)
	default:
		n.kind = refused
		d.errorf(n, "not supported here")
	}
	return n
}

const noAnchors = "anchors and aliases are not supported: put what providers share under defaults"

func (d *decoder) convertPair(from *ast.MappingValueNode) pair {
	key, value := &node{}, &node{kind: refused}
	if from.Key.Type() != ast.MergeKeyType {
		value = d.convert(from.Value)
	}
	if t := from.Key.GetToken(); t != nil {
		*key = node{kind: text, text: t.Value, line: t.Position.Line, col: t.Position.Column}
	}
	switch from.Key.(type) {
	case *ast.MergeKeyNode:
		key.kind = refused
		d.errorf(key, "merge keys are not supported: put what providers share under defaults")
	case *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		key.kind = refused
		d.errorf(key, "a key must be a plain word")
	default:
		if strings.Contains(key.text, "${") {
			key.kind = refused
			d.errorf(key, "${...} is expanded in values only, not in keys")
		}
	}
	return pair{key, value}
}

// line returns line n of the file, counted from 1, or "".
func (d *decoder) line(n int) string {
	if n < 1 || n > len(d.lines) {
		return ""
	}
	return d.lines[n-1]
}

// errorAt adds a problem. The place is brought inside the file: the parser puts
// some tokens behind the end of a line or of the file.
func (d *decoder) errorAt(line, col int, format string, args ...any) {
	d.errs = append(d.errs, d.problem(line, col, fmt.Sprintf(format, args...)))
}

func (d *decoder) errorf(n *node, format string, args ...any) {
	d.errorAt(n.line, n.col, format, args...)
}

func (d *decoder) warnf(n *node, format string, args ...any) {
	d.warnings = append(d.warnings, d.problem(n.line, n.col, fmt.Sprintf(format, args...)))
}

func (d *decoder) problem(line, col int, message string) *Error {
	line = min(max(line, 1), max(len(d.lines), 1))
	col = min(max(col, 1), utf8.RuneCountInString(d.line(line))+1)
	return &Error{File: d.name, Line: line, Col: col, Message: message}
}
