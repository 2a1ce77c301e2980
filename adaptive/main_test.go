package adaptive

import (
	"flag"
	"os"
	"testing"

	"github.com/metehq/mete/internal/race"
)

func TestMain(m *testing.M) {
	if race.Enabled {
		_ = flag.Set("rapid.checks", "10") // a flag on the command line counts
	}
	os.Exit(m.Run())
}
