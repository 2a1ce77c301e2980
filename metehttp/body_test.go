package metehttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// one is a gate of one permit and a transport through it.
func one(t *testing.T, answer func(int, *http.Request) (*http.Response, error)) (*mete.Gate, *Transport, *fake) {
	g := gate(t, mete.Config{Concurrency: 1, Retry: mete.Retry{Attempts: 4}})
	f := &fake{answer: answer}
	return g, &Transport{Gate: fixed(g), Base: f}, f
}

func request(t *testing.T, ctx context.Context, method string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://example.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// The permit ends with the body, however it ends.
func TestPermitEndsWithTheBody(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func(*testing.T, *http.Response){
		"read to the end": func(t *testing.T, r *http.Response) { _, _ = io.ReadAll(r.Body) },
		"closed":          func(t *testing.T, r *http.Response) { r.Body.Close() },
		"closed twice":    func(t *testing.T, r *http.Response) { r.Body.Close(); r.Body.Close() },
		"read and closed": func(t *testing.T, r *http.Response) { _, _ = io.ReadAll(r.Body); r.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { return status(200), nil })
			resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
			if err != nil {
				t.Fatal(err)
			}
			if g.Stats().InUse != 1 {
				t.Error("released before the body has ended")
			}
			end(t, resp)
			idle(t, g)
		})
	}
	t.Run("read error", func(t *testing.T) {
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) {
			r := status(200)
			r.Body = io.NopCloser(failed{broken})
			return r, nil
		})
		resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != broken {
			t.Error(err)
		}
		idle(t, g)
	})
}

// Where there is no body to read, nobody may read or close it.
func TestNoBodyReleasesAtOnce(t *testing.T) {
	for name, resp := range map[string]*http.Response{
		"HEAD": status(200), "204": status(204), "304": status(304),
		"no body": {StatusCode: 200, Body: http.NoBody},
	} {
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { return resp, nil })
		method := "GET"
		if name == "HEAD" {
			method = name
		}
		if _, err := rt.RoundTrip(request(t, t.Context(), method)); err != nil {
			t.Fatal(err)
		}
		if g.Stats().InUse != 0 {
			t.Errorf("%s holds the permit", name)
		}
	}
}

// A body that is neither read nor closed gives the permit back when its
// context ends, or the attempt's timeout (golang/go#36700).
func TestForgottenBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{0, 2 * time.Second} {
			g := gate(t, mete.Config{Concurrency: 1, Timeout: timeout})
			rt := &Transport{Gate: fixed(g), Base: &fake{answer: func(int, *http.Request) (*http.Response, error) { return status(200), nil }}}
			ctx := t.Context()
			if timeout == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
			}
			start := time.Now()
			if _, err := rt.RoundTrip(request(t, ctx, "GET")); err != nil {
				t.Fatal(err)
			}
			if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d != 2*time.Second {
				t.Errorf("the permit was free after %v", d)
			}
			idle(t, g)
		}
	})
}

// The server sends its header and some bytes, then nothing (encode/httpx#2139).
// A slow body that moves is left alone.
func TestBodyStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newPipes()
		pool := net.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "ten bytes.")
			_ = http.NewResponseController(w).Flush()
			for range 10 {
				if r.URL.Path == "/slow" {
					time.Sleep(time.Second)
					_, _ = io.WriteString(w, ".")
					_ = http.NewResponseController(w).Flush()
					continue
				}
				<-r.Context().Done()
			}
		})})
		g := gate(t, mete.Config{Concurrency: 1})
		rt := &Transport{Gate: fixed(g), Base: pool, BodyIdle: 2 * time.Second}
		start := time.Now()
		_, err := get(t.Context(), rt, "http://example.test/stall")
		var timeout interface{ Timeout() bool }
		if !errors.Is(err, ErrBodyIdle) || !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if a := (Attempt{Request: request(t, t.Context(), "GET"), Response: status(200), Err: err, Replayable: true}); a.Class() != Timeout || !a.Outcome().Repeat {
			t.Errorf("%v %+v", a.Class(), a.Outcome())
		}
		idle(t, g)
		start = time.Now()
		if _, err := get(t.Context(), rt, "http://example.test/slow"); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		idle(t, g)
	})
}

