package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// answering is a server that answers with a status, and counts what it is asked.
func answering(t *testing.T, status int, header ...string) (*httptest.Server, *atomic.Int64) {
	n := &atomic.Int64{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n.Add(1)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.RequestURI())
	}), n
}

func withFallback(base string, names ...string) *runner.Spec {
	s := at(base)
	s.Fallback = names
	return s
}

// noting gathers the notes of a run.
func noting(o *runner.Options) func() string {
	var mu sync.Mutex
	var lines []string
	o.Note = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, s)
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

// What a failure of the first provider leads to, with 3 attempts for all.
func TestFallbackByOutcome(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		first        http.HandlerFunc
		here, there  int // attempts
		kind         record.Kind
	}{
		{"ok", "GET", status(200), 1, 0, ""},
		{"the row's fault", "GET", status(404), 1, 0, record.HTTP4xx},
		{"the row's fault too", "POST", status(422), 1, 0, record.HTTP4xx},
		{"server error", "GET", status(500), 2, 1, ""},
		{"server error after a POST", "POST", status(500), 1, 0, record.HTTP5xx},
		{"throttle of a POST", "POST", status(429, "Retry-After", "0"), 2, 1, ""},
		{"long throttle", "POST", status(429, "Retry-After", "120"), 1, 1, ""},
		{"cut off", "GET", cut, 2, 1, ""},
		{"nobody knows", "POST", cut, 1, 0, record.UnknownOutcome},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var here, there atomic.Int64
			a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				here.Add(1)
				tt.first(w, r)
			})
			b := serve(t, func(w http.ResponseWriter, r *http.Request) { there.Add(1) })
			o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
			list, res := run(t, o, `{"id":"1","method":"`+tt.method+`","body":"x","url":"`+a.URL+`/p"}`)
			r := list["1"]
			if r == nil || int(here.Load()) != tt.here || int(there.Load()) != tt.there || res.Unfinished > 0 {
				t.Fatalf("%d attempts here and %d there, want %d and %d: %+v %+v", here.Load(), there.Load(), tt.here, tt.there, res, r)
			}
			if len(r.Tries) != tt.here+tt.there || r.Fallback != tt.there || r.OK != (tt.kind == "") || r.Error != nil && r.Error.Kind != tt.kind {
				t.Fatalf("%+v", r)
			}
			answered := "a"
			if tt.there > 0 {
				answered = "b"
			}
			if r.Provider != answered || r.Tries[len(r.Tries)-1].Provider != answered || r.Tries[0].Provider != "a" {
				t.Fatalf("answered by %s: %+v", r.Provider, r.Tries)
			}
		})
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func cut(w http.ResponseWriter, _ *http.Request) {
	c, _, _ := w.(http.Hijacker).Hijack()
	c.Close()
}

// One budget of attempts for all providers, however many there are; and one
// attempt is one attempt.
func TestFallbackSharesAttempts(t *testing.T) {
	for attempts, want := range map[int]string{1: "a", 2: "ab", 3: "abc", 4: "aabc", 6: "aaaabc"} {
		s, _ := answering(t, 500)
		o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{
			"a": withFallback(s.URL, "b"), "b": withFallback(s.URL, "c"), "c": at(s.URL)}}
		o.Providers["a"].Gate.Retry.Attempts = attempts
		list, _ := run(t, o, `{"id":"1","url":"`+s.URL+`/p"}`)
		got := ""
		for _, try := range list["1"].Tries {
			got += try.Provider
		}
		if got != want || list["1"].Error.Kind != record.HTTP5xx {
			t.Errorf("%d attempts: %s, want %s (%+v)", attempts, got, want, list["1"].Error)
		}
	}
}

// What was never sent may go elsewhere even if it must: a POST to a port where
// nobody listens.
func TestFallbackAfterConnect(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	b, n := answering(t, 200)
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(gone.URL, "b"), "b": at(b.URL)}}
	notes := noting(&o)
	list, _ := run(t, o, `{"id":"1","method":"POST","body":"x","url":"`+gone.URL+`/p"}`, `{"id":"2","url":"`+gone.URL+`/q"}`)
	if r := list["1"]; !r.OK || r.Fallback != 1 || n.Load() != 2 {
		t.Fatalf("%+v", r)
	}
	if notes() != "rows of a go to b: connect" {
		t.Errorf("notes: %s", notes())
	}
}

