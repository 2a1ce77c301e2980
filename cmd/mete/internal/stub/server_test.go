package stub

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEcho(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		r := c.do("POST", `/a%22b?q=1`, "hello", "Idempotency-Key", "k<1")
		var got map[string]any
		if err := json.Unmarshal([]byte(r.body), &got); err != nil {
			t.Fatalf("%v in %s", err, r.body)
		}
		want := map[string]any{"method": "POST", "path": `/a"b`, "query": "q=1", "body_length": 5.0, "idempotency_key": "k<1",
			"body_sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if r := c.do("HEAD", "/", ""); r.status != 200 || r.body != "" {
			t.Errorf("HEAD: %+v", r)
		}
	})
}

// The stamp is that of the first byte, however late the rest comes and the
// handler runs, and a body's bytes are not taken for the next request.
func TestArrivalIsStampedAtTheFirstByte(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			bubble(t, Config{TLS: secure}, func(t *testing.T, s *Server, c *client) {
				nc, err := c.p.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if secure {
					nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
					if err := nc.(*tls.Conn).Handshake(); err != nil {
						t.Fatal(err)
					}
				}
				in := bufio.NewReader(nc)
				say := func(text string) time.Time {
					t.Helper()
					now := time.Now()
					if _, err := io.WriteString(nc, text); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					return now
				}
				arrived := func(want time.Time) {
					t.Helper()
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					io.Copy(io.Discard, res.Body)
					if got, want := s.Audit().LastMS, millis(want.UnixNano()); got != want {
						t.Errorf("arrival at %.0f ms, want %.0f", got, want)
					}
				}
				time.Sleep(time.Second)
				first := say("G")
				say("ET / HTTP/1.1\r\nHost: x\r\n")
				say("\r\n")
				arrived(first)

				first = say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n")
				say("abc")
				say("def")
				arrived(first)

				first = say("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				arrived(first)
				if n := s.Audit().Connections; n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		})
	}
}

func TestRefusedAboveALimit(t *testing.T) {
	bubble(t, Config{Limits: []Limit{{5, time.Second}, {8, time.Minute}}}, func(t *testing.T, s *Server, c *client) {
		if r := c.together(7); count(r, 200) != 5 || count(r, 429) != 2 {
			t.Fatalf("%d answered, %d refused, want 5 and 2", count(r, 200), count(r, 429))
		}
		time.Sleep(time.Second)
		if r := c.together(4); count(r, 200) != 3 {
			t.Fatalf("%d answered, want the 3 that are left of the minute", count(r, 200))
		}
		a := s.Audit()
		if a.Requests != 11 || a.Accepted != 8 || a.Rejected != 3 || a.Statuses["200"] != 8 || a.Statuses["429"] != 3 {
			t.Errorf("audit: %+v", a)
		}
		if a.MaxStarts["1s"] != 7 || a.MaxStarts["1m0s"] != 11 || a.Over["1s"] != 2 || a.Over["1m0s"] != 3 || a.SpanMS != 1000 {
			t.Errorf("windows: %+v", a)
		}
		if r := c.do("POST", "/stub/reset", ""); r.status != 204 {
			t.Fatal(r)
		}
		if a := s.Audit(); a.Requests != 0 || len(a.Statuses) != 0 || a.MaxStarts["1s"] != 0 || a.SpanMS != 0 || a.Connections != 0 {
			t.Errorf("after the reset: %+v", a)
		}
		if r := c.get("/"); r.status != 429 {
			t.Error("the reset of the audit refilled the quota")
		}
		if n := s.Audit().Connections; n != 1 {
			t.Errorf("%d connections since the reset, want 1", n)
		}
	})
}

