package meter

import (
	"testing"
	"time"
)

// The window after the one that was spoken of is not believed for longer than
// any other statement, however long it is said to be.
func TestNextWindowIsDoubtedToo(t *testing.T) {
	a := NewAllowance()
	a.Say(0, Remainder{Most: 0, Reset: time.Second, Limit: 1, Window: 277 * time.Hour})
	now := 2 * time.Second
	a.Take(now, 1, true)
	if at := a.Ready(now, 1); at > now+Doubt {
		t.Errorf("one unit waits %v", at-now)
	}
}
