package metehttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// A retry sends the same bytes again (cloudevents/sdk-go#751,
// gojek/heimdall#127), and a body that can be had only once is not repeated:
// the caller gets the response.
func TestBodyIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("0123456789abcdef", 320)
		g, rt, f := one(t, func(n int, r *http.Request) (*http.Response, error) {
			if r.Header.Get("X") != "" {
				t.Error("the request was changed")
			}
			if n == 1 {
				return status(503), nil
			}
			return status(200), nil
		})
		req, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://example.test/", strings.NewReader(text))
		body, header := req.Body, len(req.Header)
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 || !slices.Equal(f.texts, []string{text, text}) {
			t.Fatalf("%v, %v", resp, f.texts)
		}
		if req.Body != body || len(req.Header) != header || req.Context() != t.Context() || resp.Request != req {
			t.Error("the request was changed")
		}
		resp.Body.Close()
		idle(t, g)

		f.n = 0
		once := &shut{Reader: strings.NewReader(text)}
		req, _ = http.NewRequestWithContext(t.Context(), "PUT", "http://example.test/", once)
		resp, err = rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 503 || f.n != 1 {
			t.Errorf("%d attempts: %v, %v", f.n, resp, err)
		}
		idle(t, g)

		f.n = 0
		lost := errors.New("the file is gone")
		req, _ = http.NewRequestWithContext(t.Context(), "PUT", "http://example.test/", once)
		req.GetBody = func() (io.ReadCloser, error) { return nil, lost }
		if _, err = rt.RoundTrip(req); !errors.Is(err, lost) || !strings.Contains(err.Error(), "503") {
			t.Error(err)
		}
		idle(t, g)
	})
}

// Where nothing is sent, net/http's contract wants the body closed.
func TestRefusedRequestClosesItsBody(t *testing.T) {
	closed := gate(t, mete.Config{})
	closed.Close()
	broken := errors.New("no gate")
	for name, choose := range map[string]func(*http.Request) (*mete.Gate, error){
		"no gate": func(*http.Request) (*mete.Gate, error) { return nil, broken },
		"refused": fixed(closed),
	} {
		body := &shut{Reader: strings.NewReader("text")}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://example.test/", body)
		_, err := (&Transport{Gate: choose, Base: &fake{}}).RoundTrip(req)
		if !body.isClosed() || !errors.Is(err, broken) && !errors.Is(err, mete.ErrDraining) {
			t.Errorf("%s: closed %v, %v", name, body.isClosed(), err)
		}
	}
}

// Bodies of responses that are not returned are closed, those that are
// returned are not (JetBrains/teamcity-cli#345).
func TestBodiesBetweenAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []*shut
		for _, size := range []int{4, 1 << 20} {
			bodies = nil
			g, rt, _ := one(t, func(n int, r *http.Request) (*http.Response, error) {
				resp := answer(503, strings.Repeat("x", size))
				bodies = append(bodies, resp.Body.(*shut))
				return resp, nil
			})
			resp, err := rt.RoundTrip(request(t, t.Context(), "GET"))
			if err != nil || len(bodies) != 4 {
				t.Fatalf("%d attempts, %v", len(bodies), err)
			}
			for i, b := range bodies[:3] {
				if !b.isClosed() {
					t.Errorf("body %d is open", i)
				}
			}
			if text, err := io.ReadAll(resp.Body); len(text) != size || err != nil {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			resp.Body.Close()
			if !bodies[3].isClosed() {
				t.Error("the last body is open")
			}
			idle(t, g)
		}
	})
}

// The permit is free during the back-off (argoproj/argo-workflows#9875), and a
// retry is admitted like any other call (hatchet-dev/hatchet#380).
func TestBackoffHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Concurrency: 1, Retry: mete.Retry{Attempts: 2, Delay: 2 * time.Second}})
		f := &fake{answer: func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 {
				return status(503), nil
			}
			if s := g.Stats(); s.InUse != 1 {
				t.Errorf("%d in use", s.InUse)
			}
			return status(200), nil
		}}
		rt := &Transport{Gate: fixed(g), Base: f}
		start := time.Now()
		var wg sync.WaitGroup
		for _, after := range []time.Duration{0, 100 * time.Millisecond} {
			wg.Go(func() {
				time.Sleep(after)
				if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if want := []time.Duration{0, 100 * time.Millisecond, 2 * time.Second}; !slices.Equal(f.starts(start), want) {
			t.Errorf("starts %v", f.starts(start))
		}
		idle(t, g)
	})
}

