//go:build !race

// Package race tells tests of one goroutine that the race detector, which makes
// them ten times as slow and finds nothing in them, is on: then they try less.
package race

// Enabled says whether the race detector is on.
const Enabled = false
