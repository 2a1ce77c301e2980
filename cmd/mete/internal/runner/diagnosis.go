package runner

import (
	"time"

	"github.com/metehq/mete"
)

// lately is what the gates said three seconds ago, or as soon after as it is
// known: long enough for a verdict, and short enough for a change to be told
// within five.
func (t *Tally) lately(now time.Time) sample {
	i := len(t.samples) - 1
	for i > 0 && now.Sub(t.samples[i].at) < 3*time.Second {
		i--
	}
	return t.samples[i]
}

// diagnosis says what set the pace between two looks at the gates; nil before
// is since they were made. With several that were called it is that of the one
// whose queue was blocked longest. It is empty if nothing was called.
func diagnosis(before, now map[*provider]mete.Stats) string {
	var slow *provider
	var most time.Duration
	called := 0
	for p, s := range now {
		if !asked(s) {
			continue
		}
		called++
		blocked := time.Duration(0)
		for bound, d := range s.Blocked {
			blocked += d - before[p].Blocked[bound]
		}
		if slow == nil || blocked > most || blocked == most && p.name < slow.name {
			slow, most = p, blocked
		}
	}
	if slow == nil {
		return ""
	}
	text := mete.Diagnose(before[slow], now[slow])
	if called > 1 {
		text = slow.name + ": " + text
	}
	return text
}

// asked reports whether anything was called at a gate, or waits there.
func asked(s mete.Stats) bool { return s.Attempts > 0 || s.InUse > 0 || s.Waiting > 0 }
