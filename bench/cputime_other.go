//go:build !unix

package main

import "time"

// processorTime is the time that has passed, where nothing better is to be had.
func processorTime() time.Duration { return time.Since(process) }
