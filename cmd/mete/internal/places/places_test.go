package places

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestAll(t *testing.T) {
	all := All()
	if len(all) != 400 {
		t.Errorf("%d places, want 400", len(all))
	}
	names, countries, beyond := map[string]bool{}, map[string]bool{}, 0
	for _, p := range all {
		if !utf8.ValidString(p.Name) || p.Name == "" || strings.TrimSpace(p.Name) != p.Name {
			t.Errorf("name %q", p.Name)
		}
		for _, r := range p.Name {
			if !unicode.In(r, unicode.Letter, unicode.Mn) && !strings.ContainsRune(" .'’‘`-", r) {
				t.Errorf("%q has %q in it", p.Name, r)
			}
		}
		if len(p.Country) != 2 || strings.ToUpper(p.Country) != p.Country {
			t.Errorf("%s: country %q", p.Name, p.Country)
		}
		if key := strings.ToLower(p.Name); names[key] {
			t.Errorf("%s is there twice: the audit would call the second a repeat", p.Name)
		} else {
			names[key] = true
		}
		countries[p.Country] = true
		if strings.IndexFunc(p.Name, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			beyond++
		}
	}
	if len(countries) < 200 {
		t.Errorf("only %d countries", len(countries))
	}
	if share := float64(beyond) / float64(len(all)); share < 0.4 {
		t.Errorf("only %.0f %% of the names have letters beyond ASCII", 100*share)
	}
}

// CC BY 4.0 wants the source, the licence and the changes named with the data.
func TestAttribution(t *testing.T) {
	for _, want := range []string{"GeoNames", "https://creativecommons.org/licenses/by/4.0/", "Changed:"} {
		if !strings.Contains(table, want) {
			t.Errorf("places.tsv does not name %s", want)
		}
	}
}

func ExampleAll() {
	for _, p := range All()[:3] {
		fmt.Println(p.Name, p.Country)
	}
	// Output:
	// Rājshāhi BD
	// Savé BJ
	// San Salvador SV
}
