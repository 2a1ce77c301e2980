//go:build !linux

package main

import "time"

// callerTime is the time that has passed, where nothing better is to be had.
func callerTime() time.Duration { return time.Since(process) }
