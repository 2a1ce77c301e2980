//go:build !race

package rate_test

const raceDetector = false
