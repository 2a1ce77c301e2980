package metehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// server is a real server whose connections are counted, and a pool for it.
func server(t testing.TB, h2 bool, handler http.HandlerFunc) (*httptest.Server, *http.Transport, *atomic.Int64) {
	t.Helper()
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(handler)
	srv.EnableHTTP2 = h2
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	pool := NewPool(100)
	if h2 {
		srv.StartTLS()
		pool.TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		srv.Close()
	})
	return srv, pool, &conns
}

// The server closes idle connections just when the client uses them
// (golang/go#22158, golang/go#19943, stripe/veneur#49): a POST with a key
// always arrives, once. What net/http sends again is charged.
func TestKeepAliveRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		pipe := newPipes()
		pool := pipe.serve(t, &http.Server{IdleTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.Header.Get("Idempotency-Key")]++
		})})
		g := gate(t, mete.Config{Concurrency: 1, Limits: []mete.Limit{mete.Per(1000, time.Second)}, Retry: mete.Retry{Attempts: 4}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		for i := range 100 {
			req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://example.test/", strings.NewReader("text"))
			req.Header.Set("Idempotency-Key", fmt.Sprint(i))
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(i, err)
			}
			resp.Body.Close()
			time.Sleep(time.Second)
		}
		if len(seen) != 100 {
			t.Errorf("%d of 100 arrived", len(seen))
		}
		for k, n := range seen {
			if n != 1 {
				t.Errorf("key %s: %d times", k, n)
			}
		}
		idle(t, g)
	})
}

// hangUp is a server that answers the first request on a connection and hangs
// up on the second, after it has read it.
func hangUp(t *testing.T, arrived func(time.Time)) *http.Transport {
	return hangUpOver(t, func(c net.Conn) net.Conn { return c }, arrived)
}

// hangUpOver is hangUp that speaks over what wrap makes of a connection.
func hangUpOver(t *testing.T, wrap func(net.Conn) net.Conn, arrived func(time.Time)) *http.Transport {
	pipe := newPipes()
	pool := NewPool(0)
	pool.Proxy = nil
	pool.DialContext = pipe.dial
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := pipe.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				c := wrap(c)
				defer c.Close()
				buf := make([]byte, 4096)
				for n := range 2 {
					if _, err := c.Read(buf); err != nil {
						return
					}
					arrived(time.Now())
					if n == 0 {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		pipe.Close()
		wg.Wait()
	})
	return pool
}

// What net/http sends again by itself on a new connection waits for the limit
// like anything else: the server never sees more than it allows.
func TestReplayIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		pool := hangUp(t, func(now time.Time) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, now)
		})
		g := gate(t, mete.Config{Concurrency: 10, MaxWait: -1, Limits: []mete.Limit{{N: 5, Per: time.Second, Burst: 5}}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s := g.Stats()
		if n := most(at, time.Second); n > 5 || s.Replays == 0 || int(s.Attempts) != len(at) || len(at) != 40+int(s.Replays) {
			t.Errorf("%d in a second, %d arrived, %d attempts, %d replays", n, len(at), s.Attempts, s.Replays)
		}
		idle(t, g)
	})
}

// A replay that would come too late is not sent, and costs nothing.
func TestReplayIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int64
		pool := hangUp(t, func(time.Time) { arrived.Add(1) })
		g := gate(t, mete.Config{Concurrency: 1, Limits: []mete.Limit{{N: 2, Per: time.Minute, Burst: 2}}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := get(ctx, rt, "http://example.test/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := arrived.Load(); n != 2 {
			t.Errorf("%d arrived", n)
		}
		idle(t, g)
	})
}

// A Wire tells of each attempt how long it waited for a connection, when it was
// sent and sent again, and when the answer began.
func TestWireOfAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := hangUp(t, func(time.Time) { time.Sleep(time.Second) })
		dial := pool.DialContext
		pool.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return dial(ctx, network, addr)
		}
		g := gate(t, mete.Config{Concurrency: 1, MaxWait: -1, Limits: []mete.Limit{{N: 2, Per: time.Minute, Burst: 2, Margin: time.Nanosecond}}})
		send := func() (w Wire, start time.Time) {
			tries := g.Tries(t.Context(), mete.Call{Wire: true})
			permit, err := tries.Next()
			if err != nil {
				t.Fatal(err)
			}
			start = time.Now()
			resp, err := pool.RoundTrip(request(t, w.Watch(tries.Context(), permit), "GET"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
			tries.Again(mete.Outcome{Answered: true})
			permit.Release()
			return
		}
		first, start := send()
		if first.Conn() != 3*time.Second || first.Sent() != start.Add(3*time.Second) || first.FirstByte() != start.Add(4*time.Second) || first.Replays() != 0 {
			t.Errorf("connection %v, sent after %v, answer after %v, %d replays", first.Conn(), first.Sent().Sub(start), first.FirstByte().Sub(start), first.Replays())
		}
		again, start2 := send() // on a connection that is hung up; the replay waits for the minute to end
		sent := start.Add(3*time.Second + time.Minute)
		if again.Replays() != 1 || again.Sent().Sub(sent).Abs() > time.Millisecond || again.FirstByte().Sub(again.Sent()) != time.Second {
			t.Errorf("%d replays, sent after %v, answer after %v", again.Replays(), again.Sent().Sub(start2), again.FirstByte().Sub(start2))
		}
		if s := g.Stats(); s.Replays != 1 || s.Attempts != 3 {
			t.Errorf("%d replays, %d attempts", s.Replays, s.Attempts)
		}
		idle(t, g)
	})
}