// Close of an HTTP/2 body may block (golang/go#48908): the work is not over
// before it returns, and nothing else may wait for it.
func TestSlowClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) {
			r := status(200)
			r.Body = slowClose{r.Body, closing}
			return r, nil
		})
		resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
		if err != nil {
			t.Fatal(err)
		}
		go resp.Body.Close()
		synctest.Wait()
		if g.Stats().InUse != 1 {
			t.Error("released before Close has returned")
		}
		close(closing)
		synctest.Wait()
		idle(t, g)
	})
}

type slowClose struct {
	io.ReadCloser
	done chan struct{}
}

func (s slowClose) Close() error { <-s.done; return s.ReadCloser.Close() }

// A connection that was upgraded can be written to, may be silent for longer
// than BodyIdle, and holds its permit until it is closed
// (open-telemetry/opentelemetry-go-contrib#1628).
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := newPipes()
		pool := pipe.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := buf.ReadString('\n')
			time.Sleep(time.Minute)
			_, _ = io.WriteString(conn, strings.ToUpper(line))
		})})
		g := gate(t, mete.Config{Concurrency: 1})
		rt := &Transport{Gate: fixed(g), Base: pool, BodyIdle: time.Second}
		req := request(t, t.Context(), "GET")
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		rw, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatalf("%T cannot be written to", resp.Body)
		}
		if _, err := io.WriteString(rw, "hello\n"); err != nil {
			t.Error(err)
		}
		line, err := bufio.NewReader(rw).ReadString('\n')
		if err != nil || line != "HELLO\n" {
			t.Errorf("%q, %v", line, err)
		}
		if g.Stats().InUse != 1 {
			t.Error("released while the connection is open")
		}
		rw.Close()
		idle(t, g)
	})
}

// A panic in the base transport, or runtime.Goexit, frees the permit.
func TestPanicFreesThePermit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("base") }, "Goexit": runtime.Goexit} {
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { end(); return nil, nil })
		done := make(chan any)
		req := request(t, t.Context(), "GET")
		go func() {
			defer func() { done <- recover() }()
			_, _ = rt.RoundTrip(req)
		}()
		if r := <-done; (r != nil) != (name == "panic") {
			t.Errorf("%s: recovered %v", name, r)
		}
		idle(t, g)
	}
}

// The body of an error is read for what it says and still there for the
// caller; what is too long, or does not come, does not hold up anything.
func TestErrorBodyIsPutBack(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, text := range []string{"", "short", long, long[:64<<10], long[:64<<10+1]} {
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { return answer(404, text), nil })
		resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
		if err != nil {
			t.Fatal(err)
		}
		if whole := len(text) <= 64<<10; (g.Stats().InUse == 0) != whole {
			t.Errorf("%d bytes: %d in use", len(text), g.Stats().InUse)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
		resp.Body.Close()
		idle(t, g)
	}
	synctest.Test(t, func(t *testing.T) {
		r, w := net.Pipe()
		defer w.Close()
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) {
			resp := status(404)
			resp.Body = r
			return resp, nil
		})
		go func() { _, _ = io.WriteString(w, "some") }()
		start := time.Now()
		resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
		if err != nil || time.Since(start) != peekTime {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		if text, err := io.ReadAll(resp.Body); string(text) != "some" || err != ErrBodyIdle {
			t.Errorf("%q, %v", text, err)
		}
		idle(t, g)
	})
}

// A reader that takes its time is not a body that stands still.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newPipes()
		pool := net.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				_, _ = io.WriteString(w, "ten bytes.")
				_ = http.NewResponseController(w).Flush()
			}
		})})
		g := gate(t, mete.Config{Concurrency: 1})
		rt := &Transport{Gate: fixed(g), Base: pool, BodyIdle: 2 * time.Second}
		resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			buf := make([]byte, 10)
			if _, err := io.ReadFull(resp.Body, buf); err != nil {
				t.Fatalf("piece %d: %v", i, err)
			}
			time.Sleep(10 * time.Second)
		}
		resp.Body.Close()
		idle(t, g)
	})
}

// A request's context, which may live as long as the program, keeps nothing of a
// response that was read.
func TestReadBodyLeavesItsContext(t *testing.T) {
	g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { return answer(200, "ok"), nil })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := rt.RoundTrip(request(t, ctx, "GET"))
	if err != nil {
		t.Fatal(err)
	}
	b := resp.Body.(*body)
	if _, err := io.ReadAll(b); err != nil {
		t.Fatal(err)
	}
	if b.stop() {
		t.Error("the context still waits to release the permit")
	}
	idle(t, g)
}