func TestConcurrency(t *testing.T) {
	for _, status := range []int{0, 503} {
		bubble(t, Config{Concurrency: 3, ConcurrencyStatus: status, Latency: Latency{time.Second, time.Second}}, func(t *testing.T, s *Server, c *client) {
			want := 429
			if status != 0 {
				want = status
			}
			for range 2 {
				if r := c.together(5); count(r, 200) != 3 || count(r, want) != 2 {
					t.Fatalf("%d answered and %d refused, want 3 and 2", count(r, 200), count(r, want))
				}
			}
			if a := s.Audit(); a.PeakInFlight < 3 || a.PeakInFlight > 5 || a.InFlight != 0 || a.Rejected != 4 {
				t.Errorf("audit: %+v", a)
			}
		})
	}
}

// A client with n workers must never be seen with n+1 in flight.
func TestPeakInFlightIsExact(t *testing.T) {
	for _, cfg := range []Config{{}, {BodySize: 100_000}, {Stream: Stream{3, time.Millisecond}}} {
		bubble(t, cfg, func(t *testing.T, s *Server, c *client) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 50 {
						if r := c.get("/"); r.status != 200 {
							t.Errorf("%+v", r)
						}
					}
				})
			}
			wg.Wait()
			if a := s.Audit(); a.PeakInFlight > 4 || a.Requests != 200 || a.Repeats != 1 || a.RepeatedAnswers != 199 {
				t.Errorf("audit: %+v", a)
			}
		})
	}
}

func TestLatencyAndKnee(t *testing.T) {
	bubble(t, Config{Latency: Latency{80 * time.Millisecond, 200 * time.Millisecond}}, func(t *testing.T, s *Server, c *client) {
		lo, hi := time.Hour, time.Duration(0)
		for range 100 {
			r := c.get("/")
			lo, hi = min(lo, r.took), max(hi, r.took)
		}
		if lo < 80*time.Millisecond || lo > 90*time.Millisecond || hi > 200*time.Millisecond || hi < 190*time.Millisecond {
			t.Errorf("latencies from %v to %v, want 80ms to 200ms", lo, hi)
		}
	})
	bubble(t, Config{Latency: Latency{100 * time.Millisecond, 100 * time.Millisecond}, Knee: 4}, func(t *testing.T, s *Server, c *client) {
		slowest := time.Duration(0)
		for _, r := range c.together(8) {
			slowest = max(slowest, r.took)
		}
		if slowest != 200*time.Millisecond {
			t.Errorf("twice the knee took %v, want 200ms", slowest)
		}
		if r := c.get("/"); r.took != 100*time.Millisecond {
			t.Errorf("alone it took %v, want 100ms", r.took)
		}
	})
}

func TestShares(t *testing.T) {
	cfg := Config{Fail: []Fail{{500, 0.1}, {503, 0.2}}, SoftErrors: 0.1, Seed: 7}
	var first string
	for range 2 {
		bubble(t, cfg, func(t *testing.T, s *Server, c *client) {
			var trace strings.Builder
			soft := 0
			for range 1000 {
				r := c.get("/")
				fmt.Fprint(&trace, r.status, " ")
				if strings.Contains(r.body, `"status":"OVER_QUERY_LIMIT"`) {
					soft++
				}
			}
			a := s.Audit()
			near := func(what string, got int64, want float64) {
				if d := float64(got) - want; d < -40 || d > 40 {
					t.Errorf("%s: %d of 1000, want about %.0f", what, got, want)
				}
			}
			near("500", a.Statuses["500"], 100)
			near("503", a.Statuses["503"], 200)
			near("soft errors", a.SoftErrors, 100)
			if int64(soft) != a.SoftErrors || a.Rejected != 0 {
				t.Errorf("%d soft errors seen, audit: %+v", soft, a)
			}
			if first == "" {
				first = trace.String()
			} else if first != trace.String() {
				t.Error("the same seed gave other faults")
			}
		})
	}
}

