package config

import (
	"errors"
	"strings"
)

// ParseHeader reads a header as flags give it: "Name: value", with ${VAR} and
// ${file:path} as in a file. A value that holds one, or belongs to a name that
// carries credentials, is secret. Errors do not show it.
func ParseHeader(line string, env func(string) (string, bool)) (Header, error) {
	name, value, ok := strings.Cut(line, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok {
		return Header{}, errors.New(`not a header: write "Name: value"`)
	}
	d := &decoder{name: ".", env: env}
	at := &node{text: value}
	d.headerName(at, name)
	text, parts, ok := d.expand(at)
	for _, e := range d.errs {
		return Header{}, errors.New(e.Message)
	}
	if !ok || strings.ContainsAny(text, "\r\n\x00") {
		return Header{}, errors.New("the value of " + name + " holds a line break")
	}
	s := newSecret(text)
	s.plain = len(parts) == 0 && !credential(name)
	return Header{Name: name, Value: s}, nil
}

func credential(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key":
		return true
	}
	return false
}
