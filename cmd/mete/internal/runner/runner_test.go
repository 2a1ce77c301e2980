package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spec is what a place gets that nobody said anything about.
func spec() runner.Spec {
	return runner.Spec{
		Gate:     mete.Config{Concurrency: 4, Retry: mete.Retry{Attempts: 3, Delay: time.Millisecond}},
		Timeout:  config.Timeout{Connect: time.Second, Attempt: 10 * time.Second},
		MaxPause: time.Hour,
	}
}

// at is a spec for a provider of its own.
func at(base string) *runner.Spec {
	s := spec()
	s.Base, _ = url.Parse(base)
	return &s
}

// run sends rows and returns their records by id, and how the run ended.
func run(t *testing.T, o runner.Options, rows ...string) (map[string]*record.Record, runner.Result) {
	t.Helper()
	var out bytes.Buffer
	o.Journal = journal.Stream(&out)
	res := runTo(t, context.Background(), context.Background(), o, strings.NewReader(strings.Join(rows, "\n")))
	if err := o.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	list := map[string]*record.Record{}
	for line := range bytes.Lines(out.Bytes()) {
		r, err := record.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		list[r.ID] = r
	}
	return list, res
}

func runTo(t *testing.T, admit, hard context.Context, o runner.Options, in io.Reader) runner.Result {
	t.Helper()
	source, err := input.Open(nil, in, input.Options{Format: "jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	o.Source, o.Files, o.Total = source, 1, -1
	if o.Other.Gate.Concurrency == 0 {
		o.Other = spec()
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	r, err := runner.New(admit, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Run(hard)
}

func serve(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s
}

// Two providers at one place: a row goes to the one it names, a redirect stays
// there, and a row without a name goes to the first by name, every time.
func TestTwoProvidersAtOnePlace(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
		}
	})
	for range 20 {
		o := runner.Options{Providers: map[string]*runner.Spec{"a": at(s.URL), "b": at(s.URL), "c": at(s.URL)}}
		list, _ := run(t, o,
			`{"id":"c","provider":"c","url":"`+s.URL+`/from"}`,
			`{"id":"none","url":"`+s.URL+`/x"}`)
		if r := list["c"]; len(r.Tries) != 2 || r.Tries[1].Provider != "c" {
			t.Fatalf("the redirect changed the provider: %+v", r.Tries)
		}
		if r := list["none"]; r.Provider != "a" {
			t.Fatalf("a row without a provider went to %s", r.Provider)
		}
	}
}

// A response that stands still is cut off, whatever it has sent before, and
// counts as a time-out, not as one that somebody cancelled.
func TestTimeouts(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server never sees the client leave
		if r.URL.Path == "/half" {
			_, _ = w.Write([]byte("half"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	o := runner.Options{Other: spec()}
	o.Other.Timeout.Idle = 30 * time.Millisecond
	o.Other.Gate.Retry.Attempts = 2
	list, _ := run(t, o,
		`{"id":"idle","url":"`+s.URL+`/half"}`,
		`{"id":"row","url":"`+s.URL+`/never","timeout":"20ms"}`,
		`{"id":"post","url":"`+s.URL+`/never","timeout":"20ms","body":"x"}`)
	for _, tt := range []struct {
		id, message string
		kind        record.Kind
		attempts    int
	}{
		{"idle", "the response stood still for too long", record.Timeout, 2},
		{"row", "the attempt took too long", record.Timeout, 2},
		{"post", "the attempt took too long", record.UnknownOutcome, 1},
	} {
		r := list[tt.id]
		if r.OK || r.Error.Kind != tt.kind || r.Error.Message != tt.message || r.Attempts != tt.attempts {
			t.Errorf("%s: %d attempts, %+v", tt.id, r.Attempts, r.Error)
		}
	}
}

// A unit that is limited and that a row does not cost: said in its record.
func TestRowWithoutACost(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	o := runner.Options{Other: spec()}
	l, err := mete.ParseRate("100/s")
	if err != nil {
		t.Fatal(err)
	}
	l.Name, l.Unit = "tokens", "tokens"
	o.Other.Gate.Limits = []mete.Limit{l}
	list, _ := run(t, o,
		`{"id":"free","url":"`+s.URL+`/1"}`,
		`{"id":"paid","url":"`+s.URL+`/2","cost":{"tokens":3}}`,
		`{"id":"huge","url":"`+s.URL+`/3","cost":{"tokens":101}}`)
	if r := list["free"]; r.OK || !strings.Contains(r.Error.Message, `"cost": {"tokens": n}`) {
		t.Errorf("free: %+v", r.Error)
	}
	if r := list["huge"]; r.OK || r.Error.Kind != record.InvalidRow {
		t.Errorf("huge: %+v", r.Error)
	}
	if r := list["paid"]; !r.OK {
		t.Errorf("paid: %+v", r.Error)
	}
}

// A disk that takes nothing: the run ends after the grace and no later, with
// the error, and starts nothing more.
func TestOutputFails(t *testing.T) {
	n := 0
	s := serve(t, func(http.ResponseWriter, *http.Request) { n++ })
	var rows []string
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"url":"%s/%d"}`, s.URL, i))
	}
	o := runner.Options{Other: spec(), Grace: 50 * time.Millisecond}
	o.Other.Gate.Concurrency = 1
	full, err := journal.Open("/dev/full", journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Journal = full
	res := runTo(t, context.Background(), context.Background(), o, strings.NewReader(strings.Join(rows, "\n")))
	if res.Err == nil || !strings.Contains(res.Err.Error(), "no space left") || res.Unfinished == 0 {
		t.Errorf("%+v", res)
	}
	var unwritten *journal.UnwrittenError
	if err := full.Close(); !errors.As(err, &unwritten) || unwritten.Records != n {
		t.Errorf("close: %v after %d answers", err, n)
	}
	if n > 2 {
		t.Errorf("%d requests", n)
	}
}

// goneWriter is a pipe whose reader has gone.
type goneWriter struct{}

func (goneWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// However a run ends, nothing is left running; goleak looks when all is over.
func TestEnds(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stuck":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/pause":
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(429)
		case "/tomorrow":
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
		}
	})
	defer close(release)
	row := func(path string) string { return `{"url":"` + s.URL + path + `"}` }
	soon := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background()) // as a signal ends it: without a deadline
		time.AfterFunc(50*time.Millisecond, cancel)
		return ctx, cancel
	}
	forever := context.Background()

	t.Run("admission ends during a pause", func(t *testing.T) {
		admit, cancel := soon()
		defer cancel()
		o := runner.Options{Journal: journal.Stream(io.Discard)}
		defer o.Journal.Close()
		if res := runTo(t, admit, forever, o, strings.NewReader(row("/pause"))); res.Unfinished != 1 || res.Err != nil {
			t.Errorf("%+v", res)
		}
	})
	t.Run("what is in flight is given up after the grace", func(t *testing.T) {
		admit, cancel := soon()
		defer cancel()
		o := runner.Options{Journal: journal.Stream(io.Discard), Grace: 20 * time.Millisecond}
		defer o.Journal.Close()
		if res := runTo(t, admit, forever, o, strings.NewReader(row("/stuck"))); res.Unfinished != 1 || res.Err != nil {
			t.Errorf("%+v", res)
		}
	})
	t.Run("all ends at once", func(t *testing.T) {
		admit, cancel := soon()
		defer cancel()
		o := runner.Options{Journal: journal.Stream(io.Discard), Grace: time.Hour}
		defer o.Journal.Close()
		if res := runTo(t, admit, admit, o, strings.NewReader(row("/stuck"))); res.Unfinished != 1 || res.Err != nil {
			t.Errorf("%+v", res)
		}
	})
	t.Run("a provider is given up", func(t *testing.T) {
		o := runner.Options{Journal: journal.Stream(io.Discard)}
		defer o.Journal.Close()
		res := runTo(t, forever, forever, o, strings.NewReader(row("/tomorrow")+"\n"+row("/x")))
		if len(res.Parked) != 1 || res.Unfinished < 1 || res.Err != nil {
			t.Errorf("%+v", res)
		}
	})
	t.Run("the reader has gone", func(t *testing.T) {
		o := runner.Options{Journal: journal.Stream(goneWriter{}), Grace: 20 * time.Millisecond}
		res := runTo(t, forever, forever, o, strings.NewReader(row("/1")))
		if res.Err == nil {
			t.Errorf("%+v", res)
		}
		if o.Journal.Close() == nil {
			t.Error("closed without an error")
		}
	})
	t.Run("a file is resumed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "out.jsonl")
		for i := range 2 {
			out, err := journal.Open(path, journal.Options{Resume: true, Fsync: journal.Never})
			if err != nil {
				t.Fatal(err)
			}
			res := runTo(t, forever, forever, runner.Options{Journal: out}, strings.NewReader(row("/1")+"\n"+row("/2")))
			if err := out.Close(); err != nil || res.Skipped != int64(2*i) || res.Unfinished != 0 {
				t.Errorf("%+v, %v", res, err)
			}
		}
	})
}
