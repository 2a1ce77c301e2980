package stub

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What one request costs the stub itself, without net/http.
func BenchmarkLedger(b *testing.B) {
	var l ledger
	l.init(Config{Limits: []Limit{{1 << 40, time.Second}, {1 << 40, time.Minute}}}, time.Now())
	b.ReportAllocs()
	at := int64(0)
	for b.Loop() {
		at += 50_000 // 20,000/s
		o := l.arrive(at, nil, nil)
		l.leave(&o, answered, uint64(at), 0)
	}
}

// Over loopback, with a client that does as little as it can: both sides share
// the processors.
func BenchmarkRequests(b *testing.B) {
	s := New(Config{Limits: []Limit{{1 << 40, time.Second}}})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var n atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		nc, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			b.Error(err)
			return
		}
		defer nc.Close()
		in := bufio.NewReader(nc)
		for pb.Next() {
			fmt.Fprintf(nc, "GET /?n=%d HTTP/1.1\r\nHost: x\r\n\r\n", n.Add(1))
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
