package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// takeLock takes the lock file. It is never removed: a process that holds the
// lock of a removed file holds nothing.
func (j *Journal) takeLock() error {
	path := filepath.Join(j.side, "lock")
	j.lock = flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	ok, err := j.lock.TryLock()
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if !ok {
		b, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return &LockedError{Path: j.path, PID: pid}
	}
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o666); err != nil {
		j.lock.Close()
		return err
	}
	return nil
}
