package config

import (
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/quota"
)

// presetWords are the dialects that are known.
var presetWords = quota.Providers()

// learnWords are what can become of the quotas that responses show.
var learnWords = []string{string(mete.LearnOff), string(mete.LearnObserve), string(mete.LearnCap), string(mete.LearnFollow)}

// preset decodes the name of a dialect.
func (d *decoder) preset(n *node, to *string) {
	name, ok := d.word(n, "preset")
	switch {
	case !ok:
	case slices.Contains(presetWords, name):
		*to = name
	case nearest(name, presetWords) != "":
		d.errorf(n, `%q is no dialect that mete knows (did you mean %q?)`, name, nearest(name, presetWords))
	default:
		d.errorf(n, "%q is no dialect that mete knows: leave preset out, or write one of %s", name, strings.Join(presetWords, ", "))
	}
}
