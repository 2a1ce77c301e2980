package quota_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

func testRetryAfterValues(t *testing.T, values map[string]time.Duration) {
	t.Helper()
	for value, want := range values {
		testRetryAfter(t, noon, http.Header{"Retry-After": {value}}, want)
	}
}

// https://github.com/openai/openai-agents-python/issues/4022: "inf" slept for
// ever. strconv.ParseFloat accepts all of these as well.
func TestOpenAIAgents4022_FloatSyntax(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"inf": none, "Infinity": none, "NaN": none, "1e30": none, "1e3": none, "0x1p-2": none, "1_000": none,
		".5": none, "5.": none, "+30": none, "-1": none, "-0": none, "\u0663\u0660": none, "30s ago": none, "30 s": none,
	})
}

// https://github.com/hashicorp/go-retryablehttp/pull/297: 9223372037 seconds
// became -292 years, and the retry came at once.
// https://github.com/urllib3/urllib3/issues/3743: 9999999999.
// https://github.com/go-resty/resty/issues/1178: the product wrapped around.
func TestRetryableHTTP297_Overflow(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"9223372037": quota.MaxDelay, "9999999999": quota.MaxDelay, "9223372036854775807": quota.MaxDelay,
		"18446744073709551616": quota.MaxDelay, "99999999999999999999": quota.MaxDelay,
		strings.Repeat("9", 1000): quota.MaxDelay, "9999999999999999h9999999999999999h": quota.MaxDelay,
		"0." + strings.Repeat("9", 1000): time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":  quota.MaxDelay,
	})
}

// https://github.com/openai/openai-python/issues/3555,
// https://github.com/curl/curl/issues/7676: a day is a day; whether to wait
// that long is not decided here.
func TestOpenAI3555_LongDelay(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"120": 2 * time.Minute, "121": 121 * time.Second, "86400": 24 * time.Hour,
	})
}

// https://github.com/opensearch-project/data-prepper/issues/6928: decimal
// seconds were ignored.
func TestDataPrepper6928_DecimalSeconds(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"299.997": 299997 * time.Millisecond, "1.5": 1500 * time.Millisecond, "0.0004": time.Millisecond,
		"4.35": 4350 * time.Millisecond, "1.1": 1100 * time.Millisecond,
	})
}

// https://github.com/open-telemetry/opamp-go/issues/283,
// https://github.com/openai/openai-java/issues/878: the wait until a date in
// the past was negative. https://github.com/nodejs/undici/issues/5519: 0 was
// taken for absent.
func TestOpAMP283_PastDateIsZero(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Mon, 01 Jan 0001 00:00:00 GMT": 0, "0": 0, "0.0": 0, "": none,
	})
}

// time.Parse and http.ParseTime read the names of other zones as an offset of
// zero, which for PST is eight hours early: https://github.com/golang/go/issues/9617.
func TestGo9617_ZoneNames(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{
		"Tue, 10 Mar 2026 12:00:30 PST":      none,
		"Tuesday, 10-Mar-26 12:00:30 PST":    none,
		"Tue, 10 Mar 2026 12:00:30 UTC":      30 * time.Second,
		"Tue, 10 Mar 2026 13:00:30 +0100":    30 * time.Second,
		"Tuesday, 10-Mar-26 04:00:30 -0800":  30 * time.Second,
		"Tue, 10 Mar 2026 12:00:30 Atlantis": none,
	})
}

// The SDK of Anthropic for Go ignores delays of 60 s and more and retries after
// at most 8 s, although the documentation says that earlier retries fail.
func TestAnthropicSDK_MinuteIsKept(t *testing.T) {
	testRetryAfterValues(t, map[string]time.Duration{"59": 59 * time.Second, "60": time.Minute, "3600": time.Hour})
}

// https://github.com/kubescape/kubevuln/issues/637: half a second until a date
// became 0.
func TestKubevuln637_SubSecondDate(t *testing.T) {
	h := http.Header{"Retry-After": {"Tue, 10 Mar 2026 12:00:01 GMT"}}
	testRetryAfter(t, noon.Add(500*time.Millisecond), h, 500*time.Millisecond)
}

// https://github.com/hashicorp/go-retryablehttp/issues/138: only one line and
// one form were read. Go's Header.Get sees the first line only.
func TestSeveralLines(t *testing.T) {
	h := http.Header{"Retry-After": {"5", "Tue, 10 Mar 2026 12:00:40 GMT, 20"}, "retry-after": {"30"}}
	testRetryAfter(t, noon, h, 40*time.Second)
}

// https://github.com/atlassian-api/atlassian-python-api/issues/1602: a server
// whose clock is ahead made the delay too long or negative.
func TestAtlassian1602_ClockSkew(t *testing.T) {
	for date, want := range map[string]time.Duration{
		"Tue, 10 Mar 2026 12:10:00 GMT": 30 * time.Second,
		"Tue, 10 Mar 2026 12:10:00 PST": 630 * time.Second, // not a date
	} {
		testRetryAfter(t, noon, http.Header{"Date": {date}, "Retry-After": {"Tue, 10 Mar 2026 12:10:30 GMT"}}, want)
	}
}

func parse(status int, body string, header ...string) quota.Reading {
	h := make(http.Header)
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return quota.Parse(quota.Response{Status: status, Header: h, Body: []byte(body), Now: noon})
}