func TestStatusPaths(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		for _, step := range []struct {
			path string
			want int
		}{{"/status/503", 503}, {"/status/204", 204}, {"/status/99", 400}, {"/status/", 400},
			{"/once/503/a", 503}, {"/once/503/a", 200}, {"/once/503/b", 503}, {"/once/503/a", 200}} {
			if r := c.get(step.path); r.err != nil || r.status != step.want {
				t.Errorf("%s: %d %v, want %d", step.path, r.status, r.err, step.want)
			}
		}
	})
}

// An answer of the caller's own: a body and fields, always or once, counted as
// a soft error if it comes with a 200.
func TestOwnAnswers(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		r := c.get("/status/200?body=%7B%22status%22%3A%22OVER%22%7D&header=Retry-After:2&header=Content-Type:+text/plain&header=bad")
		if r.status != 200 || r.body != `{"status":"OVER"}`+"\n" || r.header.Get("Retry-After") != "2" || fmt.Sprint(r.header["Content-Type"]) != "[text/plain]" {
			t.Errorf("%+v", r)
		}
		once := "/once/429/a?body=no&header=Retry-After:3"
		if r := c.get(once); r.status != 429 || r.body != "no\n" || r.header.Get("Retry-After") != "3" {
			t.Errorf("%+v", r)
		}
		if r := c.get(once); r.status != 200 || r.header.Get("Retry-After") != "" || !strings.Contains(r.body, `"path":"/once/429/a"`) {
			t.Errorf("%+v", r)
		}
		if a := s.Audit(); a.SoftErrors != 1 || a.Repeats != 0 {
			t.Errorf("%+v", a)
		}
	})
}

func TestBodySizeAndStream(t *testing.T) {
	for _, size := range []int{100, 2048, 100_000} {
		bubble(t, Config{BodySize: size}, func(t *testing.T, s *Server, c *client) {
			r := c.get("/")
			if len(r.body) != size || !json.Valid([]byte(r.body)) {
				t.Errorf("a body of %d bytes, want %d bytes of JSON", len(r.body), size)
			}
			if r := c.do("HEAD", "/", ""); r.status != 200 || r.header.Get("Content-Length") != strconv.Itoa(size) && size > 100 {
				t.Errorf("HEAD: %+v", r)
			}
		})
	}
	bubble(t, Config{Stream: Stream{20, 50 * time.Millisecond}}, func(t *testing.T, s *Server, c *client) {
		r := c.get("/")
		if r.took != time.Second || strings.Count(r.body, "data: {") != 20 || !strings.HasSuffix(r.body, "data: [DONE]\n\n") ||
			r.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%+v", r)
		}
	})
}

func TestAbandoned(t *testing.T) {
	bubble(t, Config{Latency: Latency{time.Minute, time.Minute}}, func(t *testing.T, s *Server, c *client) {
		c.Timeout = time.Second
		if r := c.get("/"); r.err == nil {
			t.Fatal("no timeout")
		}
		synctest.Wait()
		if a := s.Audit(); a.Abandoned != 1 || a.InFlight != 0 || len(a.Statuses) != 0 {
			t.Errorf("audit: %+v", a)
		}
	})
}

// A slow handshake delays the connection and never bunches arrivals.
func TestHandshake(t *testing.T) {
	const delay = 150 * time.Millisecond
	for _, secure := range []bool{false, true} {
		bubble(t, Config{Handshake: delay, TLS: secure}, func(t *testing.T, s *Server, c *client) {
			time.Sleep(time.Second)
			start := time.Now()
			cold, warm := c.get("/"), c.get("/")
			if cold.err != nil || cold.took != delay || warm.took != 0 {
				t.Errorf("tls=%v: cold %v, warm %v, %v; want %v and 0", secure, cold.took, warm.took, cold.err, delay)
			}
			want := start // plain: the request was here at once, and only its handling waited
			if secure {
				want = start.Add(delay)
			}
			if got := s.Audit().FirstMS; got != millis(want.UnixNano()) {
				t.Errorf("tls=%v: arrival %.3f, want %.3f", secure, got, millis(want.UnixNano()))
			}
		})
	}
}

