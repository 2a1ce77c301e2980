//go:build unix

// Command proof runs mete against real servers for minutes and says, line by
// line, which promise held. scripts/verify calls it:
//
//	proof nginx    the limits as nginx counts them
//	proof rates    many rates against the stub's audit, a busy core, a stopped process
//	               (with a word: only the trials whose names have it)
//	proof tokens   limits in requests and tokens together, against the stub's audit
//	proof learn    Retry-After, quota headers and a spent quota, against the stub's audit
//	proof tls      a cold start with slow handshakes
//	proof adaptive -c auto beside fixed numbers, and when the provider changes
//	proof diagnosis  what mete says in staged situations
//	proof kill     kill -9 again and again, and every row once
//
// It starts its own servers on free ports of 127.0.0.1, ends only processes it
// started, and removes what it wrote. The exit code is 1 if a promise was
// broken. METE names the program; without it that is bin/mete.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
)

func main() {
	proofs := map[string]func(context.Context, *report) error{
		"nginx": nginxProof, "rates": ratesProof, "tls": tlsProof, "kill": killProof, "tokens": tokensProof, "learn": learnProof,
		"adaptive": adaptiveProof, "diagnosis": diagnosisProof,
	}
	if len(os.Args) < 2 || proofs[os.Args[1]] == nil && os.Args[1] != "spin" {
		fmt.Fprintln(os.Stderr, "usage: proof nginx|rates [WORD]|tokens|learn|tls|kill|adaptive|diagnosis")
		os.Exit(2)
	}
	// The end of a reader, as in | head, ends what was started too.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()
	r := &report{}
	if os.Args[1] == "spin" { // killed in the end: it must leave nothing behind
		spin(ctx)
		return
	}
	err := func() (err error) {
		if r.dir, err = os.MkdirTemp("", "mete-proof-"); err != nil {
			return err
		}
		defer os.RemoveAll(r.dir)
		r.priorities()
		return proofs[os.Args[1]](ctx, r)
	}()
	if err != nil {
		r.check(false, "%v", err)
	}
	if r.failed {
		os.Exit(1)
	}
}

// report prints figures and keeps whether a promise was broken.
type report struct {
	dir string

	mu     sync.Mutex
	failed bool
	files  int
}

// check prints one promise with its verdict.
func (r *report) check(ok bool, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	word := "ok  "
	if !ok {
		word, r.failed = "FAIL", true
	}
	fmt.Printf("  %s  %s\n", word, fmt.Sprintf(format, args...))
}

// note prints a line that decides nothing.
func (r *report) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("        %s\n", fmt.Sprintf(format, args...))
}

// file is a path of its own in the temporary folder.
func (r *report) file(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files++
	return filepath.Join(r.dir, fmt.Sprintf("%03d-%s", r.files, name))
}
