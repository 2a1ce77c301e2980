package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/progress"
	"github.com/metehq/mete/cmd/mete/internal/results"
)

func newCSVCommand() *cobra.Command {
	var f resultsFlags
	var o results.CSV
	var columns string
	c := &cobra.Command{
		Use:   "csv IN… [--columns LIST] [-o OUT]",
		Short: "Write records as CSV",
		Long: `Write records as CSV (RFC 4180, UTF-8): one line for the names of the columns, one
for every record.

A column is a path into the record: id, body.lat, body.results.0.name,
meta.address, headers."content-type".0. A name that holds a dot, a comma or a
quote is written in quotes. Without --columns there are id, ok, status, url,
latency_ms, error.kind and each member of meta in the first 1,000 records.

The data are not touched. Strings come as their text, numbers digit by digit as
they were received, objects and arrays as JSON; null and what is missing as
nothing; a body that is base64 or in a file as base64 or nothing (see
body_encoding, body_file). Beware of spreadsheets: a text that begins with
= + - @ is written as it is, and they may run it as a formula, or round long
numbers. Import such columns as text.`,
		Example: `  mete results csv out.jsonl -o out.csv
  mete results csv out.jsonl --columns id,status,body.lat,body.lng,meta.address
  mete results order out.jsonl | mete results csv - --crlf > for-a-spreadsheet.csv`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("columns") {
				var err error
				if o.Columns, err = results.ParseColumns(columns); err != nil {
					return fmt.Errorf("--columns: %w", err)
				}
			}
			return f.write(c, args, func(w io.Writer) error { return results.WriteCSV(f.input(c, args), o, w) })
		},
	}
	c.Flags().StringVar(&columns, "columns", "", "columns as `LIST` of paths: id,status,body.lat,meta.address")
	c.Flags().BoolVar(&o.CRLF, "crlf", false, "end lines with CR and LF")
	f.register(c)
	return c
}

func newStatsCommand() *cobra.Command {
	var f resultsFlags
	var by string
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats IN… [--by provider|status|host] [--json]",
		Short: "Sum up result files, with a histogram of latencies",
		Long: `Sum up result files: records by outcome and status, attempts and retries, the rate
at which attempts started, latencies with a histogram, what calls waited for,
and each kind of error with the first record that has it.

Every line counts, also of a row that was sent again; fold first to count rows.
The rate is that of all attempts of all files together: the mean from the first
to the last, and the most that started in any second and any minute (half-open,
sliding, to the millisecond). A latency is that of a row's last attempt.
Files are read once. Memory: two bytes per attempt, four with --by.`,
		Example: `  mete results stats out.jsonl
  mete results stats shard-*.jsonl --by provider
  mete results stats out.jsonl --json | jq '.latency_ms.p99, .rate.most_in_1s'`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" && c.Flags().Changed("by") {
				return fmt.Errorf("--by is empty: want provider, status or host")
			}
			return f.write(c, args, func(w io.Writer) error {
				s, err := results.Collect(f.input(c, args), results.Group(by))
				if err != nil {
					return err
				}
				if asJSON {
					return s.WriteJSON(w)
				}
				width, ascii := drawing(w, os.Getenv)
				return s.WriteText(w, width, ascii)
			})
		},
	}
	c.Flags().StringVar(&by, "by", "", "a table by `provider|status|host`")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object instead of text")
	f.register(c)
	return c
}

// drawing tells how to draw on w: the width of the terminal, else what COLUMNS
// says, else 80.
func drawing(w io.Writer, getenv func(string) string) (width int, ascii bool) {
	f, ok := w.(*os.File)
	if !ok {
		f = os.Stdout
	}
	o := progress.Detect(f, "never", getenv)
	if ok && o.IsTerminal {
		width = o.Width()
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); width <= 0 && err == nil && n > 0 {
		width = n
	}
	if width <= 0 {
		width = 80
	}
	return width, o.ASCII
}
