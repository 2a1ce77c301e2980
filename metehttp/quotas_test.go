package metehttp

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
)

// The quotas of few successes are read, and still no call too many is made.
func TestQuotasOfFewSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quota = 2000
		begun := time.Now()
		used, over := 0, 0
		f := &fake{answer: func(_ int, r *http.Request) (*http.Response, error) {
			left := time.Minute - time.Since(begun)%time.Minute
			if left == time.Minute {
				used = 0
			}
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
			if used++; used > quota {
				over++
				resp.StatusCode = 429
				resp.Header.Set("Retry-After", "1")
			}
			resp.Header.Set("X-Ratelimit-Limit", strconv.Itoa(quota))
			resp.Header.Set("X-Ratelimit-Remaining", strconv.Itoa(max(quota-used, 0)))
			resp.Header.Set("X-Ratelimit-Reset", strconv.Itoa(int(left/time.Second)))
			return resp, nil
		}}
		g := gate(t, mete.Config{MaxWait: -1})
		rt := &Transport{Gate: fixed(g), Base: f}
		for range quota + quota/2 {
			time.Sleep(time.Millisecond)
			if resp, err := rt.RoundTrip(request(t, t.Context(), "GET")); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
		}
		if d := time.Since(begun); over > 2 || d < time.Minute || d > 63*time.Second {
			t.Errorf("%d calls too many, %v", over, d)
		}
	})
}

// A success is judged by its names and its body without an allocation.
func TestPlainSuccessAllocatesNothing(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}, "X-Ratelimit-Remaining": {"5"}, "Date": {"x"}}
	body := []byte(`{"data":[` + strings.Repeat(`{"error":"none","status":"OK"},`, 100) + `1],"status":"OK","error":null}`)
	a := Attempt{Request: request(t, t.Context(), "GET"), Response: &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(nil)}, Body: body, SkipQuotas: true}
	if n := testing.AllocsPerRun(100, func() {
		if o := a.Outcome(); !o.Answered || o.Err != nil {
			t.Fatal(o)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	// What the body says counts all the same.
	a.Body = []byte(`{"status":"OVER_QUERY_LIMIT"}`)
	if o := a.Outcome(); !o.Throttled {
		t.Errorf("%+v", o)
	}
}
