package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/runner"
)

func TestParseHalt(t *testing.T) {
	for _, tt := range []struct {
		text  string
		now   bool
		share float64
		count int64
	}{
		{"soon,fail=3%", false, 0.03, 0},
		{"now,fail=10", true, 0, 10},
		{"soon,fail=0.5%", false, 0.005, 0},
		{"now,fail=100%", true, 1, 0},
	} {
		h, err := runner.ParseHalt(tt.text)
		if err != nil || h.Now != tt.now || h.Share != tt.share || h.Count != tt.count {
			t.Errorf("%s: %+v, %v", tt.text, h, err)
		}
	}
	for _, text := range []string{
		"", "soon", "fail=3", "now,fail=", "now,fail=0", "now,fail=-1", "now,fail=0%", "now,fail=101%", "now,fail=NaN%",
		"now,fail=%", "now,fail=1.5", "later,fail=1", "now,success=1", "now, fail=1", "now,fail=1,", "now,fail=99999999999999999999",
	} {
		if h, err := runner.ParseHalt(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %+v, %v", text, h, err)
		}
	}
}

func FuzzParseHalt(f *testing.F) {
	for _, s := range []string{"soon,fail=3%", "now,fail=10", "now,fail=1e-320%", "soon,fail=+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := runner.ParseHalt(s)
		if err != nil {
			return
		}
		if (h.Count >= 1) == (h.Share > 0 && h.Share <= 1) {
			t.Errorf("%q: %+v", s, h)
		}
	})
}

// However many rows wait, exactly so many requests are made, repetitions
// included, and every row that has no record is counted as unfinished.
func TestMaxRequests(t *testing.T) {
	for _, max := range []int64{1, 7, 40, 79, 80, 81} {
		var n atomic.Int64
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1)%2 == 1 {
				w.WriteHeader(503)
			}
		})
		var rows []string
		for i := range 40 {
			rows = append(rows, fmt.Sprintf(`{"id":"%d","url":"%s/%d"}`, i, s.URL, i))
		}
		o := runner.Options{MaxRequests: max, Other: spec()}
		o.Other.Gate.Retry.Attempts = 100
		list, res := run(t, o, rows...)
		total := int64(len(list)) + res.Unfinished
		_, stopped := errors.AsType[*runner.Stopped](res.Err)
		// 40 rows whose every other answer is a failure take 79 or 80.
		if done := len(list) == 40; stopped == done || (stopped && n.Load() != max) || n.Load() > max {
			t.Errorf("max %d: %d requests, %d records, %v", max, n.Load(), len(list), res.Err)
		}
		if done := len(list) == 40; done && total != 40 {
			t.Errorf("max %d: %d records and %d unfinished", max, len(list), res.Unfinished)
		}
	}
}

// A deadline ends the admission, not what is in flight; an input that stands
// still does not hold it up.
func TestDeadline(t *testing.T) {
	began := make(chan struct{}, 1)
	s := serve(t, func(_ http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		time.Sleep(100 * time.Millisecond)
	})
	in, w := io.Pipe()
	defer w.Close()
	go func() {
		fmt.Fprintf(w, `{"id":"a","url":"%s/a"}`+"\n", s.URL)
		<-began
	}()
	o := runner.Options{Deadline: 80 * time.Millisecond}
	var out strings.Builder
	o.Journal = stream(&out)
	res := runTo(t, context.Background(), context.Background(), o, in)
	if _, ok := errors.AsType[*runner.Stopped](res.Err); !ok || !strings.Contains(res.Err.Error(), "--deadline 80ms is over") {
		t.Errorf("ended by %v", res.Err)
	}
	if err := o.Journal.Close(); err != nil || !strings.Contains(out.String(), `"id":"a"`) {
		t.Errorf("what was in flight has no record: %q, %v", out.String(), err)
	}
}
