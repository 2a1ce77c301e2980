package quota_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete/quota"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func ExampleRetryAfter() {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"120", "Tue, 10 Mar 2026 12:02:00 GMT", "1.5", "0", "-1"} {
		delay, ok := quota.RetryAfter(http.Header{"Retry-After": {value}}, now)
		fmt.Println(value, "->", delay, ok)
	}
	// Output:
	// 120 -> 2m0s true
	// Tue, 10 Mar 2026 12:02:00 GMT -> 2m0s true
	// 1.5 -> 1.5s true
	// 0 -> 0s true
	// -1 -> 0s false
}

const none = -1 * time.Second

func testRetryAfter(t *testing.T, now time.Time, h http.Header, want time.Duration) {
	t.Helper()
	got, ok := quota.RetryAfter(h, now)
	if !ok {
		got = none
	}
	if got != want {
		t.Errorf("%q: got %v, want %v", h, got, want)
	}
}

// https://github.com/hashicorp/go-retryablehttp/issues/138: dates were
// ignored. https://github.com/denoland/std/issues/7299: "120" is seconds.
func TestHTTPDateForms(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"Thu, 01 Jan 2026 00:02:00 GMT":    2 * time.Minute,
		"Thursday, 01-Jan-26 00:02:00 GMT": 2 * time.Minute,
		"Thu Jan  1 00:02:00 2026":         2 * time.Minute,
		"120":                              2 * time.Minute,
		"Wed, 21 Oct 2015 07:28:00 GMT":    0,
		"Thu, 29 Feb 2024 00:00:00 GMT":    0,
		"Thu, 29 Feb 2026 00:00:00 GMT":    none,
		"Thu, 00 Jan 2026 00:02:00 GMT":    none,
		"Thu, 1 Jan 2026 00:02:00 GMT":     none,
		"Thu, 01 Jan 2026 24:00:00 GMT":    none,
		"Thu, 01 Jan 2026 0:02:00 GMT":     none,
		"Thu, 01 Jan 2026 00:02:00.5 GMT":  none,
		"Thu, 01 Jan 2026 00:02:00":        none,
		"Thu, 01 Jan 2026 00:02:00 -0030":  32 * time.Minute,
		"Thu, 01 Jan 2026 00:02:00 UT":     2 * time.Minute,
		"Thu, 01 Jan 2026 00:02:00 +2500":  none,
		"Mon Tue, 01 Jan 2026 00:02:00 Z":  none,
		"Thu Jan 01 00:02:00 2026":         2 * time.Minute,
		"Thu Jan 1 00:02:00 2026":          none,
	} {
		testRetryAfter(t, now, http.Header{"Retry-After": {value}}, want)
	}
}

// Every attempt is asked how long to stay away, and nearly none says.
func TestRetryAfterOfNoneIsCheap(t *testing.T) {
	h := http.Header{"Date": {"Tue, 10 Mar 2026 12:00:00 GMT"}, "Content-Type": {"text/plain"}, "X-Ratelimit-Limit": {"50"}}
	if n := testing.AllocsPerRun(100, func() { quota.RetryAfter(h, noon) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
