//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// One zone counts 50 a second with a burst of 3, the other 1000 a minute. Each
// has a port and a log of its own. A file is served because "return" would
// answer before the limits are looked at.
const nginxConf = `daemon off;
worker_processes 1;
%[1]spid %[2]s/nginx.pid;
error_log %[2]s/error.log error;
events { worker_connections 256; }
http {
  log_format brief '$msec $status';
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
  limit_req_zone $server_port zone=second:1m rate=50r/s;
  limit_req_zone $server_port zone=minute:1m rate=1000r/m;
  limit_req_status 429;
  root %[2]s;
  server {
    listen 127.0.0.1:%[3]d;
    access_log %[2]s/one.log brief;
    limit_req zone=second burst=3 nodelay;
    location / { try_files /answer =404; }
  }
  server {
    listen 127.0.0.1:%[4]d;
    access_log %[2]s/two.log brief;
    limit_req zone=second burst=3 nodelay;
    limit_req zone=minute burst=999 nodelay;
    location / { try_files /answer =404; }
  }
}
`

const (
	// nginxBurst is how long nginx may be stopped before a client that keeps
	// its pace exceeds the burst.
	nginxBurst = 3 * 20 * time.Millisecond
	// catchUp is how late a start of mete may be without the later ones being
	// late as well.
	catchUp = 5 * time.Millisecond
)

func nginxProof(ctx context.Context, r *report) error {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
		if _, err := os.Stat(path); err != nil {
			return errors.New("nginx is not installed: apt-get install nginx-light")
		}
	}
	for _, c := range []struct {
		rates []string
		rows  int
		log   string
	}{
		{[]string{"50/s"}, 500, "one.log"},
		{[]string{"50/s", "1000/m"}, 1050, "two.log"},
	} {
		for try := 1; ; try++ {
			again, err := againstNginx(ctx, r, path, c.rates, c.rows, c.log, try < attempts)
			if err != nil {
				return err
			}
			if !again {
				break
			}
		}
	}
	return nil
}

// greedy is when the last of n requests may start if each starts as soon as
// 50 a second, evenly, and 1000 a minute let it.
func greedy(n int, perMinute bool) time.Duration {
	at := make([]time.Duration, n)
	for i := 1; i < n; i++ {
		at[i] = at[i-1] + 20*time.Millisecond
		if perMinute && i >= 1000 {
			at[i] = max(at[i], at[i-1000]+time.Minute)
		}
	}
	return at[n-1]
}

