//go:build race

package rate_test

// raceDetector says that every access to memory is looked at, at ten times the
// time.
const raceDetector = true
