package metehttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// fakeConn knows whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// wireOf is the Wire of an attempt that went to its first connection. sent ends
// the attempt.
func wireOf(ctx context.Context, t *testing.T, g *mete.Gate, first net.Conn) (w *Wire, sent func()) {
	t.Helper()
	tries := g.Tries(ctx, mete.Call{Wire: true})
	permit, err := tries.Next()
	if err != nil {
		t.Fatal(err)
	}
	w = &Wire{}
	w.stamp(ctx, permit)
	w.getConn("")
	w.gotConn(httptrace.GotConnInfo{Conn: first})
	return w, func() {
		tries.Again(mete.Outcome{Answered: true})
		permit.Release()
	}
}

// What is sent again over TLS is paid before it occupies a connection, else when
// it has one; once in any case, and the time after that is not counted as
// waiting for a connection.
func TestReplayIsPaidOnce(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := gate(t, mete.Config{MaxWait: -1, Limits: []mete.Limit{{N: 1, Per: time.Minute, Burst: 1, Margin: time.Nanosecond}}})
			var conn net.Conn = &fakeConn{}
			if secure {
				conn = tls.Client(conn, &tls.Config{})
			}
			w, sent := wireOf(t.Context(), t, g, conn)
			for i := range 2 {
				begun := time.Now()
				w.getConn("")
				asked := time.Since(begun)
				w.gotConn(httptrace.GotConnInfo{Conn: conn})
				got := time.Since(begun)
				if (asked > 59*time.Second) != secure || got < 59*time.Second || got > 61*time.Second {
					t.Errorf("secure %v: replay %d may ask for a connection after %v, and go after %v", secure, i+1, asked, got)
				}
				if s := g.Stats(); w.Replays() != i+1 || s.Replays != int64(i+1) || s.Attempts != int64(i+2) || w.unsent() {
					t.Errorf("secure %v: %d replays, of the gate %d and %d attempts", secure, w.Replays(), s.Replays, s.Attempts)
				}
			}
			sent()
			idle(t, g)
		})
	}
}

// A replay for which there is no time is not sent: its connection is closed, as
// HTTP/1 writes without a look at the context.
func TestRefusedReplayClosesItsConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := gate(t, mete.Config{Limits: []mete.Limit{{N: 1, Per: time.Minute, Burst: 1}}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			under := &fakeConn{}
			var conn net.Conn = under
			if secure {
				conn = tls.Client(under, &tls.Config{})
			}
			w, sent := wireOf(ctx, t, g, conn)
			w.getConn("")
			w.gotConn(httptrace.GotConnInfo{Conn: conn})
			if took := time.Since(begun); !under.closed || took != time.Second {
				t.Errorf("secure %v: closed %v after %v", secure, under.closed, took)
			}
			if s := g.Stats(); w.Replays() != 0 || s.Replays != 0 || s.Attempts != 1 {
				t.Errorf("secure %v: %d replays, of the gate %d and %d attempts", secure, w.Replays(), s.Replays, s.Attempts)
			}
			sent()
			idle(t, g)
		})
	}
}

// A request of which it is not known whether it was written before its
// connection was lost is charged, also when it is sent again.
func TestReplayOfWhatWasNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, mete.Config{MaxWait: -1, Limits: []mete.Limit{{N: 2, Per: time.Minute, Burst: 2}}})
		w, sent := wireOf(t.Context(), t, g, &watchedConn{Conn: &fakeConn{}})
		w.getConn("")
		w.gotConn(httptrace.GotConnInfo{Conn: &fakeConn{}})
		if s := g.Stats(); s.Attempts != 2 || s.Replays != 1 || s.Limits[0].Free != 0 {
			t.Errorf("%d attempts, %d replays, %d free", s.Attempts, s.Replays, s.Limits[0].Free)
		}
		sent()
		time.Sleep(59 * time.Second)
		if free := g.Stats().Limits[0].Free; free != 0 {
			t.Errorf("%d free within the minute", free)
		}
		time.Sleep(2 * time.Second)
		if free := g.Stats().Limits[0].Free; free != 2 {
			t.Errorf("%d free after the minute", free)
		}
		idle(t, g)
	})
}

// A replay over TLS that waits for a limit holds no connection: where there may
// be one only, others use it meanwhile.
func TestWaitingReplayHoldsNoConnection(t *testing.T) {
	server, client := certificates(false)
	client.InsecureSkipVerify = true // the bubble's clock is not within the certificate's life
	synctest.Test(t, func(t *testing.T) {
		pool := hangUpOver(t, func(c net.Conn) net.Conn { return tls.Server(c, server) }, func(time.Time) {})
		pool.TLSClientConfig = client
		pool.MaxConnsPerHost = 1
		slow := gate(t, mete.Config{MaxWait: -1, Limits: []mete.Limit{{N: 2, Per: time.Minute, Burst: 2}}})
		rt := &Transport{Gate: fixed(slow), Base: pool}
		if _, err := get(t.Context(), rt, "https://example.com/"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := get(t.Context(), rt, "https://example.com/"); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Second)
		if n := slow.Stats().Waiting; n != 1 {
			t.Errorf("%d wait", n)
		}
		begun := time.Now()
		req := request(t, t.Context(), "GET")
		req.URL.Scheme, req.URL.Host, req.Close = "https", "example.com", true
		resp, err := (&Transport{Gate: fixed(gate(t, mete.Config{})), Base: pool}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("another request took %v", took)
		}
		wg.Wait()
		if s := slow.Stats(); s.Replays != 1 {
			t.Errorf("%d replays", s.Replays)
		}
		idle(t, slow)
	})
}
