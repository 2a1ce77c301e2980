// Package stub is a fake provider that audits its callers.
//
// It answers HTTP requests the way a rate-limited API does: with quotas,
// latency, a knee, faults and quota headers. Beside that it keeps its own
// record of every arrival and reports the most that fell into any sliding
// window, so that "never above the limit" is a measurement and not a claim.
// For that reason it shares no code with the limiter, not even the grammar of
// a rate.
//
// An arrival is stamped when the first byte of the request is read from its
// connection, before the request is parsed or a handler is scheduled. Under
// HTTP/2, and where the handler runs in somebody else's server, it is stamped
// when the handler is entered. The same holds for a client that pipelines.
//
// # Memory
//
// An arrival costs 8 bytes for as long as the longest audited window plus a
// minute, and an accepted one 8 more: 1,000/s audited over an hour is about
// 60 MB. Every distinct request that was answered 2xx, and every
// Idempotency-Key, costs about 20 bytes until the audit is reset. Both are
// known by a 64-bit hash: among ten million, the chance of one false repeat
// is below one in 100,000.
package stub

import (
	"context"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a fake provider. Make it with New. As an http.Handler it works in
// any server; only after Start does it see connections, stamp arrivals in the
// read loop and measure its own stalls. It is safe for concurrent use.
type Server struct {
	cfg  Config
	base time.Time    // arrivals are nanoseconds since then, on the monotonic clock
	seed maphash.Seed // of the hashes by which requests are known again
	pad  []byte       // what fills a body up to Config.BodySize

	mu     sync.Mutex // guards ledger
	ledger ledger

	connMu sync.Mutex // guards conns
	conns  map[*conn]struct{}

	http     *http.Server
	listener net.Listener
	certPEM  []byte
	stall    watchdog
	done     chan struct{} // closed by Close; ends sleeps in connections
	once     sync.Once
}

// New returns a fake provider for cfg. A mistake in cfg is reported by Start;
// see Config.Check.
func New(cfg Config) *Server {
	s := &Server{
		cfg:   cfg,
		base:  time.Now(),
		seed:  maphash.MakeSeed(),
		conns: make(map[*conn]struct{}),
		done:  make(chan struct{}),
	}
	s.pad = make([]byte, max(0, min(cfg.BodySize, 16<<10)))
	for i := range s.pad {
		s.pad[i] = 'x'
	}
	s.ledger.init(cfg, s.base)
	return s
}

// now is the time since the server was made. It is never 0, which stands for
// "no stamp".
func (s *Server) now() int64 { return int64(time.Since(s.base)) + 1 }

// Start listens on Config.Listen and serves until Close or Shutdown. It
// returns an error when the configuration is wrong or the address is taken.
// A server is started once.
func (s *Server) Start() error {
	if err := s.cfg.Check(); err != nil {
		return err
	}
	if s.http != nil {
		return errors.New("stub: started twice")
	}
	addr := s.cfg.Listen
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.serve(l)
}

// serve starts the server on l.
func (s *Server) serve(l net.Listener) error {
	var tlsConfig *tls.Config
	if s.cfg.TLS {
		cert, pem, err := selfSigned(s.base)
		if err != nil {
			l.Close()
			return err
		}
		s.certPEM = pem
		tlsConfig = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	}
	s.listener = l
	s.http = &http.Server{
		Handler:     s,
		ConnContext: connContext,
		ErrorLog:    log.New(io.Discard, "", 0), // resets are meant; the audit counts them
	}
	serve := func() { _ = s.http.Serve(&listener{Listener: l, s: s, tls: tlsConfig}) }
	if s.cfg.HTTP2 {
		tlsConfig.NextProtos = []string{"h2", "http/1.1"}
		s.http.TLSConfig = tlsConfig
		serve = func() { _ = s.http.ServeTLS(&listener{Listener: l, s: s}, "", "") }
	}
	s.stall.start()
	go serve()
	return nil
}

// URL is the address of a started server, without a final slash.
func (s *Server) URL() string {
	scheme := "http://"
	if s.cfg.TLS {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// CertPEM is the self-signed certificate of a started server with TLS, for
// clients that must trust it, and nil otherwise.
func (s *Server) CertPEM() []byte { return s.certPEM }

// Shutdown stops accepting, waits until the requests in flight are answered
// or ctx ends, and closes the server. It returns ctx's error if it cut any off.
func (s *Server) Shutdown(ctx context.Context) error {
	var err error
	if s.http != nil {
		err = s.http.Shutdown(ctx)
	}
	return errors.Join(err, s.Close())
}

// Close ends the server and all its connections at once and waits for the
// watchdog. The audit stays readable. Closing twice is harmless.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.done)
		if s.http != nil {
			err = s.http.Close()
			s.stall.stop()
		}
	})
	return err
}
