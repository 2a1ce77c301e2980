package template

import (
	"fmt"
	"strings"
	texttemplate "text/template"
	"text/template/parse"
	"unicode/utf8"
)

// compiler turns the text of one part of a request into a part.
type compiler struct {
	place string // of the template, for messages
	text  string
	row   *columns
	env   func(string) (string, bool)

	segments []segment
	branches bool // segments cannot say it: text/template executes the part
	raw      bool // a value may be anything
	number   bool // a value may be refused or stand beside a digit
}

// columns are the names a template may use, and their places in a row.
type columns struct {
	names []string
	index map[string]int
	open  bool // any name is taken, and added
}

func newColumns(names []string) *columns {
	c := &columns{names: names, index: make(map[string]int, len(names)), open: names == nil}
	for i, name := range names {
		c.index[name] = i
	}
	return c
}

// parseTree parses text without looking at functions, which check does with
// places. text/template itself gives the line of a mistake only.
func parseTree(place, text string) (*parse.Tree, map[string]*parse.Tree, error) {
	tree := parse.New(place)
	tree.Mode = parse.SkipFuncCheck
	set := map[string]*parse.Tree{}
	_, err := tree.Parse(text, "", "", set)
	return tree, set, err
}

func compilePart(place, text string, start place, row *columns, env func(string) (string, bool)) (*part, error) {
	c := &compiler{place: place, text: text, row: row, env: env}
	if !utf8.ValidString(text) {
		return nil, c.errorf(strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError }), "not UTF-8")
	}
	tree, set, err := parseTree(place, text)
	if err != nil {
		return nil, c.syntax(err)
	}
	for name := range set {
		if name != place {
			at := max(strings.Index(text, "define"), strings.Index(text, "block"), 0)
			return nil, c.errorf(at, "{{define}} and {{block}} are not available")
		}
	}
	end, err := c.list(tree.Root, start, true)
	if err != nil {
		return nil, err
	}
	p := &part{place: place, start: start, segments: c.segments, raw: c.raw, number: c.number}
	if c.branches {
		t := texttemplate.New(place).Option("missingkey=error").Funcs(funcMap(env))
		if p.slow, err = t.AddParseTree(place, tree); err != nil {
			return nil, c.errorf(0, "%v", err)
		}
		p.segments = nil
		p.values = make(map[string]string)
		p.row = row
	}
	if start == jsonValue {
		return p, p.checkJSON(c, end)
	}
	return p, nil
}

func (c *compiler) errorf(at int, format string, args ...any) *Error {
	return newError(c.place, c.text, at, format, args...)
}

// syntax finds the action that text/template could not parse: the first with
// which the text up to it is refused for another reason than being cut off.
func (c *compiler) syntax(err error) *Error {
	_, msg, _ := strings.Cut(err.Error(), ": ")
	if _, rest, ok := strings.Cut(strings.TrimPrefix(msg, c.place+":"), ": "); ok {
		msg = rest
	}
	at, end := strings.LastIndex(c.text, "{{"), 0
	for {
		i := strings.Index(c.text[end:], "}}")
		if i < 0 {
			break
		}
		end += i + 2
		if _, _, err := parseTree(c.place, c.text[:end]); err != nil && !strings.Contains(err.Error(), "unexpected EOF") {
			at = strings.LastIndex(c.text[:end], "{{")
			break
		}
	}
	switch {
	case strings.Contains(msg, "bad character"):
		msg += `: a column that is no word is written {{index . "my-col"}}`
	case strings.Contains(msg, "unexpected EOF"):
		msg = "{{if}} or {{with}} without {{end}}"
	case at >= 0 && (strings.HasPrefix(c.text[at:], `{{"`) || strings.HasPrefix(c.text[at:], `{{{`)):
		msg += ": where two braces are meant as they are, put a blank between them"
	}
	return c.errorf(max(at, 0), "%s", msg)
}

