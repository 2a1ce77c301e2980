//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// tlsProof: at a cold start fifty handshakes of 150 ms run side by side. Were
// starts counted from the grant, requests would bunch behind them.
func tlsProof(ctx context.Context, r *report) error {
	for try := 1; ; try++ {
		a, err := coldStart(ctx, r)
		if err != nil {
			return err
		}
		ok := a.Over["1s"] == 0 && a.MaxStarts["1s"] <= 50 && a.Rejected == 0 && a.Requests == coldRows
		line := fmt.Sprintf("TLS, 150 ms handshake, cold start, 50/s: %d requests on %d connections, at most %d in any second, over %d, rejected %d, %.2f/s, stub stalled %.1f ms",
			a.Requests, a.Connections, a.MaxStarts["1s"], a.Over["1s"], a.Rejected, float64(a.Requests-1)/(a.SpanMS/1e3), a.MaxStallMS)
		if ok || a.MaxStallMS <= margin || try == attempts {
			r.check(ok, "%s", line)
			return nil
		}
		r.note("%s: run again, the stub was stalled beyond the margin of %v ms", line, margin)
	}
}

const coldRows = 500

func coldStart(ctx context.Context, r *report) (a stub.Audit, err error) {
	cert := r.file("stub.pem")
	s, err := startStub(ctx, cert, "--limit", "50/s", "--handshake", "150ms")
	if err != nil {
		return a, err
	}
	defer s.stop()
	input := r.file("urls.txt")
	if err := urls(input, s.url, coldRows); err != nil {
		return a, err
	}
	run, err := startRun(ctx, r.file("state"), input, "--rate", "50/s", "-c", "50", "--cacert", cert, "-o", r.file("out.jsonl"))
	if err != nil {
		return a, err
	}
	f, err := run.wait()
	if err != nil {
		return a, err
	}
	if err := f.complete(coldRows); err != nil {
		return a, err
	}
	return s.audit()
}
