package rate_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/metehq/mete/rate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, limit rate.Limit) *rate.Limiter {
	t.Helper()
	l, err := rate.New(limit)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
