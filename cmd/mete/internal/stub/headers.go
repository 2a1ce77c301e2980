package stub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// writeQuota sets the quota headers of the dialect. Dialects that know one
// limit only show the one with the least left.
func writeQuota(h http.Header, d Headers, all []standing, now time.Time) {
	if len(all) == 0 {
		return
	}
	least := all[0]
	for _, st := range all[1:] {
		if st.remaining < least.remaining {
			least = st
		}
	}
	n, left := strconv.FormatInt(least.limit.N, 10), strconv.FormatInt(least.remaining, 10)
	switch d {
	case IETF:
		var policy, state []string
		for _, st := range all {
			name := strconv.Quote(st.limit.String())
			policy = append(policy, fmt.Sprintf("%s;q=%d;w=%d", name, st.limit.N, ceilSeconds(st.limit.Per)))
			state = append(state, fmt.Sprintf("%s;r=%d;t=%d", name, st.remaining, ceilSeconds(st.full)))
		}
		h.Set("RateLimit-Policy", strings.Join(policy, ", "))
		h.Set("RateLimit", strings.Join(state, ", "))
	case OpenAI:
		h.Set("X-Ratelimit-Limit-Requests", n)
		h.Set("X-Ratelimit-Remaining-Requests", left)
		h.Set("X-Ratelimit-Reset-Requests", ceilMillis(least.full).String())
	case Anthropic:
		h.Set("Anthropic-Ratelimit-Requests-Limit", n)
		h.Set("Anthropic-Ratelimit-Requests-Remaining", left)
		h.Set("Anthropic-Ratelimit-Requests-Reset", ceilTime(now.Add(least.full)).Format(time.RFC3339))
	case GitHub:
		h.Set("X-Ratelimit-Limit", n)
		h.Set("X-Ratelimit-Remaining", left)
		h.Set("X-Ratelimit-Used", strconv.FormatInt(least.limit.N-least.remaining, 10))
		h.Set("X-Ratelimit-Reset", strconv.FormatInt(ceilTime(now.Add(least.full)).Unix(), 10))
		h.Set("X-Ratelimit-Resource", "core")
	}
}

// writeRetryAfter says when one more would be accepted. All forms round up: a
// client that comes back then is never early.
func writeRetryAfter(h http.Header, form RetryAfter, d Headers, wait time.Duration, now time.Time) {
	switch form {
	case NoRetryAfter:
		return
	case Date:
		h.Set("Retry-After", ceilTime(now.Add(wait)).Format(http.TimeFormat))
	default:
		h.Set("Retry-After", strconv.FormatInt(ceilSeconds(wait), 10))
	}
	if d == OpenAI {
		h.Set("Retry-After-Ms", strconv.FormatInt(ceilMillis(wait).Milliseconds(), 10))
	}
}

// refusal is the body of a refusal in the dialect.
func refusal(d Headers) string {
	switch d {
	case OpenAI:
		return `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}` + "\n"
	case Anthropic:
		return `{"type":"error","error":{"type":"rate_limit_error","message":"Rate limit reached"}}` + "\n"
	case GitHub:
		return `{"message":"API rate limit exceeded"}` + "\n"
	}
	return `{"error":"above the limit"}` + "\n"
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func ceilMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func ceilTime(t time.Time) time.Time {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC()
}
