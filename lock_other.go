//go:build !unix

package mete

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

// lockFile has no lock to take on this system: two processes on one provider
// are not found out.
func lockFile(*os.File) error { return nil }
