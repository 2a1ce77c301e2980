package input

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/template"
)

// Options say how to read the input. The zero value tells the format by itself
// and refuses duplicate ids.
type Options struct {
	// Format is "auto" (or empty), "urls", "jsonl", "csv", "tsv", "lines",
	// "openai-batch" or "anthropic-batch".
	Format  string
	MaxLine int // longest line, or row of a table, in bytes; 0 means 16 MiB
	// Delimiter stands between the fields of a table; 0 means a comma in csv
	// and a tab in tsv.
	Delimiter rune
	// NoHeader says that the first row of a table is data. Its columns are then
	// named c1, c2 and so on.
	NoHeader bool
	// Template renders requests from the rows of a table, from plain lines (with
	// the column "line") and from the top-level fields of JSON objects. Without
	// a template for the URL it adds to the rows of a list of URLs (with the
	// column "url"). Nil is none.
	Template *template.Spec
	// Method is what rows of a list and rendered rows get that name none; empty
	// means POST with a body and GET without.
	Method string
	// BaseURL resolves URLs without a scheme, if not nil.
	BaseURL *url.URL
	// ResolveProvider returns the base URL of a provider named by a row, which
	// may be nil. A nil func takes any name and resolves on BaseURL.
	ResolveProvider func(name string) (base *url.URL, ok bool)
	// AllowFiles permits body_file.
	AllowFiles bool
	// OnDuplicate says what becomes of a second row with the same id: "fail" (or
	// empty) makes it a RowError, "suffix" appends "-2", "-3" to its id, "skip"
	// leaves it out.
	OnDuplicate string
	// Check may refuse a good row, whose Size and Key are known; its error
	// becomes the RowError of the row. Nil takes all.
	Check func(*Row) error
}

// DefaultMaxLine is the longest line read unless Options say otherwise.
const DefaultMaxLine = 16 << 20

// formats are those that can be read.
var formats = []string{"auto", "urls", "jsonl", "csv", "tsv", "lines", "openai-batch", "anthropic-batch"}

func (o Options) check() (Options, error) {
	if o.Format == "" {
		o.Format = "auto"
	}
	if !slices.Contains(formats, o.Format) {
		return o, fmt.Errorf("unknown input format %q: want %s", o.Format, strings.Join(formats, ", "))
	}
	switch o.OnDuplicate {
	case "":
		o.OnDuplicate = "fail"
	case "fail", "suffix", "skip":
	default:
		return o, fmt.Errorf("unknown treatment %q of duplicate ids: want fail, suffix or skip", o.OnDuplicate)
	}
	switch {
	case o.MaxLine < 0:
		return o, fmt.Errorf("the longest line is negative: %d", o.MaxLine)
	case o.MaxLine == 0:
		o.MaxLine = DefaultMaxLine
	}
	if u := o.BaseURL; u != nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return o, errors.New("the base URL wants http:// or https:// and a host")
	}
	if d := o.Delimiter; d != 0 && (d > '~' || d < ' ' && d != '\t' && d < 0x1C || d == '"') {
		return o, fmt.Errorf("the delimiter %q is not one of the ASCII characters that can stand between fields", d)
	}
	if o.Method != "" {
		if !token(o.Method) {
			return o, fmt.Errorf("not a method: %s", quote(o.Method))
		}
		if o.Method = method(o.Method); o.Method == "CONNECT" {
			return o, errors.New("method CONNECT is not a request")
		}
	}
	return o, o.checkTemplate()
}

// checkTemplate finds what is wrong with the template for any input.
func (o *Options) checkTemplate() error {
	if o.Template != nil {
		if err := o.Template.Check(); err != nil {
			return err
		}
		for _, h := range o.Template.Headers {
			if msg := new(Row).setHeader(h.Name, []string{"h"}); msg != "" {
				return errors.New("-H: " + msg)
			}
		}
	}
	if o.Format == "auto" {
		return nil
	}
	return o.needs(o.Format)
}

// needs reports whether the template fits a format.
func (o *Options) needs(format string) error {
	hasURL := o.Template != nil && o.Template.URL != ""
	switch format {
	case "csv", "tsv":
		if !hasURL {
			return errors.New("a table needs --url, for instance --url 'https://api.example/v1?q={{.name}}', or --url '{{raw .url}}' if a column holds whole URLs")
		}
	case "lines":
		if !hasURL {
			return errors.New("plain lines need --url, for instance --url 'https://api.example/v1?q={{.line}}'")
		}
	case "urls":
		if hasURL {
			return errors.New("a list of URLs takes no --url: use --input-format lines, or csv, to fill in a template")
		}
	case "openai-batch", "anthropic-batch":
		if o.Template != nil {
			return errors.New("a batch file has whole requests and takes no templates: use --input-format jsonl to fill one in")
		}
	case "jsonl":
		if o.Template != nil && !hasURL {
			return errors.New("templates for JSON Lines need --url as well: with them the fields of an object are values, not a request")
		}
	}
	return nil
}

// methodOf returns the method of a row that names none.
func (o *Options) methodOf(r *Row) string {
	switch {
	case o.Method != "":
		return o.Method
	case r.HasBody:
		return "POST"
	}
	return "GET"
}

// delimiter returns what stands between the fields of a table.
func (o *Options) delimiter(format string) byte {
	switch {
	case o.Delimiter != 0:
		return byte(o.Delimiter)
	case format == "tsv":
		return '\t'
	}
	return ','
}

// formatOf tells the format by the name of a file, compressed or not, or
// returns "auto".
func formatOf(name string) string {
	name = strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch {
	case strings.HasSuffix(name, ".csv"):
		return "csv"
	case strings.HasSuffix(name, ".tsv"), strings.HasSuffix(name, ".tab"):
		return "tsv"
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".ndjson"):
		return "jsonl"
	}
	return "auto"
}

// formatBy tells the format by the first line that is not blank.
func (o *Options) formatBy(line []byte) string {
	template := o.Template != nil && o.Template.URL != ""
	switch c := line[indent(line)]; {
	case c == '{', !template && (c == '[' || c == '"'):
		return "jsonl"
	case template:
		return "lines"
	}
	return "urls"
}
