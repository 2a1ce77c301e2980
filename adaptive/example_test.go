package adaptive_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete/adaptive"
)

// A provider has 8 servers and takes 100 ms for a call; whatever is sent
// beyond that queues there. There is always something to send.
func Example() {
	l := adaptive.New(adaptive.Config{Initial: 4}, 0)
	type call struct {
		end    time.Duration
		ticket adaptive.Ticket
	}
	var calls []call // in the order in which they end
	var servers [8]time.Duration
	for now, n := time.Duration(0), 0; now < time.Minute+5*time.Second; {
		l.Step(now)
		for len(calls) < l.Limit() {
			server := &servers[n%len(servers)]
			*server = max(*server, now) + 100*time.Millisecond
			calls = append(calls, call{*server, l.Start(now, len(calls)+1)})
			n++
		}
		l.Blocked(now)
		now = calls[0].end
		l.Done(now, calls[0].ticket, adaptive.Success)
		calls = calls[1:]
	}
	s := l.State()
	fmt.Println(s.Permits, "permits, of which", int(s.Target+0.5), "to queue; calls alone take", s.Baseline)
	// Output: 13 permits, of which 4 to queue; calls alone take 100ms
}