// Cancelling ends the back-off at once, and no attempt follows
// (maximhq/bifrost#6964). The error still tells what happened before.
func TestBackoffIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Retry: mete.Retry{Attempts: 4, Delay: 30 * time.Second}})
		f := &fake{answer: func(int, *http.Request) (*http.Response, error) { return status(503), nil }}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		_, err := get(ctx, &Transport{Gate: fixed(g), Base: f}, "http://example.test/")
		var last *StatusError
		if !errors.Is(err, context.Canceled) || !errors.As(err, &last) || last.Status != 503 || f.n != 1 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%d attempts in %v: %v", f.n, time.Since(start), err)
		}
		idle(t, g)
	})
}

// One throttle pauses the whole gate for as long as the server said, and other
// gates go on (curl/curl#21355, NousResearch/hermes-agent#109234).
func TestThrottlePausesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := mete.NewSet(mete.SetConfig{Gate: mete.Config{Concurrency: 5, MaxWait: -1, Retry: mete.Retry{Attempts: 4}}})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		at := map[string][]time.Duration{}
		start := time.Now()
		f := &fake{answer: func(n int, r *http.Request) (*http.Response, error) {
			mu.Lock()
			at[r.URL.Host] = append(at[r.URL.Host], time.Since(start))
			first := len(at[r.URL.Host]) == 1
			mu.Unlock()
			if first && r.URL.Host == "h1.test" {
				return status(429, "Retry-After: 3"), nil
			}
			time.Sleep(20 * time.Millisecond)
			return status(200), nil
		}}
		rt := NewSet(set, 5)
		rt.Base = f
		var wg sync.WaitGroup
		for i := range 40 {
			host := []string{"h1.test", "h2.test"}[i%2]
			wg.Go(func() {
				if code, err := get(t.Context(), rt, "http://"+host+"/"); err != nil || code != 200 {
					t.Error(code, err)
				}
			})
		}
		wg.Wait()
		for _, d := range at["h1.test"] {
			if d > 0 && d < 3*time.Second {
				t.Errorf("h1 is called at %v", d)
			}
		}
		if last := at["h2.test"][19]; len(at["h1.test"]) != 21 || last > time.Second {
			t.Errorf("h1 %d calls, the last of h2 at %v", len(at["h1.test"]), last)
		}
	})
}

// How long a throttled GET stays away, by what the server says.
func TestDelays(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		code    int
		header  func() string
		least   []time.Duration // gaps; the most is a quarter and 100 ms more
		refused bool
	}{
		"seconds":            {503, func() string { return "Retry-After: 20" }, []time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second}, false},
		"date":               {503, func() string { return "Retry-After: " + in(31*time.Second) }, []time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second}, false},
		"date of the past":   {429, func() string { return "Retry-After: Wed, 21 Oct 1998 07:28:00 GMT" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, false},
		"zero":               {429, func() string { return "Retry-After: 0" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, false},
		"negative":           {429, func() string { return "Retry-After: -1" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, false},
		"none":               {429, func() string { return "X: y" }, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, false},
		"reset as text":      {429, func() string { return "X-RateLimit-Reset-Requests: 6s" }, []time.Duration{6 * time.Second, 6 * time.Second, 6 * time.Second}, false},
		"403 with a delay":   {403, func() string { return "Retry-After: 45" }, []time.Duration{45 * time.Second, 45 * time.Second, 45 * time.Second}, false},
		"403":                {403, func() string { return "X: y" }, nil, false},
		"a second too long":  {429, func() string { return "Retry-After: 61" }, nil, true},
		"a day":              {429, func() string { return "Retry-After: 86400" }, nil, true},
		"beyond all numbers": {429, func() string { return "Retry-After: 99999999999999999999" }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, rt, f := one(t, func(int, *http.Request) (*http.Response, error) { return status(c.code, c.header()), nil })
				code, err := get(t.Context(), rt, "http://example.test/")
				if err != nil || code != c.code {
					t.Fatal(code, err)
				}
				for i, d := range f.starts(f.at[0]) {
					if i == 0 {
						continue
					}
					gap := d - f.starts(f.at[0])[i-1]
					if i > len(c.least) || gap < c.least[i-1] || gap > c.least[i-1]*5/4+100*time.Millisecond {
						t.Errorf("attempt %d after %v", i+1, gap)
					}
				}
				if len(f.at) != len(c.least)+1 {
					t.Errorf("%d attempts", len(f.at))
				}
				// Whoever comes next is told at once.
				if c.refused {
					start := time.Now()
					_, err := get(t.Context(), rt, "http://example.test/")
					var r *mete.Rejected
					if !errors.As(err, &r) || r.Reason != mete.Paused || r.RetryAfter < time.Minute || time.Since(start) > 0 {
						t.Error(err)
					}
				}
				idle(t, g)
			})
		})
	}
}

