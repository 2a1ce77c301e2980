package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// runGroups are the flags of mete run as --help lists them.
var runGroups = []flagGroup{
	{"Input", []string{"input-format", "delimiter", "no-header", "id", "on-bad-row", "dedup"}},
	{"Requests", []string{"url", "request", "data", "json", "header", "base-url", "config", "provider"}},
	{"Limits", []string{"rate", "limit", "cost", "burst", "concurrency", "state"}},
	{"Attempts", []string{"timeout", "retry", "fallback", "idempotent", "insecure", "cacert"}},
	{"Bounds", []string{"dry-run", "max-requests", "max-cost", "deadline", "halt"}},
	{"Cache", []string{"cache", "cache-ttl", "cache-only"}},
	{"Output", []string{"output", "resume", "retry-failed", "overwrite", "errors", "jq", "body"}},
	{"Display", []string{"progress", "summary", "quiet", "help"}},
}

// runCommon are those that -h lists.
var runCommon = []string{"rate", "concurrency", "output", "resume", "url", "json", "header", "config", "provider", "dry-run", "retry", "quiet"}

func runHelp(c *cobra.Command, short bool, w io.Writer) {
	if short {
		fmt.Fprintf(w, "%s.\n\n  %s\n\n%s\n%s\n\nmete run --help lists all flags.\n", c.Short, c.UseLine(), usages(c, runCommon), c.Example)
		return
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", c.Long, c.UseLine(), c.Example)
	for _, g := range runGroups {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, usages(c, g.flags))
	}
	fmt.Fprint(w, "\nThe file of -f has the rest, in its sections run and defaults: mete config init\nwrites one that explains them.\n")
}

// runFlags are the flags of mete run.
type runFlags struct {
	format, baseURL, provider, configFile string
	headers, rates                        []string
	burst                                 int64
	concurrency                           string
	onBadRow                              string
	timeout                               time.Duration
	retries                               int
	fallback                              string
	retryDelay                            time.Duration
	idempotent                            bool
	state                                 string
	insecure                              bool
	cacert                                string
	output                                string
	resume, overwrite                     bool
	bodies                                string
	progress, summary                     string
	quiet                                 bool

	table  tableFlags
	costs  costFlags
	bounds boundFlags
	cache  cacheFlags
}

// later are flags that a coming version has; they are refused, not ignored.
var later = []struct{ names, what string }{
	{"total-rate", "a limit over all providers"}, {"listen", "the page"},
	{"shard", "sharding"}, {"columns order headers-list", "conversions: see mete results"}, {"at-most-once", "intent records"},
	{"repair", "repairing a result file"},
}

// moved are flags that one may look for, and where else it is said.
var moved = []struct{ flag, instead string }{
	{"output-format", "is a conversion of the result file: mete results openai-batch out.jsonl, or anthropic-batch"},
	{"duplicate-ids", inFile("run", "duplicate_ids: suffix")},
	{"on-change", inFile("run", "on_change: rerun")},
	{"fsync", inFile("run", "fsync: always")},
	{"drain-timeout", inFile("run", "drain_timeout: 30s")},
	{"max-line", inFile("run", "max_line: 64MiB")},
	{"allow-files", inFile("run", "allow_files: true")},
	{"idempotency-key", inFile("run", "idempotency_key: Idempotency-Key")},
	{"connect-timeout", inFile("defaults", "timeout: {connect: 5s}")},
	{"retry-on", inFile("defaults", "retry: {on: [connect, 429, 503]}")},
	{"max-pause", inFile("defaults", "max_pause: 1h")},
	{"color", "is not needed: NO_COLOR=1 or TERM=dumb turns colours off"},
}

func (f *runFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.SortFlags = false
	s.StringVarP(&f.format, "input-format", "F", "auto", "format of the input: `auto|urls|jsonl|csv|tsv|lines|openai-batch|anthropic-batch`")
	f.table.register(c)
	s.StringVar(&f.baseURL, "base-url", "", "`URL` that relative ones are resolved on")
	s.StringArrayVarP(&f.headers, "header", "H", nil, "`'NAME: VALUE'`, with ${VAR} or {{.column}}; or @FILE")
	s.StringVarP(&f.configFile, "config", "f", "", "`FILE` of providers and limits")
	s.StringVar(&f.provider, "provider", "", "provider `NAME` for rows that name none")

	s.StringArrayVar(&f.rates, "rate", nil, "`N/UNIT`: 50/s, 500/m, 5/15s; one or several")
	f.costs.register(c)
	s.Int64Var(&f.burst, "burst", 0, "let `N` due starts go together (default 1)")
	s.StringVarP(&f.concurrency, "concurrency", "c", "", "at most `N` in flight, or auto (default 16)")

	s.DurationVar(&f.timeout, "timeout", 0, "`TIME` for one attempt (default 1m)")
	s.IntVar(&f.retries, "retry", 3, "repeat up to `N` times")
	s.StringVar(&f.fallback, "fallback", "", "`P1,P2`: providers of the file to ask when a row's own cannot answer")
	s.DurationVar(&f.retryDelay, "retry-delay", 0, "")
	_ = s.MarkHidden("retry-delay") // the providers of others want the back-off; tests do not
	s.BoolVar(&f.idempotent, "idempotent", false, "repeating any request is safe, a POST too")
	s.BoolVarP(&f.insecure, "insecure", "k", false, "do not verify certificates")
	s.StringVar(&f.cacert, "cacert", "", "`FILE` with certificates to trust")
	s.StringVar(&f.state, "state", "", "`DIR` that keeps what was used of long limits, or none (default: the user's state folder)")

	s.StringVarP(&f.output, "output", "o", "", "result `FILE`; it makes the run resumable")
	s.BoolVar(&f.resume, "resume", false, "go on with the result file")
	s.BoolVar(&f.overwrite, "overwrite", false, "discard the result file")
	s.StringVar(&f.bodies, "body", "auto", "response bodies: `auto|file|none`")
	s.StringVar(&f.onBadRow, "on-bad-row", "fail", "`fail|emit|skip`: send nothing, write an error record, or leave it out")

	f.bounds.register(c)
	f.cache.register(c)

	s.StringVar(&f.progress, "progress", "auto", "progress on stderr: `auto|bar|plain|json|none`")
	s.StringVar(&f.summary, "summary", "text", "summary on stderr: `text|json|none`")
	s.BoolVarP(&f.quiet, "quiet", "q", false, "neither progress nor summary")
	refused := []string{}
	for _, l := range later {
		refused = append(refused, strings.Fields(l.names)...)
	}
	for _, m := range moved {
		refused = append(refused, m.flag)
	}
	for _, name := range refused {
		s.String(name, "", "")
		_ = s.MarkHidden(name)
		s.Lookup(name).NoOptDefVal = "-"
	}
	s.StringP("verbose", "v", "", "")
	_ = s.MarkHidden("verbose")
	s.Lookup("verbose").NoOptDefVal = "-"
	s.StringVarP(&f.concurrency, "jobs", "j", "", "")
	_ = s.MarkHidden("jobs")
}
