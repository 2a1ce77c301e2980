package runner

import (
	"time"

	"github.com/metehq/mete"
)

// diagnosis says what set the pace between two looks at the gates; nil before
// is since they were made. With several providers it is that of the one whose
// queue was blocked longest. It is empty if nothing was called.
func diagnosis(before, now map[*provider]mete.Stats) string {
	var slow *provider
	var most time.Duration
	attempts := int64(0)
	for p, s := range now {
		blocked := time.Duration(0)
		for bound, d := range s.Blocked {
			blocked += d - before[p].Blocked[bound]
		}
		attempts += s.Attempts
		if slow == nil || blocked > most || blocked == most && p.name < slow.name {
			slow, most = p, blocked
		}
	}
	if slow == nil || attempts == 0 {
		return ""
	}
	text := mete.Diagnose(before[slow], now[slow])
	if len(now) > 1 {
		text = slow.name + ": " + text
	}
	return text
}