// A wait that is longer than the deadline is not begun (curl/curl#7676). The
// response is at hand and is returned; who comes later is refused at once.
func TestDelayBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, rt, f := one(t, func(int, *http.Request) (*http.Response, error) { return status(429, "Retry-After: 5"), nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if code, err := get(ctx, rt, "http://example.test/"); err != nil || code != 429 {
			t.Error(code, err)
		}
		if _, err := get(ctx, rt, "http://example.test/"); !errors.Is(err, mete.ErrDeadline) || f.n != 1 || time.Since(start) > 0 {
			t.Errorf("%d attempts, %v: %v", f.n, time.Since(start), err)
		}
		idle(t, g)
	})
}

// A refusal that follows an attempt carries its status and delay through
// http.Client (curl/curl#6408, tinyhumansai/openhuman#6504).
func TestRefusalWrapsTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, rt, _ := one(t, func(int, *http.Request) (*http.Response, error) { return status(429, "Retry-After: 7"), nil })
		time.AfterFunc(time.Second, func() { g.Pause(time.Hour) })
		_, err := (&http.Client{Transport: rt}).Get("http://example.test/")
		var s *StatusError
		var r *mete.Rejected
		if !errors.As(err, &s) || s.Status != 429 || s.RetryAfter != 7*time.Second || s.Header.Get("Retry-After") != "7" {
			t.Errorf("%+v, %v", s, err)
		}
		if !errors.As(err, &r) || r.Reason != mete.Paused || r.Attempts != 1 {
			t.Errorf("%+v", r)
		}
		idle(t, g)
	})
}

// A POST whose reply is lost is repeated only with a key, and that stays the
// same (gocardless/gocardless-pro-python#12, stripe/stripe-node#559).
func TestLostReply(t *testing.T) {
	for _, c := range []struct {
		method, key string
		attempts    int
	}{{"POST", "", 1}, {"PATCH", "", 1}, {"POST", "k1", 2}, {"GET", "", 2}, {"PUT", "", 2}, {"DELETE", "", 2}} {
		synctest.Test(t, func(t *testing.T) {
			var keys []string
			g, rt, f := one(t, func(n int, r *http.Request) (*http.Response, error) {
				keys = append(keys, r.Header.Get("Idempotency-Key"))
				if n == 1 {
					return nil, io.EOF
				}
				return status(200), nil
			})
			req := request(t, t.Context(), c.method)
			if c.key != "" {
				req.Header.Set("Idempotency-Key", c.key)
			}
			resp, err := rt.RoundTrip(req)
			if f.n != c.attempts || (err == nil) != (c.attempts == 2) {
				t.Errorf("%s %q: %d attempts, %v", c.method, c.key, f.n, err)
			}
			for _, k := range keys {
				if k != c.key {
					t.Errorf("key %q", k)
				}
			}
			if err == nil {
				resp.Body.Close()
			} else if err != io.EOF {
				t.Error(err)
			}
			idle(t, g)
		})
	}
}

