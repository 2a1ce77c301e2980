//go:build !linux

package input

import (
	"io"
	"os"
)

func openFile(path string) (io.ReadCloser, error) { return os.Open(path) }
