package stub

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultsForATime(t *testing.T) {
	bubble(t, Config{Latency: Latency{time.Second, time.Second}, Limits: []Limit{{50, time.Second}, {1000, time.Minute}}}, func(t *testing.T, s *Server, c *client) {
		took := func(want time.Duration) {
			t.Helper()
			if r := c.get("/"); r.took != want || r.status != 200 {
				t.Errorf("%d after %v, want 200 after %v", r.status, r.took, want)
			}
		}
		took(time.Second)
		c.fault(`{"latency":"2s","for":"10s"}`)
		took(2 * time.Second)
		time.Sleep(8 * time.Second)
		took(time.Second)

		c.fault(`{"outage":true,"for":"20s"}`)
		if r := c.get("/"); r.status != 503 || r.took != 0 {
			t.Errorf("outage: %+v", r)
		}
		if a := s.Audit(); a.Rejected != 0 {
			t.Error("an outage is no refusal")
		}
		c.fault(`{"outage":false}`)
		took(time.Second)

		c.fault(`{"knee":2,"latency":"100ms"}`)
		slowest := time.Duration(0)
		for _, r := range c.together(4) {
			slowest = max(slowest, r.took)
		}
		if slowest != 200*time.Millisecond {
			t.Errorf("twice the knee took %v, want 200ms", slowest)
		}
		time.Sleep(time.Minute)
		took(100 * time.Millisecond)
		c.fault(`{"clear":true}`)
		took(time.Second)
	})
}

func TestFaultLimit(t *testing.T) {
	bubble(t, Config{Limits: []Limit{{10, time.Second}, {1000, time.Minute}}}, func(t *testing.T, s *Server, c *client) {
		c.fault(`{"limit":"4/s","for":"5s"}`)
		if n := count(c.together(10), 200); n != 4 {
			t.Errorf("%d passed a limit of 4/s", n)
		}
		if a := s.Audit(); a.Limits["1s"] != 4 || a.Limits["1m0s"] != 1000 || a.Over["1s"] != 6 {
			t.Errorf("audit: %+v", a)
		}
		time.Sleep(5 * time.Second)
		if n := count(c.together(12), 200); n != 10 {
			t.Errorf("%d passed after the fault, want 10", n)
		}
		if a := s.Audit(); a.Limits["1s"] != 10 || a.MaxStarts["1s"] != 12 || a.Over["1s"] != 8 {
			t.Errorf("audit: %+v", a)
		}
		c.fault(`{"limit":"3/15s"}`) // a new period is added
		time.Sleep(15 * time.Second)
		if n := count(c.together(12), 200); n != 3 {
			t.Errorf("%d passed a limit of 3/15s", n)
		}
	})
}

func TestFaultDrop(t *testing.T) {
	bubble(t, Config{Latency: Latency{time.Minute, time.Minute}}, func(t *testing.T, s *Server, c *client) {
		var r reply
		var wg sync.WaitGroup
		wg.Go(func() { r = c.do("POST", "/", "once only") })
		synctest.Wait()
		c.fault(`{"drop":true}`)
		wg.Wait()
		if r.err == nil || r.took != 0 {
			t.Errorf("in flight when dropped: %+v", r)
		}
		synctest.Wait()
		if a := s.Audit(); a.Abandoned != 1 || a.InFlight != 0 {
			t.Errorf("audit: %+v", a)
		}
		if r := c.get("/"); r.status != 200 {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

func TestBadFaults(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		for body, says := range map[string]string{
			``:                             "empty",
			`{"latency":2}`:                "latency",
			`{"latncy":"2s"}`:              `unknown field "latncy"`,
			`{"latency":"2"}`:              "80ms..200ms",
			`{"latency":"2s","for":"10"}`:  `write "10s"`,
			`{"latency":"2s","for":"-1s"}`: `write "10s"`,
			`{"limit":"20"}`:               "say per what",
			`{"knee":-1}`:                  "must not be negative",
			`{}`:                           "changes nothing",
			`{"for":"2s"}`:                 "changes nothing",
			`{"drop":true} x`:              "follows",
			"{\n\"latency\"\n}":            "bad fault",
		} {
			r := c.do("POST", "/stub/faults", body)
			if r.status != 400 || !strings.Contains(r.body, says) || strings.Count(r.body, "\n") != 1 {
				t.Errorf("%s: %d %q, want one line that says %q", body, r.status, r.body, says)
			}
		}
		if r := c.get("/stub/faults"); r.status != 405 || r.header.Get("Allow") != "POST" {
			t.Errorf("%+v", r)
		}
		if r := c.get("/stub/x"); r.status != 404 {
			t.Errorf("%+v", r)
		}
		if a := s.Audit(); a.Requests != 0 || a.Connections != 0 {
			t.Errorf("the audit counts itself: %+v", a)
		}
	})
}
