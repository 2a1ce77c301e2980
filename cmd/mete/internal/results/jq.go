package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
	"github.com/mattn/go-runewidth"
)

// jq is a compiled expression. It sees neither the environment nor files.
type jq struct{ code *gojq.Code }

func compileJQ(expr string) (*jq, error) {
	q, err := gojq.Parse(expr)
	if err != nil {
		at := len(expr)
		if e, ok := errors.AsType[*gojq.ParseError](err); ok {
			at = e.Offset - len(e.Token)
		}
		return nil, jqError(expr, at, err)
	}
	code, err := gojq.Compile(q)
	if err != nil {
		return nil, jqError(expr, named(expr, err), err)
	}
	return &jq{code}, nil
}

var jqName = regexp.MustCompile(`not defined: ([$@\w:]+)`)

// named finds the name that a compile error speaks of; such an error does not
// say where it is.
func named(expr string, err error) int {
	m := jqName.FindStringSubmatch(err.Error())
	if m == nil {
		return -1
	}
	at := regexp.MustCompile(`(^|[^\w])` + regexp.QuoteMeta(m[1]) + `($|[^\w])`).FindStringIndex(expr)
	if at == nil {
		return -1
	}
	return at[0] + strings.Index(expr[at[0]:], m[1])
}

// jqError shows the line of the expression with a caret under byte at.
func jqError(expr string, at int, err error) error {
	if at < 0 || at > len(expr) {
		return fmt.Errorf("--jq: %w\n  %s", err, strings.TrimSpace(expr))
	}
	start := strings.LastIndexByte(expr[:at], '\n') + 1
	line, _, _ := strings.Cut(expr[start:], "\n")
	where := fmt.Sprintf("column %d", utf8.RuneCountInString(expr[start:at])+1)
	if n := strings.Count(expr[:start], "\n"); n > 0 {
		where = fmt.Sprintf("line %d, %s", n+1, where)
	}
	line = strings.ReplaceAll(line, "\t", " ")
	return fmt.Errorf("--jq: %s: %w\n  %s\n  %s^", where, err, line, strings.Repeat(" ", runewidth.StringWidth(expr[start:at])+strings.Count(expr[start:at], "\t")))
}

// keeps reports whether an output of the expression is neither null nor false.
func (q *jq) keeps(record []byte) (bool, error) {
	d := json.NewDecoder(bytes.NewReader(record))
	d.UseNumber() // integers of any size compare as they are
	var v any
	if err := d.Decode(&v); err != nil {
		return false, err
	}
	outputs := q.code.Run(v)
	for {
		out, ok := outputs.Next()
		if !ok {
			return false, nil
		}
		if err, ok := out.(error); ok {
			return false, err
		}
		if out != nil && out != false {
			return true, nil
		}
	}
}
