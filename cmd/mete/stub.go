package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

func newStubCommand() *cobra.Command {
	var (
		cfg     stub.Config
		public  bool
		certOut string
	)
	cmd := &cobra.Command{
		Use:   "stub",
		Short: "Run a fake provider that audits its callers",
		Long: `A fake provider: it answers like a rate-limited API, with quotas, latency and
faults. It also keeps its own record of every arrival and reports the most
that fell into any sliding window, so a limiter can be checked against it.

  GET  /stub/audit    what was seen, as JSON
  POST /stub/reset    clears it
  POST /stub/faults   {"latency":"2s","for":"10s"}  {"outage":true,"for":"20s"}
                      {"drop":true}  {"knee":16}  {"limit":"20/s"}  {"clear":true}
  /status/503         answers that status
  /once/503/KEY       answers it the first time, and 200 afterwards
                      (either with ?body=TEXT&header=NAME:VALUE for its own)
  anything else       200 with an echo of the request

With a limit in tokens every answer tells its usage as OpenAI's do: a token per
four bytes of the body, and 0 to 60 % of its max_tokens, by its hash.

Above a limit it answers 429. It ends on Ctrl-C or SIGTERM and prints the audit
as one line of JSON on stdout.`,
		Example: `  # at most 50 requests in any second, each taking 80 to 200 ms
  mete stub --listen 127.0.0.1:7070 --limit 50/s --latency 80ms..200ms

  # an unreliable provider: two quotas, 1 % errors, some resets, OpenAI's headers
  mete stub --limit 50/s --limit 1000/m --fail 500=1% --reset 0.1% --headers openai

  # cold connections: TLS whose handshake takes 150 ms
  mete stub --limit 50/s --tls --handshake 150ms --tls-cert-out stub.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if certOut != "" && !cfg.TLS {
				return errors.New("--tls-cert-out needs --tls")
			}
			if err := checkListen(cfg.Listen, public); err != nil {
				return err
			}
			return runStub(cmd.Context(), cfg, certOut, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "`address`; port 0 takes a free one")
	f.BoolVar(&public, "public", false, "allow --listen on an address that other machines reach")
	f.Func("limit", "a quota as `N/UNIT`: 50/s, 1000/m, tokens=90000/m; repeat for more", func(s string) error {
		if rate, ok := strings.CutPrefix(s, "tokens="); ok {
			return appendTo(&cfg.Tokens, stub.ParseLimit)(rate)
		}
		return appendTo(&cfg.Limits, stub.ParseLimit)(s)
	})
	f.StringVar((*string)(&cfg.Window), "window", string(stub.Sliding), "how limits count: `sliding|fixed|bucket`")
	f.Int64Var(&cfg.Burst, "burst", 0, "capacity of a bucket as `N` (default: the limit's number)")
	f.Func("measure", "audit windows of this `length` too; repeat for more", appendTo(&cfg.Measure, time.ParseDuration))
	f.IntVar(&cfg.Concurrency, "concurrency", 0, "refuse more than `N` in flight")
	f.IntVar(&cfg.ConcurrencyStatus, "concurrency-status", 429, "answer to those: `429|503`")
	f.Func("latency", "how long a request takes: `80ms or 80ms..200ms`", setTo(&cfg.Latency, stub.ParseLatency))
	f.IntVar(&cfg.Knee, "knee", 0, "beyond `N` in flight, latency grows in proportion")
	f.Func("fail", "answer a share with an error, as in `500=1%`; repeat for more", appendTo(&cfg.Fail, stub.ParseFail))
	f.Func("reset", "cut off a `share` by a connection reset, kept-alive ones too: 0.1%", setTo(&cfg.Reset, stub.ParseShare))
	f.Func("soft-errors", "answer a `share` with 200 and an error in the body: 1%", setTo(&cfg.SoftErrors, stub.ParseShare))
	f.StringVar((*string)(&cfg.Headers), "headers", string(stub.NoHeaders), "quota headers: `none|ietf|openai|anthropic|github`")
	f.StringVar((*string)(&cfg.RetryAfter), "retry-after", string(stub.Seconds), "form of Retry-After: `seconds|date|none`")
	f.Func("body-size", "least size of an answer as `bytes`: 512, 2KiB, 1MB", setTo(&cfg.BodySize, stub.ParseSize))
	f.Func("stream", "answer with server-sent events: `20x50ms`", setTo(&cfg.Stream, stub.ParseStream))
	f.BoolVar(&cfg.TLS, "tls", false, "serve HTTPS with a certificate made now for 127.0.0.1 and localhost")
	f.StringVar(&certOut, "tls-cert-out", "", "write that certificate to `file`, for curl --cacert")
	f.BoolVar(&cfg.HTTP2, "http2", false, "with --tls: offer HTTP/2; arrivals are then stamped in the handler")
	f.DurationVar(&cfg.Handshake, "handshake", 0, "delay each new connection by this `time`: 150ms")
	f.Uint64Var(&cfg.Seed, "seed", 1, "`number` that makes faults and latencies repeatable")
	return cmd
}

// setTo and appendTo join a parser to the setting it fills.
func setTo[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*to = v
		}
		return err
	}
}

func appendTo[T any](to *[]T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*to = append(*to, v)
		}
		return err
	}
}

// checkListen refuses an address that other machines reach, unless asked for.
func checkListen(address string, public bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %s: write host:port, as in 127.0.0.1:7070", address)
	}
	if ip := net.ParseIP(host); public || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--listen %s: other machines could reach it; listen on 127.0.0.1 or add --public", address)
}

// runStub serves until ctx ends or a signal comes, and prints the audit.
func runStub(ctx context.Context, cfg stub.Config, certOut string, stdout, stderr io.Writer) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer restore()

	s := stub.New(cfg)
	if err := s.Start(); err != nil {
		return &exitError{exitIO, err}
	}
	defer s.Close()
	curl := "curl"
	if cfg.TLS {
		curl = "curl -k"
	}
	if certOut != "" {
		if err := os.WriteFile(certOut, s.CertPEM(), 0o644); err != nil {
			return &exitError{exitIO, err}
		}
		curl = "curl --cacert " + shellQuote(certOut)
	}
	fmt.Fprintf(stderr, `mete stub: %[1]s
try: %[2]s '%[1]s/hello?n=1'
     %[2]s %[1]s/stub/audit
     %[2]s -d '{"latency":"2s","for":"10s"}' %[1]s/stub/faults
`, s.URL(), curl)

	<-ctx.Done()
	restore() // a second signal ends it at once
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(grace); err != nil {
		fmt.Fprintln(stderr, "mete stub: requests in flight were cut off after 5s")
	}
	if err := json.NewEncoder(stdout).Encode(s.Audit()); err != nil {
		return &exitError{exitIO, err}
	}
	return nil
}

func shellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