// A POST without a key whose connection is lost fails as lost before the
// response; it is not repeated.
func TestLostBeforeResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int64
		pool := hangUp(t, func(time.Time) { arrived.Add(1) })
		g := gate(t, mete.Config{Concurrency: 1, Retry: mete.Retry{Attempts: 4}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(request(t, t.Context(), "POST"))
		if err == nil || arrived.Load() != 2 {
			t.Fatalf("%v, %d arrived", resp, arrived.Load())
		}
		if a := (Attempt{Request: request(t, t.Context(), "POST"), Err: err, Replayable: true}); a.Class() != Reset {
			t.Errorf("class %s: %v", a.Class(), err)
		}
		idle(t, g)
	})
}

// slowHandshake is a listener whose connections say nothing for a while.
type slowHandshake struct{ net.Listener }

func (l slowHandshake) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &slowConn{Conn: c}, err
}

type slowConn struct {
	net.Conn
	once sync.Once
}

func (c *slowConn) Read(b []byte) (int, error) {
	c.once.Do(func() { time.Sleep(150 * time.Millisecond) })
	return c.Conn.Read(b)
}

// A cold start against a slow handshake cannot bunch the starts: they count
// from the wire, as the server sees them.
func TestStartsAreStampedAtTheWire(t *testing.T) {
	cfg, client := certificates(false)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		pipe := newPipes()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
		})}
		client.InsecureSkipVerify = true // the bubble's clock is not within the certificate's life
		pool := pipe.serve(t, srv, func(l net.Listener) net.Listener {
			return tls.NewListener(slowHandshake{l}, cfg)
		})
		pool.TLSClientConfig = client
		g := gate(t, mete.Config{Concurrency: 50, Limits: []mete.Limit{mete.Per(50, time.Second)}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if _, err := get(t.Context(), rt, "https://example.com/"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := most(at, time.Second); n > 50 || n < 48 || len(at) != 200 {
			t.Errorf("%d of %d in a second", n, len(at))
		}
		idle(t, g)
	})
}

// A base without trace hooks, such as a cache or another protocol, is charged
// too.
func TestBaseWithoutHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{Limits: []mete.Limit{mete.Per(10, time.Second)}})
		rt := &Transport{Gate: fixed(g), Base: mute{}}
		start := time.Now()
		for range 21 {
			if _, err := get(t.Context(), rt, "http://example.test/"); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d < 2*time.Second {
			t.Errorf("21 at 10/s in %v", d)
		}
		idle(t, g)
	})
}

type mute struct{}

func (mute) RoundTrip(*http.Request) (*http.Response, error) { return status(200), nil }

// What was never sent costs nothing.
func TestUnsentCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := true
		pipe := newPipes()
		pool := pipe.serve(t, &http.Server{Handler: http.NotFoundHandler()})
		pool.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if refused {
				return nil, opError("dial", errors.New("refused"))
			}
			return pipe.dial(ctx, network, addr)
		}
		g := gate(t, mete.Config{Limits: []mete.Limit{{N: 1, Per: time.Hour}}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		for range 5 {
			if _, err := get(t.Context(), rt, "http://example.test/"); err == nil || errors.Is(err, mete.ErrWaitTimeout) {
				t.Error(err)
			}
		}
		refused = false
		if code, err := get(t.Context(), rt, "http://example.test/"); code != 404 || err != nil {
			t.Error(code, err)
		}
		idle(t, g)
	})
}

