package stub

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Two of 2/s are taken 300 ms apart; the third is refused at 400 ms. One more
// would pass at 1 s, and all of it is there again at 1.3 s. The bubble's clock
// starts at 2000-01-01T00:00:00Z.
func TestHeaders(t *testing.T) {
	for _, test := range []struct {
		dialect Headers
		form    RetryAfter
		want    map[string]string
		body    string
	}{
		{NoHeaders, Seconds, map[string]string{"Retry-After": "1", "RateLimit": "", "X-RateLimit-Limit": ""}, `{"error":"above the limit"}`},
		{NoHeaders, Date, map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:01 GMT"}, ""},
		{NoHeaders, NoRetryAfter, map[string]string{"Retry-After": ""}, ""},
		{IETF, Seconds, map[string]string{
			"RateLimit-Policy": `"2/s";q=2;w=1, "100/m";q=100;w=60`,
			"RateLimit":        `"2/s";r=0;t=1, "100/m";r=98;t=60`}, ""},
		{OpenAI, Seconds, map[string]string{
			"X-RateLimit-Limit-Requests": "2", "X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "900ms",
			"Retry-After": "1", "Retry-After-Ms": "600"}, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
		{OpenAI, NoRetryAfter, map[string]string{"Retry-After": "", "Retry-After-Ms": ""}, ""},
		{Anthropic, Seconds, map[string]string{
			"Anthropic-RateLimit-Requests-Limit": "2", "Anthropic-RateLimit-Requests-Remaining": "0",
			"Anthropic-RateLimit-Requests-Reset": "2000-01-01T00:00:02Z"}, ""},
		{GitHub, Seconds, map[string]string{
			"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Used": "2",
			"X-RateLimit-Reset": "946684802", "X-RateLimit-Resource": "core"}, `{"message":"API rate limit exceeded"}`},
	} {
		cfg := Config{Limits: []Limit{{2, time.Second}, {100, time.Minute}}, Headers: test.dialect, RetryAfter: test.form}
		bubble(t, cfg, func(t *testing.T, s *Server, c *client) {
			if r := c.get("/"); r.status != 200 || r.header.Get("Retry-After") != "" {
				t.Errorf("%+v", r)
			}
			time.Sleep(300 * time.Millisecond)
			c.get("/")
			time.Sleep(100 * time.Millisecond)
			r := c.get("/")
			if r.status != 429 {
				t.Fatalf("%+v", r)
			}
			for name, want := range test.want {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s, %s: %s is %q, want %q", test.dialect, test.form, name, got, want)
				}
			}
			if test.body != "" && r.body != test.body+"\n" {
				t.Errorf("%s: body %s", test.dialect, r.body)
			}
		})
	}
}

// With a fixed window the reset is the end of the clock's period.
func TestHeadersOfAFixedWindow(t *testing.T) {
	bubble(t, Config{Limits: []Limit{{1, time.Minute}}, Window: Fixed, Headers: GitHub}, func(t *testing.T, s *Server, c *client) {
		time.Sleep(90 * time.Second)
		c.get("/")
		if r := c.get("/"); r.header.Get("X-RateLimit-Reset") != "946684920" || r.header.Get("Retry-After") != "30" {
			t.Errorf("%v", r.header)
		}
	})
}

// As a plain handler in somebody else's server it audits as well, with stamps
// from the handler.
func TestAsAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Limits: []Limit{{1, time.Second}}})
		p := newPipes()
		server := &http.Server{Handler: s}
		go server.Serve(p)
		transport := &http.Transport{DialContext: p.dial}
		c := &http.Client{Transport: transport}
		for _, want := range []int{200, 429} {
			res, err := c.Get("http://stub/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%d, want %d", res.StatusCode, want)
			}
		}
		if a := s.Audit(); a.Requests != 2 || a.Rejected != 1 || a.MaxStarts["1s"] != 2 {
			t.Errorf("audit: %+v", a)
		}
		transport.CloseIdleConnections()
		server.Close()
		s.Close()
	})
}
