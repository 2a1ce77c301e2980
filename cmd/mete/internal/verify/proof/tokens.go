//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
)

// tokensProof: a batch file under requests and tokens per minute, both as the
// stub counts them. Small rows come first and are bound by the requests, large
// ones by the tokens.
func tokensProof(ctx context.Context, r *report) error {
	const small, large, tpm, rpm = 300, 170, 90_000, 600
	s, err := startStub(ctx, "", "--limit", fmt.Sprintf("%d/m", rpm), "--limit", fmt.Sprintf("tokens=%d/m", tpm), "--latency", "80ms..200ms")
	if err != nil {
		return err
	}
	defer s.stop()
	var rows strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for i := range small + large {
		most := 20
		if i >= small {
			most = 1 + random.IntN(4000)
		}
		fmt.Fprintf(&rows, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"n":%[1]d,"max_tokens":%d}}`+"\n", i, most)
	}
	input, file, out := r.file("in.jsonl"), r.file("mete.yaml"), r.file("out.jsonl")
	config := fmt.Sprintf(`version: 1
providers:
  p:
    url: %s
    limits: [%d/m, {name: tpm, tokens: %d/m}]
    cost: {tokens: {estimate: "ceil(len(body)/4) + body.max_tokens", actual: response.usage.total_tokens}}
`, s.url, rpm, tpm)
	for path, text := range map[string]string{input: rows.String(), file: config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	run, err := startRun(ctx, r.file("state"), input, "-F", "openai-batch", "-f", file, "--provider", "p", "-c", "64", "-o", out)
	if err != nil {
		return err
	}
	f, err := run.wait()
	if err != nil {
		return err
	}
	if err := f.complete(small + large); err != nil {
		return err
	}
	a, err := s.audit()
	if err != nil {
		return err
	}
	k := a.Tokens
	r.check(a.Rejected == 0 && a.Over["1m0s"] == 0 && k.Over["1m0s"] == 0 && a.Requests == small+large,
		"%d rows: at most %d requests and %d tokens in any minute (of %d and %d), %d refused",
		a.Requests, a.MaxStarts["1m0s"], k.Max["1m0s"], rpm, tpm, a.Rejected)
	// The fullest minute is one of large rows.
	used := float64(k.Max["1m0s"]) / tpm
	r.check(used >= 0.95, "%d tokens in %.0f s; %.1f %% of the tokens used in the fullest minute (at least 95 %%)", k.Total, a.SpanMS/1e3, 100*used)
	return nil
}