// https://github.com/zalando/riptide/issues/632 and others: an epoch was taken
// for a delay of 50 years, and durations were ignored.
func TestRiptide632_ResetForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"6m0s":                          6 * time.Minute,
		"30":                            30 * time.Second,
		"1773144060":                    time.Minute,
		"1773144060000":                 time.Minute,
		"1773144060000000":              time.Minute,
		"1773144060000000000":           time.Minute,
		"1773143000":                    0,
		"100000000000000000000":         none,
		"-5":                            none,
		"garbage":                       none,
		"P1DT2H":                        26 * time.Hour,
		"P1Y":                           none,
		"PT":                            none,
		"P1DT":                          none,
		"PT1S1M":                        none,
		"2026-03-10T12:01Z":             time.Minute,
		"2026-03-10T12:01:00":           none,
		"Tue, 10 Mar 2026 12:01:00 GMT": time.Minute,
		"Tue Mar 10 2026 13:01:00 GMT+0100 (Central European Standard Time)": time.Minute,
		"Tue Mar 10 2026 12:01:00 GMT":                                       none,
	} {
		r := parse(200, "", "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", value)
		got := none
		if reset := r.Quotas[0].Reset; !reset.IsZero() {
			got = reset.Sub(noon)
		}
		if got != want || r.HasRetryAfter {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

// https://github.com/octokit/plugin-throttling.js/issues/566 and 594: a 403 is
// a throttle with a hint and a lack of permission without one.
func TestOctokit566_Forbidden(t *testing.T) {
	for name, c := range map[string]struct {
		reading   quota.Reading
		throttled bool
		delay     time.Duration
	}{
		"hint":        {parse(403, "", "Retry-After", "60"), true, time.Minute},
		"none":        {parse(403, ""), false, none},
		"secondary":   {parse(403, `{"message":"You have exceeded a Secondary Rate Limit"}`), true, time.Minute},
		"room":        {parse(403, `{}`, "X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "9"), false, none},
		"no room":     {parse(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"), true, 9 * time.Second},
		"503":         {parse(503, ""), false, none},
		"503 and 0 s": {parse(503, "", "Retry-After", "0"), true, 0},
		"429":         {parse(429, ""), true, none},
		"200":         {parse(200, "", "Retry-After", "5"), false, none},
	} {
		delay := none
		if c.reading.HasRetryAfter {
			delay = c.reading.RetryAfter
		}
		if c.reading.Throttled != c.throttled || delay != c.delay {
			t.Errorf("%s: %+v", name, c.reading)
		}
	}
}

// Codes are for errors: in the data of a success they mean nothing.
func TestCodesInData(t *testing.T) {
	for _, body := range []string{
		`[{"errorCode":"REQUEST_LIMIT_EXCEEDED"},{"error":"ratelimited"}]`,
		`{"policyName":"DAILY"}`,
		`{"message":"API rate limit exceeded"}`,
		`{"errors":[{"code":88}]}`,
		`{"data":{"error":"ratelimited"}}`,
		`{"retry_after":7}`,
		`{"error":"ratelimited"} {}`,
		`please retry after 5 seconds`,
	} {
		if r := parse(200, body); r.Throttled || r.Terminal || r.HasRetryAfter {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

// https://community.shopify.dev/t/8456: the wait follows from the cost.
func TestShopifyCost(t *testing.T) {
	r := parse(200, `{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":101,
		"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":10,"restoreRate":50.0}}}}`)
	q := r.Quotas[0]
	if !r.Throttled || r.RetryAfter != 2*time.Second || q.Limit != 1000 || q.Remaining != 10 || q.Unit != "points" ||
		q.Window != 20*time.Second || q.Reset.Sub(noon) != 19800*time.Millisecond {
		t.Errorf("%+v", r)
	}
}

func TestDelayInText(t *testing.T) {
	for body, want := range map[string]time.Duration{
		"Please try again in 6m0s.":               6 * time.Minute,
		"try again in 2 minutes":                  2 * time.Minute,
		"Retry after 1 second, or retry in 3 s.":  3 * time.Second,
		"retry in 36.96s":                         36960 * time.Millisecond,
		"retry after 5min":                        5 * time.Minute,
		"retry after 30":                          none,
		"retry after 5 attempts":                  none,
		"try again in -5s":                        none,
		"try again in 5parsecs":                   none,
		"try again in 99999999999999999999 hours": quota.MaxDelay,
		"try again in ":                           none,
	} {
		r := parse(429, body)
		got := none
		if r.HasRetryAfter {
			got = r.RetryAfter
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", body, got, want)
		}
	}
}

// A grouped number could be a list as well, so it says nothing.
func TestGroupedNumber(t *testing.T) {
	r := parse(200, "", "X-RateLimit-Limit", "1,000", "X-RateLimit-Remaining", "12,7")
	if q := r.Quotas[0]; q.HasLimit || q.Remaining != 7 {
		t.Errorf("%+v", q)
	}
}

// Without a provider a field that only one sends tells the dialect.
func TestProviderIsInferred(t *testing.T) {
	q := parse(200, "", "Anthropic-Ratelimit-Tokens-Limit", "8000").Quotas[0]
	if q.Window != time.Minute || !q.Bucket || q.Unit != "tokens" {
		t.Errorf("%+v", q)
	}
}

// Prisjakt counts a reset in milliseconds, which no magnitude can tell.
func TestProfileResetUnit(t *testing.T) {
	h := http.Header{"X-Ratelimit-Reset": {"600000"}}
	r := quota.Parse(quota.Response{Provider: "prisjakt", Status: 429, Header: h, Now: noon})
	if r.RetryAfter != 10*time.Minute {
		t.Errorf("%+v", r)
	}
}
