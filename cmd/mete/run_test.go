package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// patience bounds what a loaded machine may take for what should be instant.
const patience = 30 * time.Second

// program is mete at work, in a process of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	ended  chan struct{}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// launch starts the program in dir. State is kept there.
func launch(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return command(t, dir, "mete", args...)
}

func command(t *testing.T, dir, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"))
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits for the end and its exit code, and returns how long it took.
func (p *program) exits(want int) time.Duration {
	p.t.Helper()
	start := time.Now()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("still running; stderr:\n%s", p.stderr.String())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.t.Fatalf("exit code %d, want %d; stderr:\n%s", got, want, p.stderr.String())
	}
	return time.Since(start)
}

// eventually waits until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// write makes a file of lines in dir.
func write(t *testing.T, dir, name string, lines ...string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// urls are n of them below base.
func urls(base string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s/%d", base, i))
	}
	return list
}

// records reads the records of a file, or of a text that begins with {.
func records(t *testing.T, source string) (list []*record.Record) {
	t.Helper()
	text := []byte(source)
	if !strings.HasPrefix(source, "{") && source != "" {
		var err error
		if text, err = os.ReadFile(source); err != nil {
			t.Fatal(err)
		}
	}
	for line := range bytes.Lines(text) {
		r, err := record.Decode(line)
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, r)
	}
	return list
}

// provider is a server that remembers when it was asked for what.
type provider struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
}

type seen struct {
	at     time.Time
	path   string
	method string
	header http.Header
}

func serve(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int)) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, seen{time.Now(), r.URL.RequestURI(), r.Method, r.Header.Clone()})
		n := len(p.seen)
		p.mu.Unlock()
		handle(w, r, n)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) requests() []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

func TestInterruptDrains(t *testing.T) {
	t.Parallel()
	dir, release := t.TempDir(), make(chan struct{})
	p := serve(t, func(http.ResponseWriter, *http.Request, int) { <-release })
	write(t, dir, "urls.txt", urls(p.URL, 50)...)
	m := launch(t, dir, "run", "urls.txt", "-c", "4", "-o", "out.jsonl")
	eventually(t, "four in flight", func() bool { return len(p.requests()) == 4 })
	m.signal(syscall.SIGINT)
	eventually(t, "draining is shown", func() bool { return strings.Contains(m.stderr.String(), "state=draining") })
	close(release)
	m.exits(130)
	if n := len(p.requests()); n != 4 {
		t.Errorf("%d requests, want no more than the 4 in flight", n)
	}
	if n := len(records(t, filepath.Join(dir, "out.jsonl"))); n != 4 {
		t.Errorf("%d records, want the 4 that were in flight", n)
	}
	if text := m.stderr.String(); !strings.Contains(text, "mete run urls.txt -c 4 -o out.jsonl --resume") || !strings.Contains(text, "not done 46") {
		t.Errorf("no word of how to go on:\n%s", text)
	}
	launch(t, dir, "run", "urls.txt", "-o", "out.jsonl", "--resume").exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), 50)
	if n := len(p.requests()); n != 50 {
		t.Errorf("%d requests in all, want 50", n)
	}
}

// once checks that a file has n rows, each of them once and fine.
func once(t *testing.T, path string, n int) {
	t.Helper()
	ids := map[string]int{}
	for _, r := range records(t, path) {
		ids[r.ID]++
		if ids[r.ID] > 1 || !r.OK {
			t.Errorf("row %s: %d times, ok %v", r.ID, ids[r.ID], r.OK)
		}
	}
	if len(ids) != n {
		t.Errorf("%d rows, want %d", len(ids), n)
	}
}