func TestHTTP2(t *testing.T) {
	for _, on := range []bool{false, true} {
		bubble(t, Config{TLS: true, HTTP2: on}, func(t *testing.T, s *Server, c *client) {
			c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			res, err := c.Get(s.URL() + "/")
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if (res.ProtoMajor == 2) != on {
				t.Errorf("--http2=%v gave %s", on, res.Proto)
			}
			if a := s.Audit(); a.Requests != 1 || a.Connections != 1 {
				t.Errorf("audit: %+v", a)
			}
		})
	}
}

func TestWatchdogSeesVirtualTimeOnTime(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		time.Sleep(time.Second)
		if got := s.Audit().MaxStallMS; got != 0 {
			t.Errorf("a stall of %v ms in virtual time", got)
		}
		s.stall.worst.Store(int64(3 * time.Millisecond))
		if got := s.Audit().MaxStallMS; got != 3 {
			t.Errorf("a stall of %v ms, want 3", got)
		}
	})
}

func TestCheck(t *testing.T) {
	for flag, cfg := range map[string]Config{
		"--window":             {Window: "rolling"},
		"--headers":            {Headers: "x"},
		"--retry-after":        {RetryAfter: "x"},
		"--limit":              {Limits: []Limit{{-1, 1}}},
		"--measure":            {Measure: []time.Duration{0}},
		"--burst":              {Burst: 3},
		"--concurrency":        {Concurrency: -1},
		"--concurrency-status": {ConcurrencyStatus: 7},
		"--knee":               {Knee: 3},
		"--latency":            {Latency: Latency{2, 1}},
		"--body-size":          {BodySize: -1},
		"--stream":             {Stream: Stream{-1, 0}},
		"--handshake":          {Handshake: -1},
		"--http2":              {HTTP2: true},
		"--fail":               {Fail: []Fail{{500, 0.6}}, Reset: 0.5},
		"--reset":              {Reset: -1},
	} {
		err := New(cfg).Start()
		if err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The real thing: TCP, resets and the end of a server.
func TestOverTCP(t *testing.T) {
	s := New(Config{Reset: 0.3, Seed: 1})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(); err == nil {
		t.Error("started twice")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &client{t, &http.Client{Transport: transport}, s, nil}
	failed := int64(0)
	for i := range 100 {
		if r := c.get("/" + strconv.Itoa(i)); r.err != nil {
			failed++
		}
	}
	a := s.Audit()
	// net/http sends a GET again by itself when a kept-alive connection is
	// reset before its answer (golang/go#4677): more arrive than were asked
	// for, and fewer fail than were cut off.
	if a.Resets == 0 || failed == 0 || failed >= a.Resets || a.Requests <= 100 {
		t.Errorf("%d failed of 100; audit: %+v", failed, a)
	}
	if a.Requests != a.Resets+a.Statuses["200"] || a.Statuses["200"]+failed != 100 {
		t.Errorf("does not add up: %d failed, %+v", failed, a)
	}
	if a.MaxStallMS <= 0 {
		t.Error("the watchdog does not run")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if r := c.get("/"); r.err == nil {
		t.Error("answered after Shutdown")
	}
	if s.Audit().Requests != a.Requests {
		t.Error("the audit is gone after Shutdown")
	}
}

func TestShutdownWaitsForWhatIsInFlight(t *testing.T) {
	bubble(t, Config{Latency: Latency{time.Second, time.Second}}, func(t *testing.T, s *Server, c *client) {
		var r reply
		var wg sync.WaitGroup
		wg.Go(func() { r = c.get("/") })
		synctest.Wait()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if r.status != 200 {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, Config{Latency: Latency{time.Hour, time.Hour}}, func(t *testing.T, s *Server, c *client) {
		var r reply
		var wg sync.WaitGroup
		wg.Go(func() { r = c.get("/") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wg.Wait()
		if r.err == nil {
			t.Errorf("%+v", r)
		}
	})
}
