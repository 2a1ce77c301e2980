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

// get is a request whose context cannot be cancelled, as http.NewRequest makes
// it, and cancelable one whose context can be.
var (
	get           = request(context.Background())
	canceler, _   = context.WithCancelCause(context.Background())
	getCancelable = request(canceler)
)

func request(ctx context.Context) *http.Request {
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

func through(rt http.RoundTripper, req *http.Request) contender {
	client := &http.Client{Transport: rt}
	return contender{"bare client", requests(func() (*http.Response, error) { return client.Do(req) })}
}

func gated(req *http.Request, limits ...mete.Limit) contender {
	g := value(mete.New(mete.Config{Concurrency: permits, Limits: limits, Retry: mete.Retry{Attempts: attempts}}))
	t := metehttp.New(g)
	t.Base = instant{}
	c := through(t, req)
	c.name = "mete"
	return c
}

// retryable is go-retryablehttp, as an http.Client that can be handed to any
// library, or by the Do of its own request type.
func retryable(req *http.Request, standard bool) contender {
	client := retryablehttp.NewClient()
	client.Logger = nil // it logs every request unless told not to
	client.RetryMax = attempts - 1
	client.HTTPClient = &http.Client{Transport: instant{}}
	if standard {
		c := client.StandardClient()
		return contender{"go-retryablehttp", requests(func() (*http.Response, error) { return c.Do(req) })}
	}
	again := value(retryablehttp.FromRequest(req))
	return contender{"go-retryablehttp Do", requests(func() (*http.Response, error) { return client.Do(again) })}
}

func failsafeClient(req *http.Request) contender {
	policy := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).Build()
	c := through(failsafehttp.NewRoundTripperWithExecutor(instant{}, failsafe.With(policy)), req)
	c.name = "failsafe retry"
	return c
}

func clients() []comparison {
	window := mete.Limit{N: plenty, Per: time.Second, Burst: plenty}
	const (
		copied  = "The copy of the request, which alone carries the context of the attempt, is one allocation of 352 bytes with the body that holds the permit, some 250 with the garbage it makes; the rest is the lock, three times, one reading of the clock and the gate."
		stamped = "Starts are stamped at the wire: the hooks of httptrace, which net/http offers no cheaper way to, are three more allocations and 160 bytes, and the stamp is a lock and a reading of the clock."
		watched = "The permit of a request that is cancelled is released even if nobody reads or closes its body: context.AfterFunc, some 400 of it, is three allocations and an entry in the set of the caller's context, made and removed."
		retries = "The peers neither bound nor count anything: they have no permit to hold until the body ends, and no queue to be fair in. They make no context, for which the request has to be copied: 352 bytes, more than all the rest."
	)
	return []comparison{
		{
			name: "metehttp: over the bare client", unit: "ns", why: copied,
			mete: gated(get), peers: []contender{through(instant{}, get)}, target: target{kind: over, bound: 400},
		},
		{
			name: "metehttp: the same, cancellable", unit: "ns", why: watched,
			mete: gated(getCancelable), peers: []contender{through(instant{}, getCancelable)}, target: target{kind: over, bound: 400},
		},
		{
			name: "metehttp: over the bare client, with a Window limit", unit: "ns", why: stamped,
			mete: gated(get, window), peers: []contender{through(instant{}, get)}, target: target{kind: over, bound: 900},
		},
		{
			name: "metehttp: beside clients that only retry", unit: "ns", why: retries,
			mete: gated(get), peers: []contender{retryable(get, true), failsafeClient(get)}, target: target{kind: atMostOf, bound: 1},
		},
		{
			name: "metehttp: beside them, with a Window limit", unit: "ns",
			mete: gated(get, window), peers: []contender{retryable(get, true), failsafeClient(get)}, target: target{kind: told},
		},
		{
			name: "metehttp: beside one request made again and again", unit: "ns",
			mete: gated(get), peers: []contender{retryable(get, false)}, target: target{kind: told},
		},
	}
}
