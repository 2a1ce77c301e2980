package quota

import (
	"bytes"
	"strings"
	"time"
)

// phrases announce a delay in a sentence. Sources: OpenAI "Please try again in
// 6m0s.", Gemini "Please retry in 36.9s.", Azure OpenAI "retry after 37 seconds".
var phrases = [][]byte{
	[]byte("try again in "), []byte("try again after "), []byte("retry in "), []byte("retry after "),
}

// textDelay finds the longest delay that a body speaks of.
func textDelay(body []byte) (delay time.Duration, ok bool) {
	text := bytes.ToLower(firstPart(body))
	for _, phrase := range phrases {
		for rest := text; ; {
			at := bytes.Index(rest, phrase)
			if at < 0 {
				break
			}
			rest = rest[at+len(phrase):]
			if d, found := spokenDelay(string(rest[:min(len(rest), 64)])); found {
				delay, ok = max(delay, clampDelay(d)), true
			}
		}
	}
	return delay, ok
}

var spokenUnits = map[string]time.Duration{
	"millisecond": time.Millisecond, "second": time.Second, "sec": time.Second,
	"minute": time.Minute, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// spokenDelay reads "37 seconds" or "6m0s" from the start of s. A number
// without a unit could be anything.
func spokenDelay(s string) (time.Duration, bool) {
	s = strings.TrimLeft(s, " ")
	if n, rest, ok := scanDecimal(s); ok {
		word, _ := cutWord(strings.TrimLeft(rest, " "))
		if unit, ok := spokenUnits[strings.TrimSuffix(word, "s")]; ok {
			return time.Duration(n.times(uint64(unit))), true
		}
		if rest != "" && rest[0] == ' ' && len(word) <= 2 {
			s = s[:len(s)-len(rest)] + rest[1:] // "5 s"
		}
	}
	d, rest, ok := scanGoDuration(s)
	word, _ := cutWord(rest)
	return d, ok && word == ""
}

// cutWord splits the lower-case letters off the start of s.
func cutWord(s string) (word, rest string) {
	i := 0
	for i < len(s) && 'a' <= s[i] && s[i] <= 'z' {
		i++
	}
	return s[:i], s[i:]
}
