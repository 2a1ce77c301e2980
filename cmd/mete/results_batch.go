package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/results"
)

func newBatchCommand(format results.Batch, service, line, input string) *cobra.Command {
	var f resultsFlags
	c := &cobra.Command{
		Use:   string(format) + " IN… [-o OUT]",
		Short: "Write records as the output of " + service + "'s batch service",
		Long: `Write records as lines of the output of ` + service + `'s batch service, for programs
that read those:

` + line + `

One line per row: the last record over all files in the order given, in the
order in which the rows first appear. The result file stays what a run resumes
from. Bodies that lie in files of their own are put in; one that cannot be read
makes its row an error.`,
		Example: `  mete run requests.jsonl -F ` + string(format) + ` --provider ` + input + ` -f mete.yaml -o out.jsonl
  mete results ` + string(format) + ` out.jsonl -o output.jsonl
  mete results ` + string(format) + ` out.jsonl | head -3
  mete results ` + string(format) + ` part1.jsonl part2.jsonl.zst -o output.jsonl    # several runs as one`,
		Args: inputFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.write(c, args, func(w io.Writer) error { return results.WriteBatch(f.input(c, args), format, w) })
		},
	}
	f.register(c)
	return c
}

func newOpenAIBatchCommand() *cobra.Command {
	return newBatchCommand(results.OpenAIBatch, "OpenAI",
		`  {"id","custom_id","response":{"status_code","request_id","body"},"error"}`, "openai")
}

func newAnthropicBatchCommand() *cobra.Command {
	return newBatchCommand(results.AnthropicBatch, "Anthropic",
		`  {"custom_id","result":{"type":"succeeded","message"}}
  {"custom_id","result":{"type":"errored","error"}}`, "anthropic")
}
