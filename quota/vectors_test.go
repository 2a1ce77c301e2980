package quota_test

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

// vector is one response with what must be learned from it.
type vector struct {
	ID          string
	Provider    string
	Status      int
	RequestTime time.Time `json:"request_time"`
	Headers     map[string]lines
	Body        string
	Expect      expectation
}

// lines is one field line or several.
type lines []string

func (l *lines) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		*l = lines{""}
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]string)(l))
}

type expectation struct {
	RetryAfter *int64 `json:"retry_after_ms"`
	Throttled  bool
	Terminal   bool
	Quotas     []expectedQuota
	Note       string
}

type expectedQuota struct {
	Name, Unit       string
	Limit, Remaining *int64
	Window           *int64     `json:"window_ms"`
	Reset            *time.Time `json:"reset_at"`
}

func readVectors(t testing.TB) []vector {
	data, err := os.ReadFile("testdata/quota_headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func (v vector) response() quota.Response {
	h := make(http.Header)
	for name, lines := range v.Headers {
		for _, line := range lines {
			h.Add(name, line)
		}
	}
	return quota.Response{Provider: v.Provider, Status: v.Status, Header: h, Body: []byte(v.Body), Now: v.RequestTime}
}

func expect(r quota.Reading, note string) expectation {
	e := expectation{Throttled: r.Throttled, Terminal: r.Terminal, Quotas: []expectedQuota{}, Note: note}
	if r.HasRetryAfter {
		e.RetryAfter = new(r.RetryAfter.Milliseconds())
	}
	for _, q := range r.Quotas {
		x := expectedQuota{Name: q.Name, Unit: q.Unit}
		if q.HasLimit {
			x.Limit = &q.Limit
		}
		if q.HasRemaining {
			x.Remaining = &q.Remaining
		}
		if q.Window > 0 {
			x.Window = new(q.Window.Milliseconds())
		}
		if !q.Reset.IsZero() {
			x.Reset = &q.Reset
		}
		e.Quotas = append(e.Quotas, x)
	}
	return e
}

// The vectors were adapted from the documentation of some forty providers and
// from bugs of clients; each says in its note what it is about.
func TestVectors(t *testing.T) {
	vectors := readVectors(t)
	if len(vectors) != 248 {
		t.Errorf("%d vectors", len(vectors))
	}
	for _, v := range vectors {
		got := expect(quota.Parse(v.response()), v.Expect.Note)
		if !reflect.DeepEqual(got, v.Expect) {
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(v.Expect)
			t.Errorf("%s:\n got %s\nwant %s", v.ID, g, w)
		}
	}
}
