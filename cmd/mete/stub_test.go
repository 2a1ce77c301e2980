package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// stubCommand runs mete stub with args until the returned function is called,
// which gives stdout and the error. Its URL is what stderr says.
func stubCommand(t *testing.T, args ...string) (url string, end func() (string, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var stdout bytes.Buffer
	cmd := newStubCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(w)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx); w.Close() }()
	buf := make([]byte, 4096)
	n, _ := r.Read(buf)
	go io.Copy(io.Discard, r)
	m := regexp.MustCompile(`mete stub: (https?://\S+)`).FindSubmatch(buf[:n])
	end = func() (string, error) { cancel(); err := <-done; return stdout.String(), err }
	t.Cleanup(func() { cancel(); r.Close() })
	if m == nil {
		_, err := end()
		t.Fatalf("no address in %q: %v", buf[:n], err)
	}
	if got := bytes.Count(buf[:n], []byte("curl ")); got != 3 {
		t.Errorf("%d things to try, want 3:\n%s", got, buf[:n])
	}
	return string(m[1]), end
}

func TestStubCommand(t *testing.T) {
	url, end := stubCommand(t, "--limit", "2/m", "--limit", "100/h", "--latency", "1ms..2ms", "--headers", "openai",
		"--measure", "5s", "--fail", "500=0%", "--body-size", "1KiB", "--window", "bucket", "--burst", "2", "--seed", "3")
	for _, want := range []int{200, 200, 429} {
		res, err := http.Get(url + "/hello?n=1")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || res.Header.Get("X-RateLimit-Limit-Requests") != "2" {
			t.Errorf("%d %v, want %d", res.StatusCode, res.Header, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stdout, err := end()
	if err != nil {
		t.Fatal(err)
	}
	var audit struct {
		Requests, Rejected int
		MaxStarts          map[string]int `json:"max_starts"`
	}
	if err := json.Unmarshal([]byte(stdout), &audit); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("%v: stdout is not one line of JSON: %q", err, stdout)
	}
	if audit.Requests != 3 || audit.Rejected != 1 || audit.MaxStarts["1m0s"] != 3 || audit.MaxStarts["1h0m0s"] != 3 || audit.MaxStarts["5s"] != 3 {
		t.Errorf("audit: %s", stdout)
	}
}

func TestStubCommandTLS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stub cert.pem")
	url, end := stubCommand(t, "--tls", "--handshake", "1ms", "--tls-cert-out", file)
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	for _, u := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1)} {
		res, err := client.Get(u + "/")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestStubCommandRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"say per what":     {"--limit", "50"},
		"add --public":     {"--listen", "0.0.0.0:0"},
		"write host:port":  {"--listen", "7070"},
		"needs --tls":      {"--tls-cert-out", "x.pem"},
		"within 100%":      {"--fail", "500=60%", "--reset", "50%"},
		"--window bucket":  {"--burst", "3"},
		"unknown flag":     {"--limits", "50/s"},
		"unknown command":  {"extra"},
		"80ms..200ms":      {"--latency", "80"},
		"sliding, fixed":   {"--window", "rolling"},
		"none, ietf":       {"--headers", "x"},
		"seconds, date":    {"--retry-after", "x"},
		"20x50ms":          {"--stream", "20"},
		"2KiB":             {"--body-size", "x"},
		"from 0% to 100%":  {"--soft-errors", "1"},
		"missing unit":     {"--handshake", "150"},
		"add --latency":    {"--knee", "3"},
		"other machines c": {"--listen", ":0"},
	} {
		cmd := newStubCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want one line that says %q", args, err, says)
		}
	}
}