// The time that calls wait for a permit is not the attempt's
// (encode/httpx#1171).
func TestTimeoutIsNotTheWait(t *testing.T) {
	for _, c := range []struct {
		maxWait     time.Duration
		least, most int
	}{{30 * time.Second, 20, 20}, {3 * time.Second, 6, 8}} {
		synctest.Test(t, func(t *testing.T) {
			g := gate(t, mete.Config{Concurrency: 2, Timeout: 2 * time.Second, MaxWait: c.maxWait})
			rt := &Transport{Gate: fixed(g), Base: &fake{answer: func(_ int, r *http.Request) (*http.Response, error) {
				select {
				case <-time.After(time.Second):
					return status(200), nil
				case <-r.Context().Done():
					return nil, context.Cause(r.Context())
				}
			}}}
			var mu sync.Mutex
			var wg sync.WaitGroup
			ok := 0
			for range 20 {
				wg.Go(func() {
					_, err := get(t.Context(), rt, "http://example.test/")
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						ok++
					case !errors.Is(err, mete.ErrWaitTimeout):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if ok < c.least || ok > c.most {
				t.Errorf("max wait %v: %d succeed", c.maxWait, ok)
			}
			idle(t, g)
		})
	}
}

// One attempt takes too long, the next one does not.
func TestAttemptTimeoutIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Timeout: 2 * time.Second, Total: 10 * time.Second, Retry: mete.Retry{Attempts: 4, Delay: time.Second}})
		rt := &Transport{Gate: fixed(g), Base: &fake{answer: func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 || r.URL.Path == "/never" {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}
			return status(200), nil
		}}}
		start := time.Now()
		if code, err := get(t.Context(), rt, "http://example.test/"); code != 200 || err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("%d after %v: %v", code, time.Since(start), err)
		}
		start = time.Now()
		if _, err := get(t.Context(), rt, "http://example.test/never"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		idle(t, g)
	})
}

// A throttle in the body of a success is repeated only where the transport was
// told to look (Google Maps answers 200 with OVER_QUERY_LIMIT), and the caller
// gets every body whole, however slowly it comes.
func TestSoftErrors(t *testing.T) {
	for _, told := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g, rt, f := one(t, func(n int, r *http.Request) (*http.Response, error) {
				resp := status(200, "Content-Type: application/json; charset=utf-8")
				text := `{"status":"OVER_QUERY_LIMIT"}`
				if n > 1 {
					text = `{"status":"OK"}`
				}
				slow, w := io.Pipe()
				go func() {
					_, _ = io.WriteString(w, text[:5])
					time.Sleep(time.Minute)
					_, _ = io.WriteString(w, text[5:])
					w.Close()
				}()
				resp.Body = slow
				return resp, nil
			})
			rt.SoftErrors = told
			resp, err := rt.RoundTrip(request(t, t.Context(), "POST"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			want, attempts := `{"status":"OVER_QUERY_LIMIT"}`, 1
			if told {
				want, attempts = `{"status":"OK"}`, 2
			}
			if string(text) != want || err != nil || f.n != attempts {
				t.Errorf("told %v: %q, %v after %d attempts", told, text, err, f.n)
			}
			idle(t, g)
		})
	}
}

// Streams are not waited for.
func TestSoftErrorsLeaveStreamsAlone(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/json": true, "Application/GraphQL-Response+JSON;charset=utf-8": true, "text/json": true,
		"application/x-ndjson": false, "application/json-seq": false, "text/event-stream": false, "": false,
	} {
		if got := isJSON(status(200, "Content-Type: "+kind)); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

// What a transport is told of its provider counts: a repeated POST that does no
// harm, and the dialect in which quotas are said.
func TestTransportKnowsItsProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, idempotent := range []bool{false, true} {
			f := &fake{answer: func(n int, r *http.Request) (*http.Response, error) {
				h := http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"4999"}, "X-Ratelimit-Resource": {"core"},
					"X-Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}}
				return &http.Response{StatusCode: 500 - 300*(n/2), Header: h, Body: http.NoBody, Request: r}, nil
			}}
			g := gate(t, mete.Config{Retry: mete.Retry{Attempts: 2}})
			rt := &Transport{Gate: fixed(g), Base: f, Idempotent: idempotent, Provider: "github"}
			resp, err := rt.RoundTrip(request(t, t.Context(), "POST"))
			if again := err == nil && resp.StatusCode == 200; again != idempotent {
				t.Errorf("idempotent %v: %v, %v", idempotent, resp, err)
			}
			if l := g.Stats().Learned; len(l) != 1 || l[0].Name != "core" || l[0].Window != time.Hour {
				t.Errorf("idempotent %v: learned %+v", idempotent, l)
			}
		}
	})
}

// Closing the idle connections of a client reaches the pool below.
func TestCloseIdleConnections(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	closed := make(chan struct{})
	var once sync.Once
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			once.Do(func() { close(closed) })
		}
	}
	server.Start()
	defer server.Close()
	client := &http.Client{Transport: New(gate(t, mete.Config{}))}
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	client.CloseIdleConnections()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection stays open")
	}
	(&Transport{Base: &fake{}}).CloseIdleConnections() // a base without it
}