func TestSecondInterruptWritesNothing(t *testing.T) {
	t.Parallel()
	dir, release := t.TempDir(), make(chan struct{})
	p := serve(t, func(_ http.ResponseWriter, r *http.Request, n int) {
		if n > 2 {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	defer close(release)
	write(t, dir, "urls.txt", urls(p.URL, 50)...)
	m := launch(t, dir, "run", "urls.txt", "-c", "4", "-o", "out.jsonl")
	eventually(t, "four in flight", func() bool { return len(p.requests()) == 6 })
	m.signal(syscall.SIGINT)
	eventually(t, "draining is shown", func() bool { return strings.Contains(m.stderr.String(), "state=draining") })
	m.signal(syscall.SIGINT)
	if d := m.exits(130); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	once(t, filepath.Join(dir, "out.jsonl"), 2)
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		shell  string
		code   int
	}{
		{"SIGTERM", syscall.SIGTERM, "exec mete run urls.txt --rate 10/s", 143},
		{"SIGHUP", syscall.SIGHUP, "exec mete run urls.txt --rate 10/s", 129},
		// As under nohup: ignored at the start, and so afterwards.
		{"nohup", syscall.SIGHUP, "trap '' HUP; exec mete run urls.txt --rate 10/s", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := serve(t, func(http.ResponseWriter, *http.Request, int) {})
			write(t, dir, "urls.txt", urls(p.URL, 6)...)
			m := command(t, dir, "sh", "-c", tt.shell)
			eventually(t, "a request", func() bool { return len(p.requests()) > 0 })
			m.signal(tt.signal)
			m.exits(tt.code)
			if n := len(p.requests()); (n == 6) != (tt.code == 0) {
				t.Errorf("%d requests with exit code %d", n, tt.code)
			}
		})
	}
}

func TestStatusSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	write(t, dir, "urls.txt", urls(p.URL, 500)...)
	m := command(t, dir, "env", "API_KEY=sk-never-seen", "mete", "run", "urls.txt", "--rate", "20/s", "-q", "-H", "Authorization: ${API_KEY}")
	eventually(t, "a request", func() bool { return len(p.requests()) > 0 })
	m.signal(syscall.SIGUSR1)
	eventually(t, "a line", func() bool { return strings.Contains(m.stderr.String(), "\n") })
	if text := m.stderr.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "done=") {
		t.Errorf("want one line of progress, got %q", text)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", m.cmd.Process.Pid))
	if err != nil || bytes.Contains(line, []byte("sk-never")) {
		t.Errorf("process list: %q, %v", line, err)
	}
	if got := p.requests()[0].header.Get("Authorization"); got != "sk-never-seen" {
		t.Errorf("sent Authorization %q", got)
	}
	m.signal(syscall.SIGINT)
	m.exits(130)
}

// maximhq/bifrost#6964: everything waits for a Retry-After of a minute.
func TestInterruptDuringPause(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var open atomic.Bool
	p := serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 3 && !open.Load() {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(429)
		}
	})
	write(t, dir, "urls.txt", urls(p.URL, 50)...)
	m := launch(t, dir, "run", "urls.txt", "-c", "2", "-o", "out.jsonl")
	eventually(t, "the pause is shown", func() bool { return strings.Contains(m.stderr.String(), "state=paused") })
	m.signal(syscall.SIGINT)
	if d := m.exits(130); d > 5*time.Second { // alone on the machine: 50 ms
		t.Errorf("took %v to end", d)
	}
	once(t, filepath.Join(dir, "out.jsonl"), 3)
	open.Store(true)
	// The pause is remembered; this test has not got a minute.
	launch(t, dir, "run", "urls.txt", "-o", "out.jsonl", "--resume", "--state", "none").exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), 50)
}

// sidekiq/sidekiq#4744, grafana/agent#5751: rows of a host that is paused hold
// no worker of another.
func TestThrottledHostHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slow := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(429)
	})
	fast := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	write(t, dir, "urls.txt", append(urls(slow.URL, 100), urls(fast.URL, 100)...)...)
	m := launch(t, dir, "run", "urls.txt", "-c", "10", "-o", "out.jsonl")
	eventually(t, "100 fast rows", func() bool { return len(fast.requests()) == 100 })
	m.signal(syscall.SIGINT)
	m.exits(130)
	once(t, filepath.Join(dir, "out.jsonl"), 100)
	if n := len(slow.requests()); n > 10 {
		t.Errorf("the throttled host was asked %d times", n)
	}
}

