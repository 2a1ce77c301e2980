package metehttp

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// perHost is a client with a gate per place over a fake network.
func perHost(t *testing.T, cfg mete.Config, f *fake) (*mete.Set, *http.Client) {
	t.Helper()
	set, err := mete.NewSet(mete.SetConfig{Gate: cfg})
	if err != nil {
		t.Fatal(err)
	}
	rt := NewSet(set, 10)
	rt.Base = f
	return set, &http.Client{Transport: rt}
}

// Every hop of a redirect is admitted on its own, where it goes, after the
// permit of the hop before was given back (vmfunc/sif#333). Credentials do not
// travel to another host.
func TestRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		set, c := perHost(t, mete.Config{Concurrency: 1, MaxWait: -1, Limits: []mete.Limit{mete.Per(1, time.Second)}}, &fake{answer: func(_ int, r *http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond)
			if r.URL.Path == "/end" {
				mu.Lock()
				at = append(at, time.Now())
				mu.Unlock()
				for _, name := range []string{"Authorization", "Cookie"} {
					if r.Header.Get(name) != "" {
						t.Errorf("%s went to %s", name, r.URL.Host)
					}
				}
				return status(200), nil
			}
			// a sends to b and b to a.
			other := map[string]string{"a.test": "b.test", "b.test": "a.test"}[r.URL.Host]
			return status(302, "Location: http://"+other+"/end"), nil
		}})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				host := []string{"a.test", "b.test"}[i%2]
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/", nil)
				req.Header.Set("Authorization", "Bearer x")
				req.Header.Set("Cookie", "a=b")
				resp, err := c.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
		wg.Wait()
		if n := most(at, time.Second); len(at) != 20 || n > 2 { // one for each host
			t.Errorf("%d of %d in a second", n, len(at))
		}
		for _, g := range set.Gates() {
			if g.Stats().Attempts != 20 {
				t.Errorf("%s: %d attempts", g.Name(), g.Stats().Attempts)
			}
			idle(t, g)
		}
	})
}

// A loop ends after ten hops, and does not wait for itself.
func TestRedirectLoop(t *testing.T) {
	set, c := perHost(t, mete.Config{Concurrency: 1}, &fake{answer: func(int, *http.Request) (*http.Response, error) {
		return status(302, "Location: http://a.test/"), nil
	}})
	_, err := c.Get("http://a.test/")
	if err == nil || !strings.Contains(err.Error(), "stopped after 10 redirects") {
		t.Error(err)
	}
	g := set.Gates()[0]
	if g.Stats().Attempts != 10 {
		t.Errorf("%d attempts", g.Stats().Attempts)
	}
	idle(t, g)
}

// One place has one gate however it is spelt (zalando/skipper#1911,
// linkerd/linkerd2-proxy#4605), and the Host header changes nothing
// (projectdiscovery/nuclei#7301). The request keeps its spelling.
func TestOnePlaceOneGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		set, c := perHost(t, mete.Config{Limits: []mete.Limit{mete.Per(1, time.Second)}}, &fake{answer: func(_ int, r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.URL.Host)
			return status(200), nil
		}})
		start := time.Now()
		for _, u := range []string{"HTTP://EXAMPLE.test", "http://example.test:80/", "http://example.test./", "http://u:p@example.test", "http://Example.Test:080"} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", u, nil)
			req.Host = "other" + u[len(u)-1:] + ".test"
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if d := time.Since(start); len(set.Gates()) != 1 || d < 4*time.Second {
			t.Errorf("%d gates, 5 calls at 1/s in %v", len(set.Gates()), d)
		}
		if want := "EXAMPLE.test example.test:80 example.test. example.test Example.Test:080"; strings.Join(seen, " ") != want {
			t.Errorf("sent to %v", seen)
		}
		for _, u := range []string{"https://example.test", "https://example.test:443"} {
			resp, err := c.Get(u)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if len(set.Gates()) != 2 {
			t.Errorf("%d gates", len(set.Gates()))
		}
		for _, g := range set.Gates() {
			if strings.Contains(g.Name(), "u:p") {
				t.Errorf("credentials in %q", g.Name())
			}
		}
	})
}
