package runner

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/metehq/mete/cmd/mete/internal/config"
	"github.com/metehq/mete/cmd/mete/internal/input"
)

// The attempts of a request share its header, so hiding the key from net/http
// must leave that as it is.
func TestHideKeyLeavesTheHeader(t *testing.T) {
	q := &request{method: "POST", url: &url.URL{Scheme: "http", Host: "h.test"}, header: http.Header{"Idempotency-Key": {"k"}, "A": {"b"}}}
	for _, safe := range []bool{false, true, false} {
		req, err := q.http(t.Context(), safe)
		if err != nil {
			t.Fatal(err)
		}
		_, shown := req.Header["Idempotency-Key"]
		hidden := false
		for name := range req.Header {
			hidden = hidden || name == "idempotency-key"
		}
		if shown != safe || hidden == safe || req.Header.Get("A") != "b" {
			t.Errorf("safe %v: %v", safe, req.Header)
		}
	}
	if q.header.Get("Idempotency-Key") != "k" || len(q.header) != 2 {
		t.Errorf("the request's own header is now %v", q.header)
	}
}

// A row is checked twice, when the input is scanned and when it is sent: that
// must not cost what sending does.
func TestCheckIsCheap(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "h.test", Path: "/a"}
	o := &Options{Headers: []config.Header{{Name: "X-A"}}}
	row := &input.Row{ID: "a", Method: "GET", URL: u}
	n := testing.AllocsPerRun(100, func() {
		if err := o.Check(row); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2 { // of the place's name
		t.Errorf("%v allocations", n)
	}
}
