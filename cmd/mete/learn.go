package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/quota"
)

// maxLearnInput is how much of standard input or of a vector file is read.
const maxLearnInput = 64 << 20

func newLearnCommand() *cobra.Command {
	var provider, now, vectors string
	cmd := &cobra.Command{
		Use:   "learn",
		Short: "Show what mete would learn from a response",
		Long: `Reads one response on standard input and prints, as one JSON object, what mete
would learn from it: whether it is a throttle, how long to wait, and the quotas.

The response is either what "curl -i" prints, of which the last one counts if
there were redirects, or a JSON object:

  {"provider": "github", "status": 403, "request_time": "2026-03-10T12:00:00Z",
   "headers": {"Retry-After": "60", "X-Other": ["one", "two"]}, "body": "..."}

Only status is required. Unknown figures are null in the output. A delay is in
milliseconds, and a reset is on the clock of --now or request_time.`,
		Example: `  curl -si https://api.github.com/zen | mete learn --provider github

  # many responses at once, one object per line, each with its id
  mete learn --vectors responses.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			override := learnInput{Provider: provider}
			if now != "" {
				t, err := time.Parse(time.RFC3339, now)
				if err != nil {
					return fmt.Errorf("--now %q: not a time; write it like 2026-03-10T12:00:00Z", now)
				}
				override.Time = t
			}
			if vectors != "" {
				return learnVectors(cmd.OutOrStdout(), cmd.InOrStdin(), vectors, override)
			}
			if f, ok := cmd.InOrStdin().(*os.File); ok && isatty.IsTerminal(f.Fd()) {
				return cmd.Help()
			}
			return learnOne(cmd.OutOrStdout(), cmd.InOrStdin(), override)
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "read the response as this `NAME`'s, whatever the input says")
	cmd.Flags().StringVar(&now, "now", "", "`TIME` at which the response arrived (default request_time, else the present)")
	cmd.Flags().StringVar(&vectors, "vectors", "", "evaluate a JSON array of responses in `FILE`, - for standard input")
	return cmd
}

// learnInput is a response in its JSON form.
type learnInput struct {
	ID       string                 `json:"id"`
	Provider string                 `json:"provider"`
	Status   int                    `json:"status"`
	Time     time.Time              `json:"request_time"`
	Headers  map[string]headerLines `json:"headers"`
	Body     string                 `json:"body"`
}

// headerLines is one field line, or an array of several.
type headerLines []string

func (l *headerLines) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = headerLines{one}
		return nil
	}
	var several []string
	if json.Unmarshal(data, &several) != nil {
		return errors.New("a header is a string or an array of strings")
	}
	*l = several
	return nil
}

func (in learnInput) response(override learnInput) quota.Response {
	r := quota.Response{
		Provider: in.Provider,
		Status:   in.Status,
		Header:   make(http.Header, len(in.Headers)),
		Body:     []byte(in.Body),
		Now:      in.Time,
	}
	for name, lines := range in.Headers {
		r.Header[name] = lines // the spelling may matter to what is tested
	}
	return override.apply(r)
}

// apply puts what the flags say over what the input says.
func (in learnInput) apply(r quota.Response) quota.Response {
	if in.Provider != "" {
		r.Provider = in.Provider
	}
	if !in.Time.IsZero() {
		r.Now = in.Time
	}
	return r
}

func learnOne(out io.Writer, in io.Reader, override learnInput) error {
	data, err := readLearnInput(in, "standard input")
	if err != nil {
		return err
	}
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 {
		return errors.New("standard input is empty; pipe a response into it, as in: curl -si URL | mete learn")
	}
	var r quota.Response
	if start[0] == '{' {
		var v learnInput
		if err := decodeLearn(data, &v, "standard input"); err != nil {
			return err
		}
		if err := v.check(); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		r = v.response(override)
	} else {
		if r, err = parseResponseHead(data); err != nil {
			return fmt.Errorf("standard input:%w", err)
		}
		r = override.apply(r)
	}
	return writeLearned(out, "", quota.Parse(r))
}

func learnVectors(out io.Writer, stdin io.Reader, file string, override learnInput) error {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("--vectors: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := readLearnInput(in, file)
	if err != nil {
		return err
	}
	var list []learnInput
	if err := decodeLearn(data, &list, file); err != nil {
		return err
	}
	for i, v := range list {
		err := v.check()
		if err == nil && v.ID == "" {
			err = errors.New("no id to print with its result")
		}
		if err != nil {
			return fmt.Errorf("%s: response %d: %w", file, i+1, err)
		}
	}
	w := bufio.NewWriter(out)
	for _, v := range list {
		if err := writeLearned(w, v.ID, quota.Parse(v.response(override))); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (in learnInput) check() error {
	if in.Status < 100 || in.Status > 999 {
		return fmt.Errorf("status %d is not an HTTP status; give it as a number such as 429", in.Status)
	}
	return nil
}

func readLearnInput(in io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxLearnInput+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxLearnInput {
		return nil, fmt.Errorf("%s: more than %d MiB; give it in parts", name, maxLearnInput>>20)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// decodeLearn reads one JSON value and says where it is wrong.
func decodeLearn(data []byte, v any, name string) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	var offset int64 = -1
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
		err = fmt.Errorf("%q: a value that is a %s does not fit here", e.Field, e.Value)
		if e.Field == "" {
			err = fmt.Errorf("it must not be a single %s", e.Value)
		}
	}
	if offset < 0 {
		return fmt.Errorf("%s: %w", name, err)
	}
	before := data[:min(int(offset), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("%s:%d:%d: %w", name, line, max(column, 1), err)
}

// parseResponseHead reads what curl -i prints. Interim responses, those of a
// proxy and redirects come first; the last head is the one that matters.
// An error begins with its line.
func parseResponseHead(data []byte) (quota.Response, error) {
	r := quota.Response{}
	line := 0
	next := func() string {
		text, rest, _ := bytes.Cut(data, []byte("\n"))
		data, line = rest, line+1
		return strings.TrimSuffix(string(text), "\r")
	}
	for first := true; first || bytes.HasPrefix(data, []byte("HTTP/")); first = false {
		r.Header = make(http.Header)
		status := next()
		for first && strings.TrimSpace(status) == "" {
			status = next() // the input is not all blank
		}
		proto, code, _ := strings.Cut(status, " ")
		code, _, _ = strings.Cut(code, " ")
		n, err := strconv.Atoi(code)
		if !strings.HasPrefix(proto, "HTTP/") || err != nil || len(code) != 3 || n < 100 {
			return r, fmt.Errorf("%d: not a status line such as \"HTTP/1.1 429 Too Many Requests\"; use curl -i, or give JSON", line)
		}
		r.Status = n
		if err := readHeaderLines(r.Header, next, &line, &data); err != nil {
			return r, err
		}
	}
	r.Body = data
	return r, nil
}

func readHeaderLines(h http.Header, next func() string, line *int, data *[]byte) error {
	last := ""
	for len(*data) > 0 {
		text := next()
		if text == "" {
			break
		}
		if lines := h[last]; last != "" && (text[0] == ' ' || text[0] == '\t') {
			lines[len(lines)-1] += " " + strings.TrimSpace(text) // a folded line
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return fmt.Errorf("%d: not a header line such as \"Retry-After: 60\"", *line)
		}
		last = name
		h[name] = append(h[name], strings.Trim(value, " \t"))
	}
	return nil
}

// learned is the output; null stands for what is not known.
type learned struct {
	ID         string         `json:"id,omitempty"`
	RetryAfter *int64         `json:"retry_after_ms"`
	Quotas     []learnedQuota `json:"quotas"`
	Throttled  bool           `json:"throttled"`
	Terminal   bool           `json:"terminal"`
}

type learnedQuota struct {
	Name      string  `json:"name"`
	Unit      string  `json:"unit"`
	Limit     *int64  `json:"limit"`
	Remaining *int64  `json:"remaining"`
	Window    *int64  `json:"window_ms"`
	Reset     *string `json:"reset_at"`
}

func writeLearned(w io.Writer, id string, r quota.Reading) error {
	l := learned{ID: id, Quotas: []learnedQuota{}, Throttled: r.Throttled, Terminal: r.Terminal}
	if r.HasRetryAfter {
		l.RetryAfter = new(r.RetryAfter.Milliseconds())
	}
	for _, q := range r.Quotas {
		x := learnedQuota{Name: q.Name, Unit: q.Unit}
		if q.HasLimit {
			x.Limit = &q.Limit
		}
		if q.HasRemaining {
			x.Remaining = &q.Remaining
		}
		if q.Window > 0 {
			x.Window = new(ceilMilliseconds(q.Window))
		}
		if !q.Reset.IsZero() {
			x.Reset = new(formatReset(q.Reset))
		}
		l.Quotas = append(l.Quotas, x)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(l)
}

// ceilMilliseconds rounds up, since a shorter window means a higher rate.
func ceilMilliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

// formatReset prints a time in UTC, with milliseconds if there are any.
func formatReset(t time.Time) string {
	t = t.Add(time.Millisecond - 1).UTC().Truncate(time.Millisecond)
	if t.Nanosecond() == 0 {
		return t.Format(time.RFC3339)
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}