func againstNginx(ctx context.Context, r *report, path string, rates []string, rows int, log string, repeatable bool) (again bool, err error) {
	dir := r.file("nginx")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(dir, "answer"), []byte("ok\n"), 0o644); err != nil {
		return false, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return false, err
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n" // the temporary folder is closed to others
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, user, dir, ports[0], ports[1]), 0o644); err != nil {
		return false, err
	}
	cmd := command(ctx, auditor, path, "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends its worker
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return false, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	port := ports[0]
	if len(rates) > 1 {
		port = ports[1]
	}
	if err := listening(ctx, port); err != nil {
		return false, fmt.Errorf("nginx did not start: %s", stderr.String())
	}

	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	input := r.file("urls.txt")
	if err := urls(input, base, rows); err != nil {
		return false, err
	}
	args := []string{input, "-o", r.file("out.jsonl")}
	for _, rate := range rates {
		args = append(args, "--rate", rate)
	}
	stalls := watchStalls(ctx)
	run, err := startRun(ctx, r.file("state"), args...)
	if err != nil {
		return false, err
	}
	f, err := run.wait()
	worst := stalls()
	if err != nil {
		return false, err
	}
	if f.code > 1 {
		return false, f.complete(rows)
	}
	seen, err := readNginx(dir, log)
	if err != nil {
		return false, err
	}
	ideal := greedy(rows, len(rates) > 1)
	over := f.wall.Seconds()/ideal.Seconds() - 1
	good := over <= 0.015
	none := seen.rejected == 0 && seen.limiting == 0 && len(seen.at) == rows && f.summary.Rows.OK == int64(rows)
	again = repeatable && (worst > nginxBurst && !none || worst > catchUp && !good)
	say := func(ok bool, format string, args ...any) { r.check(ok, format, args...) }
	if again {
		say = func(_ bool, format string, args ...any) { r.note(format, args...) }
	}
	name := strings.Join(rates, " and ")
	say(none, "%s, %d rows: nginx answered %d, %d of them with 429, and wrote %d times \"limiting requests\"; at most %d in any second and %d in any minute",
		name, rows, len(seen.at), seen.rejected, seen.limiting, seen.most(time.Second), seen.most(time.Minute))
	say(good, "%s, %d rows: %.3f s from start to end of the process, the ideal is %.3f s, %+.2f %% (at most 1.5); %.3f s in nginx's log",
		name, rows, f.wall.Seconds(), ideal.Seconds(), 100*over, seen.span().Seconds())
	if again {
		r.note("run again: processes here were stalled for up to %v; mete makes up for %v, nginx's burst for %v", worst.Round(time.Millisecond), catchUp, nginxBurst)
		return true, nil
	}
	began := time.Now()
	_ = command(ctx, measured, program(), "version").Run()
	r.note("the longest stall of a process here was %v; only to start and end mete takes %v", worst.Round(time.Microsecond), time.Since(began).Round(time.Millisecond))
	if len(rates) > 1 {
		return false, nil
	}
	// That nothing was refused means something only if nginx does refuse.
	burst(base, 100)
	after, err := readNginx(dir, log)
	if err != nil {
		return false, err
	}
	r.check(after.rejected > 0 && after.limiting > 0, "the same nginx refuses a client without a limiter: %d of 100 requests at once", after.rejected-seen.rejected)
	return false, nil
}

// nginxLog is what nginx wrote of its requests.
type nginxLog struct {
	at       []time.Duration
	rejected int
	limiting int
}

func readNginx(dir, log string) (seen nginxLog, err error) {
	file, err := os.Open(filepath.Join(dir, log))
	if err != nil {
		return seen, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		at, status, _ := strings.Cut(lines.Text(), " ")
		s, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return seen, err
		}
		seen.at = append(seen.at, time.Duration(s*1e3+0.5)*time.Millisecond)
		if status == "429" {
			seen.rejected++
		}
	}
	if err := lines.Err(); err != nil {
		return seen, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "error.log"))
	seen.limiting = bytes.Count(text, []byte("limiting requests"))
	return seen, err
}

// span is from the first to the last.
func (l *nginxLog) span() time.Duration {
	if len(l.at) == 0 {
		return 0
	}
	return l.at[len(l.at)-1] - l.at[0]
}

// most is the largest number in any half-open window.
func (l *nginxLog) most(window time.Duration) (most int) {
	first := 0
	for i, t := range l.at {
		for t-l.at[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// burst sends n requests at once.
func burst(base string, n int) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			if resp, err := client.Get(fmt.Sprintf("%s/burst?n=%d", base, i)); err == nil {
				resp.Body.Close()
			}
		})
	}
	wait.Wait()
}

// watchStalls measures how late this process runs, which is some measure of
// the machine, until the function it returns is called.
func watchStalls(ctx context.Context) func() time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	var worst atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			due := time.Now().Add(time.Millisecond)
			if sleep(ctx, time.Millisecond) != nil {
				return
			}
			worst.Store(max(worst.Load(), int64(time.Since(due))))
		}
	})
	return func() time.Duration {
		cancel()
		wait.Wait()
		return time.Duration(worst.Load())
	}
}

// freePorts finds ports that nobody listens on at the moment.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// listening waits until a port takes connections.
func listening(ctx context.Context, port int) (err error) {
	for range 100 {
		var c net.Conn
		if c, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return c.Close()
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return err
}