// The path moves to the base of the provider that is asked, with its headers
// and its credentials and nobody else's; the Idempotency-Key stays.
func TestFallbackRequest(t *testing.T) {
	var first, second *http.Request
	a := serve(t, func(w http.ResponseWriter, r *http.Request) { first = r; w.WriteHeader(503) })
	b := serve(t, func(w http.ResponseWriter, r *http.Request) { second = r })
	at1, at2 := withFallback(a.URL+"/v1/", "b"), at(b.URL+"/api/v2")
	at1.Auth = config.Auth{Query: "key", Value: hidden(t, "secret-of-a")}
	at1.Headers = []config.Header{{Name: "X-Of-A", Value: hidden(t, "1")}}
	at2.Auth = config.Auth{Header: "Authorization", Value: hidden(t, "Bearer b")}
	at2.Headers = []config.Header{{Name: "X-Version", Value: hidden(t, "2")}}
	at1.Gate.Retry.Attempts, at1.Idempotent = 2, true
	o := runner.Options{Provider: "a", IdempotencyHeader: "Idempotency-Key", Providers: map[string]*runner.Spec{"a": at1, "b": at2},
		Headers: []config.Header{{Name: "X-Token", Value: hidden(t, "for-a")}}}
	list, _ := run(t, o, `{"id":"1","method":"POST","body":"x","headers":{"Cookie":"of=a","X-Mine":"yes"},"url":"`+a.URL+`/v1/ge%2Fo?q=1&key=mine&z"}`)
	if !list["1"].OK {
		t.Fatalf("%+v", list["1"])
	}
	if got := second.URL.RequestURI(); got != "/api/v2/ge%2Fo?q=1&z" {
		t.Errorf("asked for %s", got)
	}
	if list["1"].URL != b.URL+"/api/v2/ge%2Fo?q=1&z" {
		t.Errorf("recorded %s", list["1"].URL)
	}
	for name, want := range map[string]string{"Authorization": "Bearer b", "X-Version": "2", "X-Mine": "yes", "Cookie": "", "X-Of-A": "", "X-Token": ""} {
		if got := second.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if key := first.Header.Get("Idempotency-Key"); key == "" || key != second.Header.Get("Idempotency-Key") {
		t.Errorf("keys %q and %q", key, second.Header.Get("Idempotency-Key"))
	}
	if !strings.Contains(first.URL.RawQuery, "key=secret-of-a") || first.Header.Get("X-Token") != "for-a" {
		t.Errorf("the first was asked %s", first.URL)
	}
}

// A provider that asks to stay away loses its rows to the next one, those that
// wait at its gate too, and nothing is unfinished: no exit code 4.
func TestFallbackOfAParkedProvider(t *testing.T) {
	a, asked := answering(t, 429, "Retry-After", "7200") // more than max_pause: parked
	b, n := answering(t, 200)
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
	notes := noting(&o)
	var rows []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/%d"}`, i, a.URL, i))
	}
	list, res := run(t, o, rows...)
	if len(list) != 60 || n.Load() != 60 || asked.Load() > 4 || res.Unfinished != 0 {
		t.Fatalf("%d records, %d asked of b, %d of a, %+v", len(list), n.Load(), asked.Load(), res)
	}
	for _, r := range list {
		if r.Provider != "b" || r.Fallback != 1 || !r.OK {
			t.Fatalf("%+v", r)
		}
	}
	if strings.Count(notes(), "rows of a go to b") != 1 {
		t.Errorf("notes: %s", notes())
	}
}

// All are away: the rows wait for the one that opens first, and end there.
func TestFallbackAllAway(t *testing.T) {
	away := func(pause time.Duration) (*httptest.Server, *atomic.Int64) {
		var began atomic.Int64
		n := &atomic.Int64{}
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			began.CompareAndSwap(0, time.Now().UnixNano())
			if left := pause - time.Since(time.Unix(0, began.Load())); left > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(int(left.Seconds()+1)))
				w.WriteHeader(429)
				return
			}
			n.Add(1)
		}), n
	}
	a, _ := away(30 * time.Second)
	b, n := away(time.Second)
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
	for _, s := range o.Providers {
		s.MaxWait = 500 * time.Millisecond
	}
	list, res := run(t, o, `{"id":"1","url":"`+a.URL+`/p"}`, `{"id":"2","url":"`+a.URL+`/q"}`)
	if len(list) != 2 || n.Load() != 2 || res.Unfinished != 0 {
		t.Fatalf("%+v, %d answered, %+v", list, n.Load(), res)
	}
}

// --fallback is for the rows of every provider, also of a place without a name.
func TestFallbackByFlag(t *testing.T) {
	a, _ := answering(t, 503)
	b, n := answering(t, 200)
	o := runner.Options{Bodies: runner.BodiesAuto, Fallback: []string{"b"}, Providers: map[string]*runner.Spec{"b": at(b.URL + "/base"), "c": withFallback(a.URL+"/x", "c2"), "c2": at(a.URL)}}
	list, _ := run(t, o, `{"id":"1","url":"`+a.URL+`/x/p?q"}`, `{"id":"2","provider":"c","url":"`+a.URL+`/x/p"}`, `{"id":"3","url":"`+b.URL+`/base"}`)
	for id, want := range map[string]string{"1": "/base/p?q", "2": "/base/p", "3": "/base"} {
		if r := list[id]; !r.OK || r.Provider != "b" || string(r.Body) != "GET "+want {
			t.Errorf("row %s: %s from %s %+v", id, r.Body, r.Provider, r.Error)
		}
	}
	if n.Load() != 3 {
		t.Errorf("b was asked %d times", n.Load())
	}
}

