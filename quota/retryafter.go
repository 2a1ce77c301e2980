package quota

import (
	"net/http"
	"time"
)

// millisecondFields carry the delay that Retry-After rounds to seconds.
// Sources: Azure OpenAI and the OpenAI SDKs, Cosmos DB, the AWS SDKs.
var millisecondFields = []string{"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"}

// RetryAfter returns how long the server asks to wait, from the header alone:
// Retry-After in seconds or as a date, else X-RateLimit-Retry-After, refined by
// retry-after-ms, x-ms-retry-after-ms and x-amz-retry-after. now is the
// client's clock when the header arrived.
//
// ok says whether there was a valid value; malformed ones are ignored, and of
// several the longest counts. A date in the past is a delay of 0, which differs
// from none. The delay is in whole milliseconds, rounded up, within
// [0, MaxDelay], and dates are corrected by the server's own Date.
func RetryAfter(h http.Header, now time.Time) (delay time.Duration, ok bool) {
	for name := range h {
		if contains(name, "retry") { // as all of these do, and few headers have
			return newFields(h).retryAfter(now)
		}
	}
	return 0, false
}

func (f fields) retryAfter(now time.Time) (time.Duration, bool) {
	server := f.serverNow(now)
	delay, ok := f.longest("retry-after", time.Second, server)
	if !ok {
		delay, ok = f.longest("x-ratelimit-retry-after", time.Second, server)
	}
	var fine time.Duration
	precise := false
	for _, name := range millisecondFields {
		if d, ok := f.longest(name, time.Millisecond, server); ok {
			fine, precise = max(fine, d), true
		}
	}
	// The finer value stands for a rounded one; if it is shorter by more than
	// the rounding can explain, the two disagree and the longer one counts.
	if precise && (!ok || fine >= delay-time.Second) {
		return fine, true
	}
	return delay, ok
}

// longest returns the longest valid delay of a field.
func (f fields) longest(name string, unit time.Duration, server time.Time) (delay time.Duration, ok bool) {
	for _, s := range f.members(name) {
		d, valid := parseSpan(s, unit)
		if !valid {
			t, isDate := parseHTTPDate(s, server)
			if !isDate {
				continue
			}
			d = t.Sub(server)
		}
		delay, ok = max(delay, clampDelay(d)), true
	}
	return delay, ok
}