// curl/curl#21355: a 429 closes the whole host, and no other. nodejs/undici
// and others read only one form of Retry-After.
func TestRetryAfterClosesTheHost(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"seconds", "date"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var until time.Time // before the second request: happens after the first
			closed := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
				if n > 1 {
					return
				}
				w.Header().Set("Retry-After", "2")
				until = time.Now().Add(2 * time.Second)
				if form == "date" {
					until = time.Now().Add(3 * time.Second).Truncate(time.Second)
					w.Header().Set("Retry-After", until.UTC().Format(http.TimeFormat))
				}
				w.WriteHeader(429)
			})
			open := serve(t, func(http.ResponseWriter, *http.Request, int) {})
			write(t, dir, "urls.txt", append(urls(closed.URL, 5), urls(open.URL, 20)...)...)
			launch(t, dir, "run", "urls.txt", "-c", "1", "-o", "out.jsonl").exits(0)
			for _, r := range closed.requests()[1:] {
				// A date has no fractions, of the server's clock.
				if r.at.Before(until.Add(-5 * time.Millisecond)) {
					t.Errorf("asked again %v too early", until.Sub(r.at))
				}
			}
			if last := open.requests()[19].at; last.After(until) {
				t.Errorf("the other host was done %v after the pause", last.Sub(until))
			}
			first := records(t, filepath.Join(dir, "out.jsonl"))
			i := slices.IndexFunc(first, func(r *record.Record) bool { return r.Attempts == 2 })
			if i < 0 {
				t.Fatal("no row with two attempts")
			}
			r := first[i]
			if hint := r.Tries[0].RetryAfter; hint < time.Second || hint > 3*time.Second || r.Tries[0].Status != 429 {
				t.Errorf("tries[0]: %+v", r.Tries[0])
			}
			sum := r.Waits.Queue + r.Waits.Backoff + r.Waits.Conn
			for _, try := range r.Tries {
				sum += try.Took
			}
			if d := sum - r.Total; d < -time.Millisecond || d > time.Millisecond {
				t.Errorf("the parts differ from the total by %v: %+v", d, r.Waits)
			}
		})
	}
}

// openai/openai-python#3555: come back tomorrow. That host is given up, and the
// others go on.
func TestPauseBeyondMax(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tomorrow := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(429)
	})
	fine := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	write(t, dir, "urls.txt", append(urls(tomorrow.URL, 20), urls(fine.URL, 20)...)...)
	write(t, dir, "mete.yaml", "version: 1", "defaults: {max_pause: 1h}")
	m := launch(t, dir, "run", "urls.txt", "-c", "2", "-f", "mete.yaml", "-o", "out.jsonl")
	m.exits(4)
	once(t, filepath.Join(dir, "out.jsonl"), 20)
	if n := len(tomorrow.requests()); n > 2 {
		t.Errorf("asked %d times", n)
	}
	if text := m.stderr.String(); !strings.Contains(text, "asks to stay away for 24h") || !strings.Contains(text, "more than max_pause 1h0m0s") {
		t.Errorf("stderr:\n%s", text)
	}
}

// mlflow/mlflow#11694: rows that wait for a local limit are not failures.
func TestLocalLimitIsNoFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprintf(`{"url":"%s/%d","cost":{"tokens":10}}`, p.URL, i))
	}
	write(t, dir, "rows.jsonl", rows...)
	start := time.Now()
	launch(t, dir, "run", "rows.jsonl", "--limit", "tokens=300/s", "-o", "out.jsonl").exits(0)
	if d := time.Since(start); d < 1200*time.Millisecond {
		t.Errorf("400 tokens at 300/s took only %v", d)
	}
	once(t, filepath.Join(dir, "out.jsonl"), 40)
	waited := 0
	for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
		if r.Waits.Limiter > 0 && r.Bound == "limit:tokens" {
			waited++
		}
	}
	if waited < 30 {
		t.Errorf("only %d rows say that they waited for the tokens", waited)
	}
}

