//go:build !unix

package mete

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
