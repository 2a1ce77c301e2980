//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/stub"
)

// program is the mete under test.
func program() string {
	if m := os.Getenv("METE"); m != "" {
		return m
	}
	return filepath.Join("bin", "mete")
}

// server is a mete stub in a process of its own.
type server struct {
	url string
	cmd *exec.Cmd
	ctl *http.Client
}

// startStub starts one; cert is the file that its certificate goes to, empty
// without TLS.
func startStub(ctx context.Context, cert string, args ...string) (*server, error) {
	if cert != "" {
		args = append(args, "--tls", "--tls-cert-out", cert)
	}
	cmd := command(ctx, auditor, program(), append([]string{"stub", "--listen", "127.0.0.1:0"}, args...)...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(pipe)
	first, err := lines.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "mete stub: ")
	if err != nil || !ok {
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		return nil, fmt.Errorf("the stub did not start: %s%s", first, rest)
	}
	go io.Copy(io.Discard, lines)
	s := &server{url: url, cmd: cmd, ctl: &http.Client{Timeout: 10 * time.Second}}
	if cert != "" {
		pem, err := os.ReadFile(cert)
		if err != nil {
			s.stop()
			return nil, err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		s.ctl.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	}
	return s, nil
}

func (s *server) stop() {
	s.ctl.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func (s *server) audit() (a stub.Audit, err error) {
	resp, err := s.ctl.Get(s.url + "/stub/audit")
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	return a, json.NewDecoder(resp.Body).Decode(&a)
}

// fault changes the stub from now on.
func (s *server) fault(body string) error {
	resp, err := s.ctl.Post(s.url+"/stub/faults", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		return fmt.Errorf("fault %s: %s: %s", body, resp.Status, text)
	}
	return nil
}

func (s *server) reset() error {
	resp, err := s.ctl.Post(s.url+"/stub/reset", "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// settled is the audit once nothing is in flight and nothing more arrives.
func (s *server) settled(ctx context.Context) (stub.Audit, error) {
	last := stub.Audit{Requests: -1}
	for {
		a, err := s.audit()
		if err != nil || (a.InFlight == 0 && a.Requests == last.Requests) {
			return a, err
		}
		last = a
		if err := sleep(ctx, 25*time.Millisecond); err != nil {
			return a, err
		}
	}
}

// running is a mete run at work.
type running struct {
	cmd    *exec.Cmd
	began  time.Time
	stderr bytes.Buffer
}

// finished is how a run ended.
type finished struct {
	wall    time.Duration // from the start of the process to its end
	code    int
	summary summary
	stderr  string
}

// summary is what of mete's own summary is looked at.
type summary struct {
	Rows struct {
		OK, Failed int64
	}
	Waits []struct {
		Bound string
		Share float64
	}
	Diagnosis string
}

func startRun(ctx context.Context, state string, args ...string) (*running, error) {
	args = append([]string{"run", "--state", state, "--progress", "none", "--summary", "json"}, args...)
	r := &running{cmd: command(ctx, measured, program(), args...), began: time.Now()}
	r.cmd.Stderr = &r.stderr
	return r, r.cmd.Start()
}

func (r *running) wait() (finished, error) {
	err := r.cmd.Wait()
	f := finished{wall: time.Since(r.began), code: r.cmd.ProcessState.ExitCode(), stderr: r.stderr.String()}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return f, err
	}
	for line := range strings.Lines(f.stderr) {
		_ = json.Unmarshal([]byte(line), &f.summary)
	}
	return f, nil
}

// complete is an error unless every row was answered 2xx.
func (f *finished) complete(rows int) error {
	if f.code != 0 || f.summary.Rows.OK != int64(rows) {
		return fmt.Errorf("mete run: exit code %d, %d of %d rows ok: %s", f.code, f.summary.Rows.OK, rows, f.stderr)
	}
	return nil
}

// urls writes a file of n distinct URLs.
func urls(path, base string, n int) error {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%s/row?n=%d\n", base, i)
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// spin keeps one core busy until it is ended, or its parent is. With real-time
// priority it rests for a tenth of the time: Linux stops everything of that
// class on a core, mete too, for what it uses beyond 95 %.
func spin(ctx context.Context) {
	parent := os.Getppid()
	for ctx.Err() == nil && os.Getppid() == parent {
		for began := time.Now(); time.Since(began) < 9*time.Millisecond; {
		}
		if mayLead() {
			time.Sleep(time.Millisecond)
		}
	}
}

// busyCore starts a process that keeps a core busy, and returns how to end it.
func busyCore(ctx context.Context) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := command(ctx, measured, self, "spin")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}