// zalando/skipper#1911: one host, whatever its spelling.
func TestOneHostManySpellings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, func(http.ResponseWriter, *http.Request, int) {})
	port := p.URL[strings.LastIndexByte(p.URL, ':')+1:]
	write(t, dir, "urls.txt",
		"HTTP://LOCALHOST:"+port+"/1", "http://localhost:"+port+"/2", "http://u:p@localhost:"+port+"/3",
		"http://Localhost:0"+port+"/4", "http://LocalHost:00"+port+"/5")
	launch(t, dir, "run", "urls.txt", "--rate", "10/s", "-o", "out.jsonl").exits(0)
	for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
		if want := "http://localhost:" + port; r.Provider != want {
			t.Errorf("%s: provider %s, want %s", r.URL, r.Provider, want)
		}
	}
	list := p.requests()
	if d := list[len(list)-1].at.Sub(list[0].at); len(list) != 5 || d < 200*time.Millisecond {
		t.Errorf("%d requests in %v, want 5 in 400ms", len(list), d)
	}
}

// vmfunc/sif#333: each hop is admitted at its own host, holds nothing of the
// host before, and takes no credentials along.
func TestRedirect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var a, b *provider
	a = serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/to-b"):
			http.Redirect(w, r, b.URL+"/end", http.StatusFound)
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case r.URL.Path == "/post":
			http.Redirect(w, r, "/see", http.StatusSeeOther)
		case r.URL.Path == "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	})
	b = serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if strings.HasPrefix(r.URL.Path, "/to-a") {
			http.Redirect(w, r, a.URL+"/end", http.StatusFound)
		}
	})
	var rows []string
	for i := range 5 {
		rows = append(rows,
			fmt.Sprintf(`{"id":"a%d","url":"%s/to-b%d"}`, i, a.URL, i),
			fmt.Sprintf(`{"id":"b%d","url":"%s/to-a%d"}`, i, b.URL, i))
	}
	rows = append(rows, `{"id":"loop","url":"`+a.URL+`/loop"}`, `{"id":"file","url":"`+a.URL+`/file"}`,
		`{"id":"post","url":"`+a.URL+`/post","body":"x"}`)
	write(t, dir, "rows.jsonl", rows...)
	launch(t, dir, "run", "rows.jsonl", "-c", "1", "--rate", "50/s", "-o", "out.jsonl",
		"-H", "Authorization: Bearer sk-1", "-H", "X-Custom: ${PATH}", "-H", "X-Plain: yes").exits(1)
	for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
		switch r.ID {
		case "loop":
			if r.OK || r.Error.Kind != record.Redirect || len(r.Tries) != 11 {
				t.Errorf("loop: %+v after %d tries", r.Error, len(r.Tries))
			}
		case "file":
			if r.OK || r.Error.Kind != record.Redirect {
				t.Errorf("file: %+v", r.Error)
			}
		case "post":
			if !r.OK || len(r.Tries) != 2 {
				t.Errorf("post: %+v", r.Error)
			}
		default:
			if !r.OK || len(r.Tries) != 2 || r.Tries[0].Provider == r.Tries[1].Provider {
				t.Errorf("%s: %+v", r.ID, r.Tries)
			}
		}
	}
	for _, p := range []*provider{a, b} {
		list := p.requests()
		for _, r := range list {
			first := strings.HasPrefix(r.path, "/to-") || slices.Contains([]string{"/loop", "/post", "/see", "/file"}, r.path)
			if got := r.header.Get("Authorization") != ""; got != first {
				t.Errorf("%s: Authorization sent: %v", r.path, got)
			}
			if got := r.header.Get("X-Custom") != ""; got != first {
				t.Errorf("%s: a secret header sent: %v", r.path, got)
			}
			if r.header.Get("X-Plain") != "yes" {
				t.Errorf("%s: a plain header is gone", r.path)
			}
			if r.path == "/see" && r.method != "GET" {
				t.Errorf("303 was followed by %s", r.method)
			}
		}
	}
	// Both kinds of hops pay: a has 5 + 5 + 11 + 1 + 2 requests.
	if list := a.requests(); len(list) != 24 || list[23].at.Sub(list[0].at) < 400*time.Millisecond {
		t.Errorf("%d requests to a in %v, want 24 in 460ms", len(list), list[len(list)-1].at.Sub(list[0].at))
	}
}

