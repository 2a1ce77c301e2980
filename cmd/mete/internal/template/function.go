package template

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	texttemplate "text/template"
)

// function is what a template may call. The arguments count a piped value.
type function struct {
	least, most int
	// unary is the function of one value, nil for the others.
	unary func(value string) (string, error)
}

const any_ = 1 << 10 // number of arguments

var functions = map[string]function{
	"b64":      {1, 1, func(v string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(v)), nil }},
	"json":     {1, 1, func(v string) (string, error) { return string(escapeJSON(nil, v)), nil }},
	"lower":    {1, 1, func(v string) (string, error) { return strings.ToLower(v), nil }},
	"num":      {1, 1, number},
	"raw":      {1, 1, func(v string) (string, error) { return v, nil }},
	"trim":     {1, 1, func(v string) (string, error) { return strings.TrimSpace(v), nil }},
	"urlquery": {1, 1, func(v string) (string, error) { return url.QueryEscape(v), nil }},
	"default":  {2, 2, nil},
	"env":      {1, 1, nil},
	// Of text/template.
	"and":   {1, any_, nil},
	"eq":    {2, any_, nil},
	"index": {2, 2, nil},
	"ne":    {2, 2, nil},
	"not":   {1, 1, nil},
	"or":    {1, any_, nil},
}

func functionNames() []string {
	var names []string
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// valueError is a value that a function does not take.
type valueError struct{ msg string }

func (e *valueError) Error() string { return e.msg }

// number lets a JSON number through with the digits it has.
func number(v string) (string, error) {
	t := strings.TrimSpace(v)
	if t == "" || t[0] != '-' && (t[0] < '0' || t[0] > '9') || !json.Valid([]byte(t)) {
		return "", &valueError{"num: " + quote(v) + " is not a number"}
	}
	return t, nil
}

func orElse(def, v string) string {
	if v == "" {
		return def
	}
	return v
}

// text returns a value of text/template as it would print it.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

// escaperOf names the function that escapes for a place.
func escaperOf(p place) string { return fmt.Sprintf("_escape%d", p) }

// funcMap is what text/template calls, escapers included.
func funcMap(env func(string) (string, bool)) texttemplate.FuncMap {
	m := texttemplate.FuncMap{
		"default": func(def, v any) string { return orElse(text(def), text(v)) },
		"env": func(name string) string {
			value, _ := env(name) // Compile has seen that it is there
			return value
		},
	}
	for name, f := range functions {
		if f.unary != nil {
			m[name] = func(v any) (string, error) { return f.unary(text(v)) }
		}
	}
	for p := urlStart; p <= jsonString; p++ {
		m[escaperOf(p)] = func(v any) string {
			if _, ok := v.(bool); ok && p == jsonValue {
				return text(v)
			}
			return string(p.escape()(nil, text(v)))
		}
	}
	return m
}
