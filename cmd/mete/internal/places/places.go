// Package places is a list of real place names, for a demonstration that needs
// requests with something in them. See places.tsv for the source and licence.
package places

import (
	_ "embed"
	"strings"
)

// Place is a populated place.
type Place struct {
	Name    string // in Latin letters, many of them beyond ASCII
	Country string // ISO 3166 code of two letters
}

//go:embed places.tsv
var table string

// All returns the places, always in the same order. The slice is the caller's.
func All() []Place {
	var all []Place
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, country, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, Place{name, country})
	}
	return all
}
