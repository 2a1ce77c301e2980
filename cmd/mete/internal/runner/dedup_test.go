package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

func stream(w io.Writer) *journal.Journal { return journal.Stream(w) }

// Many rows of few requests: one call each, whatever the order in which they
// meet, and a record for every row that names the one that was sent.
func TestDedup(t *testing.T) {
	var n atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if strings.HasSuffix(r.URL.Path, "/3") {
			w.WriteHeader(404)
		}
	})
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/%d"}`, i, s.URL, i%5))
	}
	list, res := run(t, runner.Options{Dedup: runner.DedupRequest}, rows...)
	if n.Load() != 5 || len(list) != 500 || res.Unfinished != 0 || res.Err != nil {
		t.Fatalf("%d requests, %d records, %+v", n.Load(), len(list), res)
	}
	for i := range 500 {
		r := list[fmt.Sprint(i)]
		want := fmt.Sprint(i % 5)
		if i < 5 {
			want = ""
		}
		if r.DupOf != want || r.OK == (i%5 == 3) || r.Status == 0 || (r.Error != nil) == r.OK {
			t.Errorf("row %d: ok %v, status %d, of %q, %+v", i, r.OK, r.Status, r.DupOf, r.Error)
		}
	}
}

// Rows that wait for one that is given up are unfinished, as it is: they have
// no record, and a resume sends them.
func TestDedupOfUnfinished(t *testing.T) {
	hard, giveUp := context.WithCancel(context.Background())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		giveUp()
		<-r.Context().Done()
	})
	var rows []string
	for i := range 10 {
		rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/"}`, i, s.URL))
	}
	var out bytes.Buffer
	o := runner.Options{Dedup: runner.DedupRequest, Journal: stream(&out)}
	admit, stop := context.WithCancel(context.Background())
	context.AfterFunc(hard, stop)
	res := runTo(t, admit, hard, o, strings.NewReader(strings.Join(rows, "\n")))
	if err := o.Journal.Close(); err != nil || out.Len() > 0 {
		t.Errorf("records of what has no answer: %s, %v", out.String(), err)
	}
	if res.Unfinished < 1 || res.Unfinished > 10 {
		t.Errorf("%d unfinished", res.Unfinished)
	}
}
