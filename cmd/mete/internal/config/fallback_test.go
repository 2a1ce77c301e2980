package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/metehq/mete/cmd/mete/internal/config"
)

func TestFallback(t *testing.T) {
	for _, tt := range []struct{ providers, want string }{
		{"a: {url: http://h.test, fallback: [b, c]}\n  b: {url: http://h.test, fallback: [c]}\n  c: {url: http://h.test}", ""},
		{"a: {url: http://h.test, fallback: [b]}\n  b: {url: http://h.test, fallback: [c]}\n  c: {url: http://h.test, fallback: [a]}", `f:5:38: fallback loop: a -> b -> c -> a`},
		{"a: {url: http://h.test, fallback: [c, b]}\n  b: {url: http://h.test, fallback: [a]}\n  c: {url: http://h.test}", `f:4:38: fallback loop: a -> b -> a`},
		{"a: {url: http://h.test, fallback: [a]}", `f:3:38: fallback loop: a -> a`},
		{"a: {url: http://h.test, fallback: [geo-omm]}\n  geo-osm: {url: http://h.test}", `f:3:38: fallback "geo-omm" is not a provider of this file (did you mean "geo-osm"?)`},
		{"a: {url: http://h.test, fallback: [x]}", `f:3:38: fallback "x" is not a provider of this file (known here: a)`},
		{"a: {url: http://h.test, fallback: [b, b]}\n  b: {url: http://h.test}", `f:3:41: fallback "b" is there already`},
		{"a: {url: http://h.test, fallback: b}\n  b: {url: http://h.test}", `f:3:37: fallback must be a list, not text: write [other]`},
		{"a: {url: http://h.test, fallback: [\"${FIVE}\"]}", `f:3:38: an entry of fallback must be written out`},
	} {
		f, err := config.Parse("f", []byte("version: 1\nproviders:\n  "+tt.providers+"\n"), testEnv)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s\n%v", tt.providers, err)
		case tt.want == "" && !slices.Equal(f.Provider("a").Fallback, []string{"b", "c"}):
			t.Errorf("read %v", f.Provider("a").Fallback)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("got %v\nwant %s", err, tt.want)
		case tt.want != "" && strings.Count(err.Error(), "f:") > strings.Count(err.Error(), "\n")+1:
			t.Errorf("more than one error: %v", err)
		}
	}
}

// A file is refused if and only if some provider can reach itself.
func TestFallbackLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "providers")
		reach := make([][]bool, n)
		var text strings.Builder
		text.WriteString("version: 1\nproviders:\n")
		for i := range n {
			reach[i] = make([]bool, n)
			to := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 2, rapid.ID[int]).Draw(t, "fallback")
			var names []string
			for _, j := range to {
				reach[i][j] = true
				names = append(names, fmt.Sprintf("p%d", j))
			}
			fmt.Fprintf(&text, "  p%d: {url: http://h.test, fallback: [%s]}\n", i, strings.Join(names, ", "))
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		loops := false
		for i := range n {
			loops = loops || reach[i][i]
		}
		_, err := config.Parse("f", []byte(text.String()), testEnv)
		if (err != nil) != loops {
			t.Fatalf("loops %v, but %v\n%s", loops, err, text.String())
		}
	})
}
