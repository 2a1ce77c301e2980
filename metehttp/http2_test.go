package metehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/metehq/mete"
)

// refusing is an HTTP/2 server that refuses the streams of which arrived says
// so, and answers the others with 204.
func refusing(t *testing.T, arrived func() (refuse bool)) *http.Transport {
	t.Helper()
	cfg, client := certificates(true)
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
	pool.TLSClientConfig = client
	t.Cleanup(func() {
		pool.CloseIdleConnections()
		l.Close()
		wg.Wait()
	})
	return pool
}

func refuseStreams(c net.Conn, arrived func() bool) {
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
			if arrived() {
				_ = framer.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			block.Reset()
			_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "204"})
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		}
	}
}

// net/http sends refused streams again by itself, and each of them is charged.
func TestReplayOverHTTP2(t *testing.T) {
	var arrived atomic.Int64
	pool := refusing(t, func() bool {
		n := arrived.Add(1)
		return n > 5 && n <= 20
	})
	g := gate(t, mete.Config{Concurrency: 20, Limits: []mete.Limit{{N: 100, Per: time.Second, Burst: 10}}})
	rt := &Transport{Gate: fixed(g), Base: pool}
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if code, err := get(t.Context(), rt, "https://example.com/"); code != 204 || err != nil {
				t.Error(code, err)
			}
		})
	}
	wg.Wait()
	if s := g.Stats(); arrived.Load() != 55 || s.Attempts != 55 || s.Replays != 15 {
		t.Errorf("%d arrived, %d attempts, %d replays", arrived.Load(), s.Attempts, s.Replays)
	}
	idle(t, g)
}

// net/http asks for an HTTP/2 connection under the lock of its pool. A replay
// that waits there would stop every request of the pool.
func TestReplayStopsNobody(t *testing.T) {
	var arrived atomic.Int64
	pool := refusing(t, func() bool { return arrived.Add(1) == 2 })
	slow := gate(t, mete.Config{Limits: []mete.Limit{{N: 2, Per: time.Second, Burst: 2}}})
	rt := &Transport{Gate: fixed(slow), Base: pool}
	if _, err := get(t.Context(), rt, "https://example.com/"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := get(t.Context(), rt, "https://example.com/")
		done <- err
	}()
	for slow.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	other := gate(t, mete.Config{})
	if _, err := get(t.Context(), &Transport{Gate: fixed(other), Base: pool}, "https://example.com/"); err != nil {
		t.Error(err)
	}
	if n := slow.Stats().Waiting; n != 1 {
		t.Error("another gate's request waited for the replay")
	}
	if err := <-done; err != nil || arrived.Load() != 4 {
		t.Errorf("%d arrived, %v", arrived.Load(), err)
	}
	idle(t, slow)
}