// stripe/stripe-node#559: one key for all attempts, and for all resumes.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	dir, release := t.TempDir(), make(chan struct{})
	var stuck, throttled atomic.Bool
	stuck.Store(true)
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path == "/stuck" && stuck.Load() {
			<-release
		}
		if r.URL.Path == "/throttled" && throttled.CompareAndSwap(false, true) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
		}
	})
	write(t, dir, "rows.jsonl",
		`{"id":"1","url":"`+p.URL+`/throttled","body":"x"}`,
		`{"id":"2","url":"`+p.URL+`/stuck","body":"x"}`,
		`{"id":"3","url":"`+p.URL+`/get"}`,
		`{"id":"4","url":"`+p.URL+`/own","body":"x","idempotency_key":"mine"}`)
	m := launch(t, dir, "run", "rows.jsonl", "-c", "1", "-o", "out.jsonl")
	eventually(t, "the second row is in flight", func() bool { r := p.requests(); return len(r) > 0 && r[len(r)-1].path == "/stuck" })
	m.signal(syscall.SIGKILL)
	m.exits(-1)
	stuck.Store(false)
	close(release)
	launch(t, dir, "run", "rows.jsonl", "-c", "1", "-o", "out.jsonl", "--resume").exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), 4)
	keys, asked := map[string]string{}, map[string]int{}
	for _, r := range p.requests() {
		key := r.header.Get("Idempotency-Key")
		if before, ok := keys[r.path]; ok && before != key {
			t.Errorf("%s: key %q after %q", r.path, key, before)
		}
		keys[r.path] = key
		asked[r.path]++
	}
	if fmt.Sprint(asked) != "map[/get:1 /own:1 /stuck:2 /throttled:2]" {
		t.Errorf("asked %v", asked)
	}
	if keys["/get"] != "" || keys["/own"] != "mine" || !strings.HasPrefix(keys["/stuck"], "mete-") || keys["/stuck"] == keys["/throttled"] {
		t.Errorf("keys %v", keys)
	}
}

