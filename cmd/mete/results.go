package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/results"
)

func newResultsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "results",
		Short: "Work with the result file of a run",
		Long: `Work with the result file of a run.

A result file holds one JSON record per line, in the order in which rows were
finished. A row that was sent again has several lines; the last one counts, and
fold, join, order and the batch formats keep only that one. filter, csv and
stats look at every line: put fold before them where rows were sent again.

Files may be compressed with gzip or zstd, and - is standard input. A last line
that was being written when the program was killed is left out, and said so on
stderr; any other line that is no record is an error that names it, unless
--skip-bad is given. Records are copied byte for byte.

Exit codes: 0 done, 2 wrong usage or input, 5 a file cannot be read or written,
141 the reader of the output has gone.`,
		Example: `  mete results fold out.jsonl -o unique.jsonl     # one line per row
  mete results fold out.jsonl | mete results csv - > out.csv
  mete results stats out.jsonl                    # counts, latencies, rates`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newFoldCommand(),
		newJoinCommand(),
		newFilterCommand(),
		newOrderCommand(),
		newCSVCommand(),
		newOpenAIBatchCommand(),
		newAnthropicBatchCommand(),
		newStatsCommand(),
	)
	return c
}

// inputFiles refuses a command line without input.
func inputFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("results %s: name a result file, or - for standard input, as in: mete results %[1]s out.jsonl", c.Name())
	}
	return nil
}

func newFoldCommand() *cobra.Command {
	var f resultsFlags
	c := &cobra.Command{
		Use:   "fold IN [-o OUT]",
		Short: "Keep the last record of every row",
		Long: `Keep the last record of every row.

A row that failed and was sent again has more than one line in a result file.
fold writes one line per row: the last one, byte for byte, in the order in which
the rows first appear.

IN is not changed, and may be the output of a run that is still going on. It is
read twice: of a pipe or a compressed file a copy is made in the temporary
folder. Memory: about 24 bytes per row. Paths in body_file stay as they are,
relative to the folder of IN.`,
		Example: `  mete results fold out.jsonl                     # to stdout
  mete results fold out.jsonl -o unique.jsonl     # whole or not at all
  mete results fold out.jsonl | jq -c 'select(.ok) | [.id, .body]'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("results fold: name one result file, as in: mete results fold out.jsonl; for several see join")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.write(c, args, func(w io.Writer) error { return results.Fold(f.input(c, args), w) })
		},
	}
	f.register(c)
	return c
}

func newJoinCommand() *cobra.Command {
	var f resultsFlags
	var rows string
	c := &cobra.Command{
		Use:   "join IN… [--input ROWS.jsonl] [-o OUT]",
		Short: "Join several result files, and records with their input rows",
		Long: `Join several result files, and records with their input rows.

Of shards, or of runs one after another: one line per row, the last record over
all files in the order given. How many ids came in several files is said on
stderr.

--input adds to each record, as "input", the row with its id from an input in
JSON lines (null if there is none); the rest of the record stays byte for byte.
Rows without an id of their own cannot be found: give them one, or put what you
need into "meta", which every record repeats. The columns of a table are in
"meta" anyway.`,
		Example: `  mete results join shard-1.jsonl shard-2.jsonl shard-3.jsonl -o all.jsonl
  mete results join monday.jsonl.gz tuesday.jsonl -o week.jsonl
  mete results join out.jsonl --input prompts.jsonl | jq -c '[.input.prompt, .body]'`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			inputs := args
			if rows != "" {
				inputs = append(inputs[:len(args):len(args)], rows)
			}
			return f.write(c, inputs, func(w io.Writer) error { return results.Join(f.input(c, args), rows, w) })
		},
	}
	c.Flags().StringVar(&rows, "input", "", "add the input row with the record's id from this `FILE`")
	f.register(c)
	return c
}

func newFilterCommand() *cobra.Command {
	var f resultsFlags
	var cond results.Condition
	c := &cobra.Command{
		Use:   "filter IN… (--failed | --ok | --status LIST | --kind LIST | --jq EXPR) [-o OUT]",
		Short: "Keep the records that fit a condition",
		Long: `Keep the records that fit a condition, byte for byte; if several are given, those
that fit all. Every line is looked at by itself: to find the rows that failed in
the end, and not those that were sent again with success, put fold before it.

A --jq expression keeps a record if one of its outputs is neither null nor
false. It sees the record as . and neither files nor the environment.`,
		Example: `  mete results fold out.jsonl | mete results filter - --failed -o failed.jsonl
  mete results filter out.jsonl --status 429,5xx --kind rate_limited,http_5xx
  mete results filter out.jsonl --jq '.body.results | length > 1'`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"jq", "status", "kind"} {
				if fl := c.Flags().Lookup(name); fl.Changed && fl.Value.String() == "" {
					return fmt.Errorf("--%s is empty", name)
				}
			}
			return f.write(c, args, func(w io.Writer) error { return results.Filter(f.input(c, args), cond, w) })
		},
	}
	c.Flags().BoolVar(&cond.Failed, "failed", false, "records with ok false")
	c.Flags().BoolVar(&cond.OK, "ok", false, "records with ok true")
	c.Flags().StringVar(&cond.Statuses, "status", "", "HTTP statuses as `LIST`: 429,5xx,200-299; 0 is no answer")
	c.Flags().StringVar(&cond.Kinds, "kind", "", "kinds of errors as `LIST`: timeout,http_5xx")
	c.Flags().StringVar(&cond.JQ, "jq", "", "records for which the jq `EXPR` holds")
	f.register(c)
	return c
}

func newOrderCommand() *cobra.Command {
	var f resultsFlags
	var by string
	c := &cobra.Command{
		Use:   "order IN… [--by input|id|at] [-o OUT]",
		Short: "Sort records into the order of the input",
		Long: `Sort records into the order of the input, and keep the last one of every row, byte
for byte. Of several inputs the one whose rows were ready first comes first.

  --by input  by file and line of the input
  --by id     integers by size, then texts by their bytes
  --by at     by the time at which the row was ready

Records that do not tell come last. Only where records are is kept in memory:
about 40 bytes per row, and its id for --by id.`,
		Example: `  mete results order out.jsonl -o ordered.jsonl
  mete results order out.jsonl --by id | mete results csv - > by-id.csv
  mete results order shard-*.jsonl --by at | head -3`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.write(c, args, func(w io.Writer) error { return results.Order(f.input(c, args), results.By(by), w) })
		},
	}
	c.Flags().StringVar(&by, "by", "input", "`input|id|at`")
	f.register(c)
	return c
}
