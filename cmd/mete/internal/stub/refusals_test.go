package stub

import (
	"testing"
	"time"
)

// After each 429: how long the client stayed away, and what came then.
func TestRefusals(t *testing.T) {
	bubble(t, Config{Limits: []Limit{{1, time.Second}}}, func(t *testing.T, s *Server, c *client) {
		c.get("/")
		c.get("/")
		time.Sleep(10 * time.Millisecond)
		c.get("/") // was under way
		time.Sleep(1990 * time.Millisecond)
		for range 3 {
			c.get("/status/204")
			time.Sleep(500 * time.Millisecond)
		}
		r := s.Audit().Refusals
		if len(r) != 3 || r[0].QuietMS != 2000 || r[0].Seconds != [3]int64{2, 1, 0} || r[1].QuietMS != 1990 || r[2].QuietMS != 500 {
			t.Errorf("%+v", r)
		}
		s.Reset()
		if r := s.Audit().Refusals; r != nil {
			t.Errorf("after the reset: %+v", r)
		}
	})
}
