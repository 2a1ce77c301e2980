package metehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/metehq/mete"
)

// refusing is an HTTP/2 server that refuses the streams of which arrived says
// so, and answers the others with 204.
func refusing(t *testing.T, arrived func(time.Time) (refuse bool)) *http.Transport {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil) // for its certificate
	srv.EnableHTTP2 = true
	srv.StartTLS()
	cfg := srv.TLS.Clone()
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	srv.Client().CloseIdleConnections()
	srv.Close()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { refuseStreams(tls.Server(c, cfg), arrived) })
		}
	})
	pool := NewPool(0)
	pool.Proxy = nil
	pool.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}
	pool.TLSClientConfig = &tls.Config{RootCAs: roots}
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		l.Close()
		wg.Wait()
	})
	return pool
}

func refuseStreams(c net.Conn, arrived func(time.Time) bool) {
	defer c.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	framer := http2.NewFramer(c, c)
	if framer.WriteSettings() != nil {
		return
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if arrived(time.Now()) {
				_ = framer.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			block.Reset()
			_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "204"})
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		}
	}
}

// net/http sends refused streams again by itself, and asks for a connection
// under the lock of its pool. Waiting there would stop every request of the
// pool, also those that hold what is waited for.
func TestReplayOverHTTP2(t *testing.T) {
	for _, limit := range []mete.Limit{
		{N: 10, Per: 200 * time.Millisecond, Burst: 10, Margin: busy},
		{N: 1, Per: 5 * time.Millisecond, Margin: busy / 10},
	} {
		var mu sync.Mutex
		var at []time.Time
		pool := refusing(t, func(now time.Time) bool {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, now)
			return len(at) > 5 && len(at) <= 20
		})
		g := gate(t, mete.Config{Concurrency: 20, Limits: []mete.Limit{limit}})
		rt := &Transport{Gate: fixed(g), Base: pool}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if code, err := get(ctx, rt, "https://example.com/"); code != 204 || err != nil {
					t.Error(code, err)
				}
			})
		}
		wg.Wait()
		cancel()
		s := g.Stats()
		if s.Replays == 0 || int(s.Attempts) != len(at) {
			t.Errorf("%d arrived, %d attempts, %d replays", len(at), s.Attempts, s.Replays)
		}
		if n := most(at, limit.Per); limit.N > 1 && n > int(limit.N) {
			t.Errorf("%d in %v", n, limit.Per)
		}
		idle(t, g)
	}
}