// gocardless/gocardless-pro-python#12, stripe/stripe-node#559: done, and the
// answer lost on a connection that was fine before, which net/http by itself
// answers by sending again.
func TestAmbiguousFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	done := map[string]int{}
	lost := func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path == "/warm" {
			return
		}
		mu.Lock()
		done[r.URL.Path]++
		n := done[r.URL.Path]
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == "POST" && r.URL.Path == "/nobody" && r.ContentLength != 0 {
			w.WriteHeader(411)
			return
		}
		if n == 1 {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				c.Close()
			}
		}
	}
	p := serve(t, lost)
	rows := []string{}
	for _, r := range []string{
		`{"id":"plain","method":"POST","url":"%s/plain","body":"x"}`,
		`{"id":"nobody","method":"POST","url":"%s/nobody"}`,
		`{"id":"keyed","method":"POST","url":"%s/keyed","body":"x","idempotency_key":"k1"}`,
		`{"id":"get","url":"%s/get"}`,
		`{"id":"put","method":"PUT","url":"%s/put","body":"x"}`,
		`{"id":"delete","method":"DELETE","url":"%s/delete"}`,
	} {
		rows = append(rows, `{"url":"`+p.URL+`/warm"}`, fmt.Sprintf(r, p.URL))
	}
	write(t, dir, "rows.jsonl", rows...)
	launch(t, dir, "run", "rows.jsonl", "-c", "1", "--retry-delay", "1ms", "-o", "out.jsonl").exits(1)
	if got := fmt.Sprint(done); got != "map[/delete:2 /get:2 /keyed:2 /nobody:1 /plain:1 /put:2]" {
		t.Errorf("done %s", got)
	}
	for _, r := range records(t, filepath.Join(dir, "out.jsonl")) {
		ambiguous := r.ID == "plain" || r.ID == "nobody"
		if r.OK == ambiguous || ambiguous && (r.Error.Kind != record.UnknownOutcome || r.Attempts != 1) {
			t.Errorf("%s: ok %v after %d attempts: %+v", r.ID, r.OK, r.Attempts, r.Error)
		}
	}
}

func TestTwoProcessesOnOneOutput(t *testing.T) {
	t.Parallel()
	dir, release := t.TempDir(), make(chan struct{})
	p := serve(t, func(http.ResponseWriter, *http.Request, int) { <-release })
	write(t, dir, "urls.txt", urls(p.URL, 2)...)
	first := launch(t, dir, "run", "urls.txt", "-o", "out.jsonl")
	eventually(t, "a request", func() bool { return len(p.requests()) == 2 })
	for _, flag := range []string{"--resume", "--overwrite", "--quiet"} {
		second := launch(t, dir, "run", "urls.txt", "-o", "out.jsonl", flag)
		second.exits(6)
		if want := "mete process " + strconv.Itoa(first.cmd.Process.Pid); !strings.Contains(second.stderr.String(), want) {
			t.Errorf("%s: %q does not name %q", flag, second.stderr.String(), want)
		}
	}
	close(release)
	first.exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), 2)
}

// projectdiscovery/httpx#813, golang/go#16282: bodies come back byte for byte,
// and every record is one line.
func TestBodies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef\n\x00\xff"), (20<<20)/19)
	bodies := map[string][]byte{
		"/utf16":  {0xff, 0xfe, 0x00, 0x41},
		"/latin1": []byte("caf\xe9"),
		"/text":   []byte("a\nb\r\nc\u2028d\x00e\u2029<&>\x7f"),
		"/json":   []byte("{ \"b\":12345678901234567890,\n\t\"a\":\"<\u2028\", \"a\":1 }\n"),
		"/number": []byte("12"),
		"/empty":  {},
		"/big":    big,
	}
	p := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bodies[r.URL.Path])
	})
	var list []string
	for path := range bodies {
		list = append(list, p.URL+path)
	}
	write(t, dir, "urls.txt", list...)
	for _, how := range []string{"auto", "file", "none"} {
		out := how + ".jsonl"
		launch(t, dir, "run", "urls.txt", "-o", out, "--body", how).exits(0)
		once(t, filepath.Join(dir, out), len(bodies))
		for _, r := range records(t, filepath.Join(dir, out)) {
			path := strings.TrimPrefix(r.URL, p.URL)
			want, got := bodies[path], r.Body
			if r.BodyFile != "" {
				var err error
				if got, err = os.ReadFile(filepath.Join(dir, r.BodyFile)); err != nil {
					t.Fatal(err)
				}
			}
			if r.BodyBytes != int64(len(want)) || r.Truncated {
				t.Errorf("%s %s: %d bytes, truncated %v", how, path, r.BodyBytes, r.Truncated)
			}
			inFile := how == "file" || path == "/big" && how == "auto"
			if (r.BodyFile != "") != inFile {
				t.Errorf("%s %s: body in %q", how, path, r.BodyFile)
			}
			if how == "none" {
				want = nil
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s %s: %d bytes differ from %d: %.60q", how, path, len(got), len(want), got)
			}
		}
	}
	// Without a place for files a large body is cut, and the record says so.
	write(t, dir, "big.txt", p.URL+"/big")
	m := launch(t, dir, "run", "big.txt")
	m.exits(0)
	if r := records(t, m.stdout.String())[0]; !r.Truncated || r.BodyBytes != int64(len(big)) || len(r.Body) > 0 {
		t.Errorf("truncated %v, %d bytes", r.Truncated, r.BodyBytes)
	}
}

