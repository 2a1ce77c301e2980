//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// learnProof: what a provider says of its limits is heeded, by the stub's own
// record of what came after each 429.
func learnProof(ctx context.Context, r *report) error {
	for _, proof := range []func(context.Context, *report) error{oneThrottle, quotaHeaders, quotaSpent} {
		if err := proof(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// against runs rows against a new stub and returns its audit.
func against(ctx context.Context, r *report, stubArgs []string, rows func(base string) string, args ...string) (a stub.Audit, f finished, err error) {
	s, err := startStub(ctx, "", stubArgs...)
	if err != nil {
		return a, f, err
	}
	defer s.stop()
	input := r.file("rows.txt")
	if err := os.WriteFile(input, []byte(rows(s.url)), 0o600); err != nil {
		return a, f, err
	}
	run, err := startRun(ctx, r.file("state"), append([]string{input, "-o", r.file("out.jsonl")}, args...)...)
	if err != nil {
		return a, f, err
	}
	if f, err = run.wait(); err != nil {
		return a, f, err
	}
	a, err = s.settled(ctx)
	return a, f, err
}

// lines are n distinct URLs, of which one has a path of its own.
func lines(base string, n, at int, path string) string {
	var b strings.Builder
	for i := range n {
		if i == at {
			fmt.Fprintf(&b, "%s%s\n", base, path)
			continue
		}
		fmt.Fprintf(&b, "%s/row?n=%d\n", base, i)
	}
	return b.String()
}

// oneThrottle: one 429 among 50 calls in flight.
func oneThrottle(ctx context.Context, r *report) error {
	const rows = 500
	a, f, err := against(ctx, r, []string{"--latency", "500ms"}, func(base string) string {
		return lines(base, rows, 100, "/once/429/x?header=Retry-After:2")
	}, "--rate", "100/s", "-c", "50")
	if err != nil {
		return err
	}
	if err := f.complete(rows); err != nil {
		return err
	}
	if len(a.Refusals) != 1 {
		r.check(false, "one 429 with Retry-After 2 among %d in flight led to %d more", a.PeakInFlight, len(a.Refusals)-1)
		return nil
	}
	quiet, s := a.Refusals[0].QuietMS, a.Refusals[0].Seconds
	r.check(quiet >= 2000 && quiet < 3000 && a.PeakInFlight >= 45 && a.Requests == rows+1,
		"one 429 with Retry-After 2 among %d in flight: no request for %.0f ms (2000 or a little more), and no second 429", a.PeakInFlight, quiet)
	// A quarter and a half of 100/s less a tenth; each may be a second of two steps.
	r.check(s[0] > 0 && s[0] <= 30 && s[0] <= s[1] && s[1] <= 60 && s[1] < s[2] && s[2] <= 101,
		"then a ramp: %d, %d and %d requests in the first three seconds", s[0], s[1], s[2])
	return nil
}

// quotaHeaders: a provider that allows 80 % of what was configured and says so.
func quotaHeaders(ctx context.Context, r *report) error {
	const rows, window = 330, 10 * time.Second
	dialects := []struct{ headers, window string }{{"github", "fixed"}, {"ietf", "sliding"}, {"ietf", "fixed"}, {"openai", "sliding"}}
	errs := make([]error, len(dialects))
	var wait sync.WaitGroup
	for i, d := range dialects {
		wait.Go(func() {
			a, f, err := against(ctx, r, []string{"--limit", "80/10s", "--window", d.window, "--headers", d.headers, "--latency", "50ms"},
				func(base string) string { return lines(base, rows, -1, "") }, "--rate", "100/10s", "-c", "10")
			if err == nil {
				err = f.complete(rows)
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s, %s: %w", d.headers, d.window, err)
				return
			}
			late := 0
			for _, refusal := range a.Refusals {
				if refusal.AtMS > a.FirstMS+float64(window.Milliseconds()) {
					late++
				}
			}
			used := float64(a.Accepted) / 80 / (a.SpanMS / 10e3)
			r.check(late <= 2 && a.Rejected <= 10 && used >= 0.8,
				"%s headers, %s window, 80 %% of --rate: %d of %d refused, %d of them after the first window; %.2f of the quota used in %.0f s",
				d.headers, d.window, a.Rejected, a.Requests, late, used, a.SpanMS/1e3)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// quotaSpent: a quota that no waiting brings back ends the provider.
func quotaSpent(ctx context.Context, r *report) error {
	a, f, err := against(ctx, r, nil, func(base string) string {
		return lines(base, 200, 40, `/status/429/x?body={"error":{"code":"insufficient_quota"}}`)
	}, "--rate", "50/s", "-c", "8")
	if err != nil {
		return err
	}
	r.check(f.code == 4 && a.Requests == 41 && len(a.Refusals) == 1 && a.Refusals[0].QuietMS == 0,
		"insufficient_quota as request 41 of 200: %d requests, none after it, exit code %d", a.Requests, f.code)
	return nil
}
