package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/metehq/mete"
	"github.com/metehq/mete/metehttp"
)

// instant is a transport that answers at once. It calls the hooks of httptrace
// as net/http does, since that is where a start is stamped.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := httptrace.ContextClientTrace(r.Context()); t != nil {
		if t.GetConn != nil {
			t.GetConn(r.URL.Host)
		}
		if t.GotConn != nil {
			t.GotConn(httptrace.GotConnInfo{})
		}
		if t.GotFirstResponseByte != nil {
			t.GotFirstResponseByte()
		}
	}
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader("ok")), ContentLength: 2,
	}, nil
}

// request is a GET with a context that can be cancelled, as in a server.
func request() *http.Request {
	ctx, cancel := context.WithCancel(context.Background())
	_ = cancel // the context has to live as long as the program
	return value(http.NewRequestWithContext(ctx, "GET", "http://example.test/", nil))
}

func requests(do func() (*http.Response, error)) func() float64 {
	return alone(1<<16, func(n int) {
		for range n {
			resp, err := do()
			must(err)
			_, err = io.Copy(io.Discard, resp.Body)
			must(err)
			must(resp.Body.Close())
		}
	})
}

func through(rt http.RoundTripper) contender {
	client, req := &http.Client{Transport: rt}, request()
	return contender{"bare client", requests(func() (*http.Response, error) { return client.Do(req) })}
}

func gated(limits ...mete.Limit) contender {
	g := value(mete.New(mete.Config{Concurrency: permits, Limits: limits, Retry: mete.Retry{Attempts: attempts}}))
	t := metehttp.New(g)
	t.Base = instant{}
	c := through(t)
	c.name = "mete"
	return c
}

func retryable() contender {
	client := retryablehttp.NewClient()
	client.Logger = nil // it logs every request unless told not to
	client.RetryMax = attempts - 1
	client.HTTPClient = &http.Client{Transport: instant{}}
	req := value(retryablehttp.FromRequest(request()))
	return contender{"go-retryablehttp", requests(func() (*http.Response, error) { return client.Do(req) })}
}

func failsafeClient() contender {
	policy := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).Build()
	c := through(failsafehttp.NewRoundTripperWithExecutor(instant{}, failsafe.With(policy)))
	c.name = "failsafe retry"
	return c
}

func clients() []comparison {
	bare := through(instant{})
	return []comparison{
		{
			name: "metehttp: over the bare client", unit: "ns",
			mete: gated(), peers: []contender{bare}, target: target{kind: over, bound: 400},
			why: "The context, the copy of the request and the body that holds the permit are three allocations beside the admission.",
		},
		{
			name: "metehttp: over the bare client, with a Window limit", unit: "ns",
			mete: gated(mete.Limit{N: plenty, Per: time.Second, Burst: plenty}), peers: []contender{bare},
			target: target{kind: over, bound: 900},
			why:    "Starts are stamped at the wire: httptrace composes its hooks by reflection and asks for the context once more.",
		},
		{
			name: "metehttp: beside clients that only retry", unit: "ns",
			mete: gated(), peers: []contender{retryable(), failsafeClient()}, target: target{kind: atMostOf, bound: 1},
			why: "go-retryablehttp neither bounds nor counts anything: it has no permit to hold until the body ends.",
		},
		{
			name: "metehttp: the same, with a Window limit", unit: "ns",
			mete:  gated(mete.Limit{N: plenty, Per: time.Second, Burst: plenty}),
			peers: []contender{retryable(), failsafeClient()}, target: target{kind: told},
		},
	}
}
