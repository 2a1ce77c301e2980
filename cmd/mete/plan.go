package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/results"
	"github.com/metehq/mete/sizing"
)

func newPlanCommand() *cobra.Command {
	var in sizing.Input
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan --rate N/PERIOD {--latency DURATION | RESULTS…}",
		Short: "Compute how many calls to keep in flight (Little's law)",
		Long: `Compute how many calls to keep in flight at once.

A rate limit says how many calls may start. How many are then in flight follows
from how long they take (Little's law): 50/s x 200ms = 10. That figure, doubled
for slower calls, is the concurrency to set. A connection pool, memory or
processors may allow less; the least of them decides, and mete says which.

RESULTS are files that mete run has written: the latency is then the median of
the calls in them. Without any this is a computed start: measure with real calls
(mete tune), and correct it.`,
		Example: `  # 50 calls a second that take 200 ms each
  mete plan --rate 50/s --latency 200ms

  # How long will a million rows take, and does the pool of 20 carry it?
  mete plan --rate 500/m --latency 2.5s --pool 20 --requests 1000000

  # from the calls of a run instead of a guess
  mete plan out.jsonl --rate 50/s

  # Large responses: no more in flight than memory holds; for a script
  mete plan --rate 50/s --latency 200ms --memory 512MiB --response-size 8MiB --json`,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, files []string) error {
			measured := progress.Quantiles{}
			if len(files) > 0 {
				var err error
				if measured, err = measure(cmd, files, &in); err != nil {
					return err
				}
			}
			p, err := sizing.For(in)
			if err != nil {
				return fmt.Errorf("plan: %w", err)
			}
			if measured.Mean > 2*measured.P50 {
				p.Warnings = append(p.Warnings, fmt.Sprintf("slow calls take far longer than the median: the mean is %s; a higher --headroom carries them", span(measured.Mean)))
			}
			if asJSON {
				return writePlanJSON(cmd.OutOrStdout(), p)
			}
			return writePlan(cmd.OutOrStdout(), in, p, measured)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(rateFlag{&in}, "rate", "what the provider allows: 50/s, 500/m, 5000/h, 5/15s")
	f.Var(positive(&in.Latency, "duration", "200ms or 2.5s", time.ParseDuration), "latency", "mean time of one call, to the end of its body: 200ms")
	f.Var(positive(&in.Pool, "n", "20", strconv.Atoi), "pool", "connections that the client may open")
	f.Var(positive(&in.Memory, "size", "512MiB", parseSize), "memory", "memory for all responses in flight; needs --response-size")
	f.Var(positive(&in.ResponseSize, "size", "8MiB", parseSize), "response-size", "memory that one response takes; needs --memory")
	f.Var(positive(&in.CPU, "n", "8", strconv.Atoi), "cpu", "processors, for calls that compute instead of wait")
	in.Headroom = 2
	f.Var(positive(&in.Headroom, "factor", "2 or 1.5", parseFactor), "headroom", "factor on Little's figure, at least 1")
	f.Var(positive(&in.Requests, "n", "1000000", parseInt), "requests", "calls to make, for the time to finish")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// measure takes the latency from the calls in result files.
func measure(cmd *cobra.Command, files []string, in *sizing.Input) (progress.Quantiles, error) {
	if in.Latency > 0 {
		return progress.Quantiles{}, errors.New("plan: give --latency or result files, not both")
	}
	s, err := results.Collect(&results.Input{Paths: files, Stdin: cmd.InOrStdin()}, results.NoGroup)
	if err != nil {
		return progress.Quantiles{}, fmt.Errorf("plan: %w", err)
	}
	q := s.Total.Latency()
	if q.Count == 0 {
		return q, fmt.Errorf("plan: no call in %s was answered: there is no latency to plan with", strings.Join(files, ", "))
	}
	in.Latency = q.P50.Round(10 * time.Microsecond)
	if q.P50 > 100*time.Millisecond {
		in.Latency = q.P50.Round(time.Millisecond)
	}
	in.Latency = max(in.Latency, 10*time.Microsecond)
	return q, nil
}

func writePlan(w io.Writer, in sizing.Input, p sizing.Plan, measured progress.Quantiles) error {
	var b strings.Builder
	if measured.Count > 0 {
		fmt.Fprintf(&b, "measured    p50 %s, mean %s, p95 %s of %d calls\n", span(measured.P50), span(measured.Mean), span(measured.P95), measured.Count)
	}
	fmt.Fprintf(&b, "permits     %d   (mete run -c %d)\n", p.Permits, p.Permits)
	fmt.Fprintf(&b, "decided by  %s\n", p.DecidedBy)
	fmt.Fprintf(&b, "because     %s\n", p.Comment)
	if in.Requests > 0 {
		if p.Duration > 0 {
			fmt.Fprintf(&b, "finishes    %d requests in %s\n", in.Requests, span(p.Duration))
		} else {
			fmt.Fprintf(&b, "finishes    unknown: give --latency\n")
		}
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "warning     %s\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writePlanJSON prints null for what is not known.
func writePlanJSON(w io.Writer, p sizing.Plan) error {
	var seconds *float64
	if p.Duration > 0 {
		s := p.Duration.Seconds()
		seconds = &s
	}
	type by struct {
		Rate   *int `json:"rate"`
		Pool   *int `json:"pool"`
		Memory *int `json:"memory"`
		CPU    *int `json:"cpu"`
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Permits   int      `json:"permits"`
		By        by       `json:"by"`
		DecidedBy string   `json:"decided_by"`
		DurationS *float64 `json:"duration_s"`
		Comment   string   `json:"comment"`
		Warnings  []string `json:"warnings"`
	}{
		p.Permits,
		by{known(p.By.Rate), known(p.By.Pool), known(p.By.Memory), known(p.By.CPU)},
		p.DecidedBy, seconds, p.Comment, append([]string{}, p.Warnings...),
	})
}

// known is a number for JSON: null is 0.
func known(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// span writes a duration as people say it, to three figures or so.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// rateFlag is --rate.
type rateFlag struct{ in *sizing.Input }

func (r rateFlag) Set(s string) error {
	l, err := mete.ParseRate(s)
	if err != nil {
		return err
	}
	if l.N == 0 {
		return fmt.Errorf("a rate of 0 never starts anything")
	}
	r.in.Rate, r.in.Per = float64(l.N), l.Per
	return nil
}

func (r rateFlag) String() string { return "" }
func (r rateFlag) Type() string   { return "rate" }

// positiveFlag is a flag whose value must be above 0.
type positiveFlag[T int | int64 | float64 | time.Duration] struct {
	p         *T
	kind, eg  string
	parse     func(string) (T, error)
	isDefault T
}

func positive[T int | int64 | float64 | time.Duration](p *T, kind, eg string, parse func(string) (T, error)) *positiveFlag[T] {
	return &positiveFlag[T]{p, kind, eg, parse, *p}
}

func (f *positiveFlag[T]) Set(s string) error {
	v, err := f.parse(strings.TrimSpace(s))
	if err != nil || v <= 0 {
		return fmt.Errorf("must be above 0, written like %s", f.eg)
	}
	*f.p = v
	return nil
}

func (f *positiveFlag[T]) String() string {
	if f.p == nil || f.isDefault == 0 {
		return ""
	}
	return fmt.Sprint(*f.p)
}

func (f *positiveFlag[T]) Type() string { return f.kind }

func parseInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func parseFactor(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = strconv.ErrRange
	}
	return v, err
}

// parseSize reads a size in bytes: 1048576, 512MiB, 1.5GB, 64K. Units with i
// and single letters are powers of 1024, those with B alone powers of 1000.
func parseSize(s string) (int64, error) {
	at := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at < 0 {
		at = len(s)
	}
	num, unit := s[:at], strings.ToLower(strings.TrimSpace(s[at:]))
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	if unit != "" && unit != "b" {
		power := strings.IndexByte("kmgtp", unit[0]) + 1
		base := map[string]float64{"": 1024, "ib": 1024, "b": 1000}[unit[1:]]
		if power == 0 || base == 0 {
			return 0, fmt.Errorf("%q is not a size", s)
		}
		f *= math.Pow(base, float64(power))
	}
	if f >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return int64(f), nil
}