// JetBrains/teamcity-cli#345: bodies of answers that are asked for again are
// closed, so that one connection is enough.
func TestOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var connections atomic.Int64
	p := &provider{}
	asked := map[string]int{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		asked[r.URL.Path]++
		n := asked[r.URL.Path]
		p.mu.Unlock()
		if n < 3 {
			w.WriteHeader(503)
		}
		_, _ = w.Write(make([]byte, 10<<10))
	}))
	p.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	p.Start()
	t.Cleanup(p.Close)
	write(t, dir, "urls.txt", urls(p.URL, 100)...)
	launch(t, dir, "run", "urls.txt", "-c", "1", "--retry-delay", "1ms", "-o", "out.jsonl").exits(0)
	once(t, filepath.Join(dir, "out.jsonl"), 100)
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// microsoft/TypeAgent#2769: whatever byte the last record is cut at, a resume
// leaves each row once and repeats no more than the one that was cut.
func TestTornTailAtEveryOffset(t *testing.T) {
	t.Parallel()
	const shares = 4 // side by side: most of the time goes by waiting
	for share := range shares {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := filepath.Join(dir, "out.jsonl")
			p := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = w.Write([]byte("é\u2028\x00")) })
			write(t, dir, "rows.jsonl", `{"id":"1","url":"`+p.URL+`/1"}`, `{"id":"2","url":"`+p.URL+`/2","meta":"é"}`)
			write(t, dir, "mete.yaml", "version: 1", "run: {fsync: never}")
			run := func(args ...string) {
				t.Helper()
				c := newRootCommand()
				c.SetArgs(append([]string{"run", filepath.Join(dir, "rows.jsonl"), "-c", "1", "-q", "--state", "none", "-f", filepath.Join(dir, "mete.yaml"), "-o", out}, args...))
				if err := c.Execute(); err != nil {
					t.Fatal(err)
				}
			}
			run()
			whole, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			// A manifest names all runs; hundreds would make this slow.
			manifest, err := os.ReadFile(out + ".mete/manifest.json")
			if err != nil {
				t.Fatal(err)
			}
			first := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
			for cut := first + share; cut <= len(whole) && !t.Failed(); cut += shares {
				if err := errors.Join(os.WriteFile(out, whole[:cut], 0o644), os.WriteFile(out+".mete/manifest.json", manifest, 0o644)); err != nil {
					t.Fatal(err)
				}
				before := len(p.requests())
				run("--resume")
				once(t, out, 2)
				want := 1
				if cut >= len(whole)-1 { // only the line feed is missing, or nothing
					want = 0
				}
				if got := len(p.requests()) - before; got != want || t.Failed() {
					t.Errorf("cut at %d of %d: %d requests, want %d", cut, len(whole), got, want)
				}
			}
		})
	}
}

// What a flag that moved says to write is a file that can be read.
func TestMovedFlags(t *testing.T) {
	for _, m := range moved {
		_, quoted, _ := strings.Cut(m.instead, "\"")
		text, _, ok := strings.Cut(quoted, "\"")
		if !ok {
			continue // the environment says it
		}
		if _, err := config.Parse("mete.yaml", []byte("version: 1\n"+text+"\n"), os.LookupEnv); err != nil {
			t.Errorf("--%s: %v", m.flag, err)
		}
	}
}