// list walks over a list of nodes that begins at a place, and returns the place
// after it. dot says that {{.}} is the row.
func (c *compiler) list(nodes *parse.ListNode, at place, dot bool) (place, error) {
	if nodes == nil {
		return at, nil
	}
	for _, node := range nodes.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			c.segments = append(c.segments, segment{text: string(n.Text), at: int(n.Pos)})
			at = at.after(string(n.Text))
		case *parse.CommentNode:
		case *parse.ActionNode:
			if err := c.action(n.Pipe, at, dot); err != nil {
				return at, err
			}
			if len(n.Pipe.Decl) == 0 {
				at = at.afterValue()
			}
		case *parse.IfNode:
			next, err := c.branch(&n.BranchNode, at, dot, dot)
			if err != nil {
				return at, err
			}
			at = next
		case *parse.WithNode:
			next, err := c.branch(&n.BranchNode, at, dot, false)
			if err != nil {
				return at, err
			}
			at = next
		default:
			return at, c.errorf(c.opening(int(node.Position())), "%s is not available: a template has values, {{if}} and {{with}}", keyword(node))
		}
	}
	return at, nil
}

func keyword(n parse.Node) string {
	word, _, _ := strings.Cut(strings.Trim(n.String(), "{}"), " ")
	word, _, _ = strings.Cut(word, "}")
	return "{{" + word + "}}"
}

func (c *compiler) branch(b *parse.BranchNode, at place, dot, inside bool) (place, error) {
	c.branches = true
	if err := c.pipe(b.Pipe, dot); err != nil {
		return at, err
	}
	if raw, ok := lastFunction(b.Pipe); ok && raw == "raw" {
		return at, c.errorf(int(b.Pipe.Pos), "raw means nothing in a condition: leave it out")
	}
	yes, err := c.list(b.List, at, inside)
	if err != nil {
		return at, err
	}
	no, err := c.list(b.ElseList, at, dot)
	if err != nil {
		return at, err
	}
	end, ok := yes.join(no)
	if !ok {
		return at, c.errorf(c.opening(int(b.Pos)), "the branches end in different places (%s, %s): what follows cannot be escaped for both", yes, no)
	}
	return end, nil
}

// action checks one action and makes it escape its value for the place.
func (c *compiler) action(p *parse.PipeNode, at place, dot bool) error {
	if err := c.pipe(p, dot); err != nil {
		return err
	}
	if len(p.Decl) > 0 {
		c.branches = true
		return nil
	}
	last, _ := lastFunction(p)
	escape := at.escape()
	switch {
	case last == "raw",
		last == "urlquery" && urlStart < at && at <= urlQuery,
		(last == "json" || last == "num") && at == jsonValue:
		escape = nil
	case at == urlStart:
		return c.errorf(c.column(p), "the URL begins with a value, whose slashes and colons are escaped: write {{raw …}} for a column of whole URLs")
	case at == jsonEscape:
		return c.errorf(c.column(p), "a value after a backslash")
	}
	c.raw = c.raw || last == "raw"
	c.number = c.number || last == "num"
	if e, ok := c.expression(p, nil); ok {
		c.segments = append(c.segments, segment{value: e, escape: escape, at: int(p.Pos)})
	} else {
		c.branches = true
	}
	if escape != nil && at != plain {
		name := parse.NewIdentifier(escaperOf(at)).SetPos(p.Pos)
		p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{name}})
	}
	return nil
}

// opening returns where the action around at begins.
func (c *compiler) opening(at int) int {
	return max(0, strings.LastIndex(c.text[:min(at, len(c.text))], "{{"))
}

// column returns where the first operand of an action stands.
func (c *compiler) column(p *parse.PipeNode) int { return int(p.Cmds[0].Args[0].Position()) }

// lastFunction returns the function whose result the pipeline is, if any.
func lastFunction(p *parse.PipeNode) (string, bool) {
	cmd := p.Cmds[len(p.Cmds)-1]
	id, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok {
		return "", false
	}
	return id.Ident, true
}

func (p place) String() string {
	switch p {
	case urlStart:
		return "the start of the URL"
	case urlRef, urlPath:
		return "the path"
	case urlHost:
		return "the host"
	case urlQuery:
		return "the query"
	case jsonValue:
		return "outside quotes"
	case jsonString, jsonEscape:
		return "inside quotes"
	}
	return fmt.Sprintf("place %d", int(p))
}
