package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/template"
)

// tableFlags turn the rows of a table into requests.
type tableFlags struct {
	url, method, data, json, id string
	delimiter                   string
	noHeader                    bool
}

func (f *tableFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.url, "url", "", "`TEMPLATE` of the URL: 'https://h/v1?q={{.address}}'; values are escaped")
	s.StringVarP(&f.method, "request", "X", "", "`METHOD` of rows that name none")
	s.StringVarP(&f.data, "data", "d", "", "`TEMPLATE` of the body, or @FILE with one")
	s.StringVar(&f.json, "json", "", "`TEMPLATE` of a JSON body, or @FILE; values are escaped")
	s.StringVar(&f.id, "id", "", "`TEMPLATE` of the row's id (default: the column id)")
	s.StringVar(&f.delimiter, "delimiter", "", "`CHARACTER` between the fields of a table (default: comma, or tab in tsv)")
	s.BoolVar(&f.noHeader, "no-header", false, "the first row of a table is data; columns are c1, c2 …")
	s.StringVar(&f.method, "method", "", "")
	_ = s.MarkHidden("method")
}

// apply puts the flags, and those lines of -H that are templates, into the
// options of the input.
func (f *tableFlags) apply(o *input.Options, headers []string) error {
	o.Method, o.NoHeader = f.method, f.noHeader
	switch d := strings.ReplaceAll(f.delimiter, `\t`, "\t"); {
	case d == "":
	case utf8.RuneCountInString(d) == 1:
		o.Delimiter, _ = utf8.DecodeRuneInString(d)
	default:
		return fmt.Errorf("--delimiter %q: want one character", f.delimiter)
	}
	if f.data != "" && f.json != "" {
		return errors.New("-d and --json exclude each other")
	}
	spec := &template.Spec{URL: f.url, ID: f.id, Env: nil}
	var err error
	if spec.Headers, err = headerTemplates(headers); err != nil {
		return err
	}
	if f.url+f.data+f.json+f.id == "" && len(spec.Headers) == 0 {
		return nil
	}
	if spec.Body, err = textOrFile("-d", f.data); err != nil {
		return err
	}
	if spec.JSON, err = textOrFile("--json", f.json); err != nil {
		return err
	}
	o.Template = spec
	return nil
}

// isTemplate reports whether a line of -H has a value of its own for every row.
func isTemplate(line string) bool {
	_, value, ok := strings.Cut(line, ":")
	return ok && strings.Contains(value, "{{")
}

func headerTemplates(lines []string) (list []template.Header, err error) {
	for _, line := range lines {
		if !isTemplate(line) {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if strings.Contains(value, "${") {
			return nil, fmt.Errorf("-H %s: a value is a template or holds ${VAR}, not both", name)
		}
		list = append(list, template.Header{Name: name, Value: value})
	}
	return list, nil
}

// templateParts are what rows are rendered with, for a fingerprint.
func templateParts(o *input.Options) []string {
	parts := []string{o.Method, string(o.Delimiter), fmt.Sprint(o.NoHeader)}
	if t := o.Template; t != nil {
		parts = append(parts, t.URL, t.Body, t.JSON, t.ID)
		for _, h := range t.Headers {
			parts = append(parts, h.Name, h.Value)
		}
	}
	return parts
}

// textOrFile is a flag's value, or what the file it names with @ holds.
func textOrFile(flag, value string) (string, error) {
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s @%s: %w", flag, path, err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
