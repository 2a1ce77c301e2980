package metehttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metehq/mete"
)

func gate(t testing.TB, cfg mete.Config) *mete.Gate {
	t.Helper()
	cfg.Name = "test"
	g, err := mete.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPermitIsHeldToTheEndOfTheBody(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer srv.Close()
	g := gate(t, mete.Config{Concurrency: 1, Limits: []mete.Limit{mete.Per(1000, time.Second)}, Timeout: time.Minute})
	c := &http.Client{Transport: New(g)}
	for range 3 {
		resp, err := c.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if n := g.Stats().InUse; n != 1 {
			t.Errorf("before the body is read: %d in use", n)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || string(text) != "hello" {
			t.Errorf("%q, %v", text, err)
		}
		if n := g.Stats().InUse; n != 0 {
			t.Errorf("after the body was read: %d in use", n)
		}
		resp.Body.Close()
	}
	c.CloseIdleConnections()
}