// After a redirect of a request that must not be repeated the row stays where
// it is: the first provider has done something for it.
func TestFallbackAfterRedirect(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			http.Redirect(w, r, "/result", http.StatusSeeOther)
			return
		}
		w.WriteHeader(503)
	})
	b, n := answering(t, 200)
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
	list, _ := run(t, o, `{"id":"1","method":"POST","body":"x","url":"`+a.URL+`/p"}`)
	if r := list["1"]; r.OK || n.Load() != 0 || r.Provider != "a" {
		t.Fatalf("%+v, b was asked %d times", r, n.Load())
	}
}

// A spent budget sends rows to the fallback, and without one ends them
// resumable; what was spent stays spent in the next run.
func TestSpentBudget(t *testing.T) {
	a, n := answering(t, 200)
	b, m := answering(t, 200)
	state := t.TempDir()
	spec := func(names ...string) *runner.Spec {
		s := withFallback(a.URL, names...)
		s.Gate.State = state
		s.Gate.Limits = []mete.Limit{{Name: "calls", N: 3, Calendar: "month", Budget: true}}
		return s
	}
	var rows []string
	for i := range 8 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/%d"}`, i, a.URL, i))
	}
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": spec("b"), "b": at(b.URL)}}
	notes := noting(&o)
	list, res := run(t, o, rows...)
	if len(list) != 8 || n.Load() != 3 || m.Load() != 5 || res.Unfinished != 0 {
		t.Fatalf("%d records, %d and %d asked, %+v", len(list), n.Load(), m.Load(), res)
	}
	if !strings.HasPrefix(notes(), "rows of a go to b: the budget calls of a is spent; it opens again at ") || strings.Contains(notes(), "\n") {
		t.Errorf("notes: %s", notes())
	}
	list, res = run(t, runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": spec()}}, rows...)
	if len(list) != 0 || n.Load() != 3 || res.Unfinished == 0 || len(res.Parked) != 0 || len(res.Spent) != 1 {
		t.Fatalf("without a fallback: %d records, %d asked, %+v", len(list), n.Load(), res)
	}
}

// hidden is a value that came from a variable.
func hidden(t *testing.T, value string) config.Secret {
	t.Helper()
	f, err := config.Parse("f", []byte("version: 1\nproviders: {a: {url: http://h.test, headers: {x: \"${V}\"}}}"), func(string) (string, bool) { return value, true })
	if err != nil {
		t.Fatal(err)
	}
	return f.Providers[0].Headers[0].Value
}

// A quota that its provider calls used up, and a credential that it refuses,
// send rows elsewhere.
func TestFallbackOfWhatIsRefused(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"no money": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(429)
			fmt.Fprint(w, `{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"no money"}}`)
		},
		"no credential": status(401),
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(t, refuse)
			b, n := answering(t, 200)
			o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
			o.Providers["a"].Auth = config.Auth{Header: "Authorization", Value: hidden(t, "Bearer a")}
			var rows []string
			for i := range 30 {
				rows = append(rows, fmt.Sprintf(`{"id":"%d","method":"POST","body":"x","url":"%s/%d"}`, i, a.URL, i))
			}
			list, res := run(t, o, rows...)
			if len(list) != 30 || n.Load() != 30 || res.Unfinished != 0 {
				t.Fatalf("%d records, %d asked of b, %+v", len(list), n.Load(), res)
			}
			for _, r := range list {
				if !r.OK || r.Provider != "b" {
					t.Fatalf("%+v", r)
				}
			}
		})
	}
}

// While the breaker of a provider is open its rows go elsewhere at once.
func TestFallbackOfAnOpenBreaker(t *testing.T) {
	a, asked := answering(t, 500)
	b, n := answering(t, 200)
	o := runner.Options{Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
	o.Providers["a"].Gate.Concurrency = 1
	o.Providers["a"].Gate.Breaker = breaker.Config{Failures: 1, Calls: 2, Open: time.Hour}
	var rows []string
	for i := range 20 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/%d"}`, i, a.URL, i))
	}
	list, res := run(t, o, rows...)
	if len(list) != 20 || n.Load() != 20 || asked.Load() > 8 || res.Unfinished != 0 {
		t.Fatalf("%d records, %d asked of b, %d of a, %+v", len(list), n.Load(), asked.Load(), res)
	}
}

// The fuller tests of stored answers are in testdata/script/cache.txt.
func TestCacheFindsTheFallback(t *testing.T) {
	store, err := cache.Open(t.TempDir(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a, asked := answering(t, 503)
	b, n := answering(t, 200)
	row := `{"id":"1","method":"POST","body":"x","url":"` + a.URL + `/p"}`
	for _, want := range []string{"miss", "hit"} {
		o := runner.Options{Bodies: runner.BodiesAuto, Cache: store, Idempotent: true, IdempotencyHeader: "Idempotency-Key",
			Provider: "a", Providers: map[string]*runner.Spec{"a": withFallback(a.URL, "b"), "b": at(b.URL)}}
		list, _ := run(t, o, row)
		if r := list["1"]; !r.OK || r.Cache != want || r.Provider != "b" || r.Fallback != 1 || string(r.Body) != "POST /p" {
			t.Fatalf("want a %s: %+v", want, r)
		}
	}
	if asked.Load() != 2 || n.Load() != 1 {
		t.Errorf("%d and %d requests", asked.Load(), n.Load())
	}
}
