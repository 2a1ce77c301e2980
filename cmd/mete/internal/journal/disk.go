package journal

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// syncDir forces the names in a folder to disk: without it, a file that was
// made or renamed can be gone after a power cut, its contents synced or not.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDirs makes path and the folders that lead to it; with sync, durably.
func makeDirs(path string, sync bool) error {
	err := os.Mkdir(path, 0o777)
	switch {
	case err == nil && sync:
		return syncDir(filepath.Dir(path))
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path:
		if err := makeDirs(filepath.Dir(path), sync); err != nil {
			return err
		}
		// Once: in /proc a folder is there and yet nothing can be made in it.
		if err = os.Mkdir(path, 0o777); errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err == nil && sync {
			return syncDir(filepath.Dir(path))
		}
	}
	return err
}

// createTemporary makes a new file in dir with the permissions that the user's
// umask leaves, which os.CreateTemp does not.
func createTemporary(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, temporary+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// temporary starts the name of every file that is not finished.
const temporary = "tmp-"

// install gives f its name: afterwards either the old file or the whole new one
// is there, with sync even if the power is cut. On an error, f is closed and
// removed.
func install(f *os.File, path string, sync bool) error {
	var err error
	if sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if sync {
		return syncDir(filepath.Dir(path))
	}
	return nil
}

// removeTemporaries removes what a killed process left unfinished.
func (j *Journal) removeTemporaries() error {
	for _, dir := range []string{j.side, j.bodies()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), temporary) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