// Retries leave one connection behind and no goroutines, even where the pool
// has only one (openai/openai-go#496).
func TestRetriesReuseTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		pipe := newPipes()
		pool := pipe.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%3 != 0 {
				w.WriteHeader(503)
			}
			_, _ = io.WriteString(w, "some text")
		})})
		pool.MaxConnsPerHost = 1
		g := gate(t, mete.Config{Concurrency: 2, Retry: mete.Retry{Attempts: 3}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		before := 0
		for i := range 1000 {
			if code, err := get(t.Context(), rt, "http://example.test/"); err != nil || code != 200 {
				t.Fatal(i, code, err)
			}
			if i == 0 {
				synctest.Wait()
				before = runtime.NumGoroutine()
			}
		}
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before {
			t.Errorf("%d goroutines, %d after the first", now, before)
		}
		if n.Load() != 3000 || pipe.dials != 1 {
			t.Errorf("%d attempts on %d connections", n.Load(), pipe.dials)
		}
		idle(t, g)
	})
}

// Requests that are cancelled leave nothing behind in a pool with few
// connections (golang/go#65705, golang/go#32336).
func TestCanceledRequestsWedgeNothing(t *testing.T) {
	srv, pool, _ := server(t, false, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	pool.MaxConnsPerHost = 2
	g := gate(t, mete.Config{Concurrency: 20, Limits: []mete.Limit{{N: 1e6, Per: time.Second, Burst: 1e6}}})
	rt := &Transport{Gate: fixed(g), Base: pool}
	var freed atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(5000))*time.Microsecond)
			defer cancel()
			mark := new([16]byte)
			runtime.AddCleanup(mark, func(int) { freed.Add(1) }, 0)
			_, _ = get(context.WithValue(ctx, markKey{}, mark), rt, srv.URL)
		})
	}
	wg.Wait()
	start := time.Now()
	for range 10 {
		if _, err := get(t.Context(), rt, srv.URL); err != nil {
			t.Error(err)
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("10 plain requests took %v", d)
	}
	idle(t, g)
	pool.CloseIdleConnections()
	for i := 0; freed.Load() < 200 && i < 500; i++ {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if n := freed.Load(); n < 200 {
		t.Errorf("%d of 200 contexts were freed", n)
	}
}

type markKey struct{}

// The pool keeps as many idle connections as there are permits
// (golang/go#13801).
func TestConnectionsAreReused(t *testing.T) {
	srv, _, conns := server(t, false, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })
	g := gate(t, mete.Config{Concurrency: 100})
	c := &http.Client{Transport: New(g)}
	defer c.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 50 {
				if _, err := get(t.Context(), c.Transport, srv.URL); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := conns.Load(); n > 150 {
		t.Errorf("%d connections for 100 permits", n)
	}
}

// Uploads are streamed: what is allocated does not grow with their size.
func TestUploadIsStreamed(t *testing.T) {
	const size = 64 << 20
	srv, pool, _ := server(t, false, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if n != size || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	g := gate(t, mete.Config{Limits: []mete.Limit{mete.Per(1000, time.Second)}, Retry: mete.Retry{Attempts: 4}})
	rt := &Transport{Gate: fixed(g), Base: pool}
	content := make([]byte, 1<<20)
	req, _ := http.NewRequestWithContext(t.Context(), "PUT", srv.URL, io.LimitReader(repeat(content), size))
	req.ContentLength = size
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for an upload of %d", n, size)
	}
	idle(t, g)
}

type repeat []byte

func (r repeat) Read(b []byte) (int, error) { return copy(b, r), nil }

// A server that ends its HTTP/2 connections again and again loses no request
// and no body (golang/go#39086, golang/go#18112, cloudflare/cloudflared#1273).
func TestGoAway(t *testing.T) {
	var n atomic.Int64
	var mu sync.Mutex
	seen := map[string]int{}
	srv, pool, conns := server(t, true, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%100 == 0 {
			w.Header().Set("Connection", "close") // HTTP/2 says it by GOAWAY
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ProtoMajor != 2 {
			t.Error(r.Proto, err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)]++
	})
	pool.ForceAttemptHTTP2 = true
	g := gate(t, mete.Config{Concurrency: 20, Limits: []mete.Limit{{N: 1e6, Per: time.Second, Burst: 1e6}}, Retry: mete.Retry{Attempts: 4}})
	rt := &Transport{Gate: fixed(g), Base: pool}
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			text := bytes.Repeat([]byte(fmt.Sprintf("%8d", i)), 128)
			req, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL, bytes.NewReader(text))
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			if resp.StatusCode != 200 {
				t.Error(resp.Status)
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	if len(seen) != 500 || conns.Load() < 3 {
		t.Errorf("%d of 500 bodies on %d connections", len(seen), conns.Load())
	}
	for text, n := range seen {
		if n != 1 || len(text) != 1024 {
			t.Errorf("a body of %d bytes came %d times", len(text), n)
		}
	}
	idle(t, g)
}
