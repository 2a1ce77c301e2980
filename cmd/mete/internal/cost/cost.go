// Package cost says what a request costs in units other than requests, such as
// tokens: by expressions over the request before it is sent, and over the
// response once it is there.
//
// Expressions are those of expr-lang. They know these names:
//
//	body           of the request: its JSON, or its text where it is none;
//	               {} where there is none
//	len(body)      its size in bytes, JSON or not
//	row, meta      the columns of a table's row or the meta of a JSON row; {}
//	               where there are none
//	method, url    of the request, url without credentials
//
// and where the true cost is asked for, also these:
//
//	response       the JSON of the answer, or its text; of a stream see Response
//	len(response)  its size in bytes
//	status         its HTTP status
//	header         its fields: names in lower case, values as text
//
// len of anything else is as expr-lang has it: characters of a text, entries of
// a list. A field that is missing is nil, so that body.max_tokens ?? 512 gives
// a default.
package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Rule is what a request costs in one unit.
type Rule struct {
	Unit string
	// Estimate is what the request is admitted with; nil if its row says it.
	Estimate *Expr
	// Actual is what it did cost, by its response; nil if the estimate stands.
	Actual *Expr
}

// UnitName matches the names that a unit may have.
var UnitName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

const (
	maxNodes  = 1000    // of an expression
	maxMemory = 1 << 20 // entries that lists and texts may have while it is evaluated
	most      = 1 << 53 // beyond it numbers lose units
)

// Expr is a compiled expression. It may be used by many goroutines.
type Expr struct {
	text    string
	program *vm.Program
	uses    map[string]bool
}

// String is the text of the expression.
func (e *Expr) String() string { return e.text }

