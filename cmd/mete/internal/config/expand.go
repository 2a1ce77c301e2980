package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// variable finds what looks like ${...}; that a $$ before it makes it plain
	// text is left to expand.
	variable = regexp.MustCompile(`\$\{([^{}]*)\}`)
	varName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${VAR}, ${VAR:-default}, ${VAR:?message}, ${file:path} and $$
// in a scalar. It runs after the YAML is parsed, so that no value can add a key
// or a line. It returns the text and the parts that came from ${...}.
func (d *decoder) expand(n *node) (s string, parts []string, ok bool) {
	if !strings.Contains(n.text, "$") {
		return n.text, nil, true
	}
	var b strings.Builder
	ok = true
	for rest := n.text; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			break
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			rest = after[1:]
		case strings.HasPrefix(after, "{"):
			body, tail, closed := strings.Cut(after[1:], "}")
			if !closed || strings.Contains(body, "{") {
				d.errorf(n, "${ without its }: write ${VAR}, or $$ for a dollar sign; one ${...} cannot stand inside another")
				return "", parts, false
			}
			value, err := d.lookUp(body)
			if err != nil {
				d.errorf(n, "%s", err)
				ok = false
			}
			b.WriteString(value)
			parts = append(parts, value)
			rest = tail
		default:
			if after != "" && (after[0] == '_' || after[0]|0x20 >= 'a' && after[0]|0x20 <= 'z') {
				d.warnf(n, "a $ without braces is not expanded: write ${VAR}, or $$ for a dollar sign")
			}
			b.WriteByte('$')
			rest = after
		}
	}
	return b.String(), parts, ok
}

// lookUp returns the value of what stands between the braces. Its errors name
// the variable or the file, never a value.
func (d *decoder) lookUp(body string) (string, error) {
	if path, found := strings.CutPrefix(body, "file:"); found {
		return d.readSecret(path)
	}
	name, rest, conditional := strings.Cut(body, ":")
	if !varName.MatchString(name) || conditional && !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "?") {
		return "", errors.New("not a variable: write ${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:/path}, and $$ for a dollar sign")
	}
	value, defined := d.env(name)
	switch {
	case !conditional && !defined:
		return "", fmt.Errorf("the variable %s is not set: set it, or give a default as in ${%s:-default}", name, name)
	case !conditional || defined && value != "":
		return value, nil
	case strings.HasPrefix(rest, "-"):
		return rest[1:], nil
	case rest == "?":
		return "", fmt.Errorf("the variable %s is not set", name)
	}
	return "", fmt.Errorf("the variable %s is not set: %s", name, rest[1:])
}

// readSecret reads a secret from a file, without the newline that editors put
// at its end. A relative path starts at the folder of the configuration.
func (d *decoder) readSecret(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:} names no file")
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(filepath.Dir(d.name), full)
	}
	info, err := os.Stat(full)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file") // a pipe or a device would block
	}
	if err == nil && info.Size() > maxSize {
		err = errors.New("larger than 1 MiB")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(full)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %s", path, reason(err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// reason strips the path from a file error: the message names it already.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
