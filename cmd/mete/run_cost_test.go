package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// A batch under a limit in requests and one in tokens, judged by a provider
// that counts its own tokens: neither is exceeded, nothing is refused, and what
// the records say was paid is what the provider has counted, streams included.
func TestTokensAndRequests(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]stub.Stream{"json": {}, "stream": {Events: 2, Gap: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := stub.New(stub.Config{Limits: []stub.Limit{{N: 40, Per: time.Second}}, Tokens: []stub.Limit{{N: 2000, Per: time.Second}}, Stream: stream})
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			const n = 60
			var lines []string
			for i := range n {
				lines = append(lines, fmt.Sprintf(`{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"n":%[1]d,"max_tokens":%d}}`, i, 1+i*37%500))
			}
			write(t, dir, "in.jsonl", lines...)
			write(t, dir, "mete.yaml", `version: 1
providers:
  p:
    url: `+s.URL()+`
    limits: [40/s, {name: tpm, tokens: 2000/s}]
    cost: {tokens: {estimate: "ceil(len(body)/4) + body.max_tokens", actual: response.usage.total_tokens}}`)
			launch(t, dir, "run", "in.jsonl", "-F", "openai-batch", "-f", "mete.yaml", "--provider", "p", "-o", "out.jsonl", "--state", "none").exits(0)
			once(t, filepath.Join(dir, "out.jsonl"), n)
			a := s.Audit()
			if a.Rejected != 0 || a.Requests != n || a.Over["1s"] != 0 || a.Tokens.Over["1s"] != 0 || a.Repeats != 0 {
				t.Errorf("%+v %+v", a, a.Tokens)
			}
			paid, estimated := int64(0), 0.0
			for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
				if len(r.Costs) != 1 || r.Costs[0].Unit != "tokens" || r.Costs[0].True > r.Costs[0].Estimate {
					t.Fatalf("row %s cost %+v", r.ID, r.Costs)
				}
				paid += int64(r.Costs[0].True)
				estimated += r.Costs[0].Estimate
			}
			if paid != a.Tokens.Total {
				t.Errorf("the records have %d tokens, the provider %d", paid, a.Tokens.Total)
			}
			// Without settlement the estimates alone would take longer than this.
			if least := estimated/2000 - 1; a.SpanMS/1e3 >= least {
				t.Errorf("it took %.1f s, as if nothing had been paid back (%.1f s)", a.SpanMS/1e3, least)
			}
			t.Logf("%d tokens, at most %d in a second, in %.1f s", a.Tokens.Total, a.Tokens.Max["1s"], a.SpanMS/1e3)
		})
	}
}