// Error is a mistake in an expression at a place of it. Line and Column count
// from 1, Column in characters.
type Error struct {
	Line, Column int
	Message      string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// request is what every expression sees. The names with parentheses cannot be
// written; len(body) is made into them when an expression is compiled.
type request struct {
	Body   any    `expr:"body"`
	Size   int    `expr:"len(body)"`
	Row    any    `expr:"row"`
	Meta   any    `expr:"meta"`
	Method string `expr:"method"`
	URL    string `expr:"url"`
}

// exchange is what the true cost may depend on.
type exchange struct {
	request
	Response     any               `expr:"response"`
	ResponseSize int               `expr:"len(response)"`
	Status       int               `expr:"status"`
	Header       map[string]string `expr:"header"`
}

var (
	requestNames  = []string{"body", "row", "meta", "method", "url"}
	responseNames = []string{"response", "status", "header"}
)

// Estimate compiles an expression over a request. The error is an *Error.
func Estimate(text string) (*Expr, error) { return compile(text, request{}, requestNames) }

// Actual compiles an expression over a request and its response. The error is
// an *Error.
func Actual(text string) (*Expr, error) {
	return compile(text, exchange{}, slices.Concat(requestNames, responseNames))
}

func compile(text string, env any, names []string) (*Expr, error) {
	v := &visitor{uses: map[string]bool{}}
	program, err := expr.Compile(text, expr.Env(env), expr.AsFloat64(), expr.Patch(v), expr.MaxNodes(maxNodes),
		expr.DisableBuiltin("now")) // a row costs the same when it is read again
	if err == nil && v.nested {
		err = errors.New("a loop inside a loop: its time would not be bounded by the size of the body")
	}
	if err == nil {
		v.names(program.Node())
		return &Expr{text, program, v.uses}, nil
	}
	e := &Error{1, 1, err.Error()}
	if at, ok := errors.AsType[*file.Error](err); ok {
		e.Line, e.Column, e.Message = max(at.Line, 1), at.Column+1, at.Message
	}
	e.Message, _, _ = strings.Cut(e.Message, "\n")
	if strings.HasPrefix(e.Message, "unknown name") {
		e.Message += ": known here are " + strings.Join(names, ", ")
	}
	if strings.HasPrefix(e.Message, "expected float64") {
		e.Message = "a cost is a number" + strings.TrimPrefix(e.Message, "expected float64")
	}
	return nil, e
}

// visitor turns len(body) into the name of its size, and notes what is used.
type visitor struct {
	uses   map[string]bool
	nested bool
}

// Visit implements ast.Visitor; children come first.
func (v *visitor) Visit(n *ast.Node) {
	switch at := (*n).(type) {
	case *ast.IdentifierNode:
		if at.Value != "$env" {
			break
		}
		for _, name := range slices.Concat(requestNames, responseNames) {
			v.uses[name] = true
		}
	case *ast.PredicateNode:
		inner := at.Node
		if ast.Find(inner, isLoop) != nil {
			v.nested = true
		}
	case *ast.BuiltinNode:
		if at.Name != "len" || len(at.Arguments) != 1 {
			break
		}
		if id, ok := at.Arguments[0].(*ast.IdentifierNode); ok && (id.Value == "body" || id.Value == "response") {
			size := &ast.IdentifierNode{Value: "len(" + id.Value + ")"}
			ast.Patch(n, size)
		}
	}
}

func isLoop(n ast.Node) bool { _, ok := n.(*ast.PredicateNode); return ok }

// names notes the names that an expression uses once it is patched.
func (v *visitor) names(root ast.Node) {
	_ = ast.Find(root, func(n ast.Node) bool {
		if id, ok := n.(*ast.IdentifierNode); ok {
			v.uses[id.Value] = true
		}
		return false
	})
}

// Request is what an expression may look at.
type Request struct {
	Method, URL string
	Body        []byte
	// Size is that of the body; larger than Body if that is in a file, of which
	// nothing else is known.
	Size int64
	// Row is JSON: the columns of the row, or its meta. Nil is none.
	Row []byte
}

// view reads the parts of a request that e uses.
func (e *Expr) view(q *Request) (request, error) {
	r := request{Size: int(q.Size), Method: q.Method, URL: q.URL}
	if e.uses["body"] {
		if q.Size > int64(len(q.Body)) {
			return r, errors.New("the body is in a file, of which only len(body) is known")
		}
		r.Body = read(q.Body)
	}
	if e.uses["row"] || e.uses["meta"] {
		r.Row = read(q.Row)
		r.Meta = r.Row
	}
	return r, nil
}

// read is text as an expression sees it.
func read(text []byte) any {
	if len(text) == 0 {
		return map[string]any{}
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	return v
}

// Estimate is what a request costs: a whole number from 0, rounded up. It costs
// a few microseconds and, if the expression looks into the body, what it takes
// to decode it.
func (e *Expr) Estimate(q *Request) (int64, error) {
	env, err := e.view(q)
	if err != nil {
		return 0, err
	}
	return e.run(env)
}

// Actual is what a request did cost, as Estimate.
func (e *Expr) Actual(q *Request, r *Response) (int64, error) {
	env := exchange{Status: r.status, ResponseSize: int(r.size)}
	var err error
	if env.request, err = e.view(q); err != nil {
		return 0, err
	}
	if e.uses["response"] {
		if env.Response, err = r.value(); err != nil {
			return 0, err
		}
	}
	if e.uses["header"] {
		env.Header = fields(r.header)
	}
	return e.run(env)
}

// NeedsResponse reports whether the expression looks at more of a response than
// its status and header.
func (e *Expr) NeedsResponse() bool { return e.uses["response"] || e.uses["len(response)"] }

func fields(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for name, values := range h {
		m[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return m
}

func (e *Expr) run(env any) (int64, error) {
	machine := vm.VM{MemoryBudget: maxMemory}
	out, err := machine.Run(e.program, env)
	if err != nil {
		message := err.Error()
		if at, ok := errors.AsType[*file.Error](err); ok {
			message = at.Message
		}
		message, _, _ = strings.Cut(message, "\n")
		return 0, errors.New(message)
	}
	f, ok := out.(float64)
	switch {
	case !ok || math.IsNaN(f) || math.IsInf(f, 0):
		return 0, fmt.Errorf("the result is %v, not a number", out)
	case f < 0:
		return 0, fmt.Errorf("the result is %v, below 0", f)
	case f > most:
		return 0, fmt.Errorf("the result is %v, more than can be counted", f)
	}
	return int64(math.Ceil(f)), nil
}
