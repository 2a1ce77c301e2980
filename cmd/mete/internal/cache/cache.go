// Package cache keeps answers of providers in a folder, so that a request that
// was answered is not paid for twice.
//
// An entry is a file of its own, named by the hash of its request. It is
// written beside its place and renamed, and holds a checksum of all that is in
// it, so several processes may use one folder at a time, and whatever a crash or
// a disk makes of a file, it is an answer as it was stored or none. That is why
// it is files and not a database: no lock to wait for, and nothing to repair.
package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Key names a request: a hash of all that its answer depends on.
type Key [sha256.Size]byte

// Entry is a stored answer.
type Entry struct {
	Status  int             `json:"status"`
	At      time.Time       `json:"at"`
	Headers []record.Header `json:"headers"`
	Body    []byte          `json:"-"`
}

// Cache is a folder of answers. It is safe for use by several goroutines and
// processes.
type Cache struct {
	dir string
	ttl time.Duration
}

// Open makes the folder if there is none. Answers older than ttl are not given
// any more; they stay on the disk until they are replaced.
func Open(dir string, ttl time.Duration) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Cache{dir: dir, ttl: ttl}, nil
}

// first is the first line of an entry; the number is the version of the format.
const first = "mete cache 1\n"

func (c *Cache) path(k Key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(c.dir, name[:2], name[2:])
}

// Get returns the stored answer to a request. Whatever is wrong with it, it is
// as if there were none.
func (c *Cache) Get(k Key) (*Entry, bool) {
	data, err := os.ReadFile(c.path(k))
	if err != nil {
		return nil, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(first))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	sum, rest := rest[:sha256.Size], rest[sha256.Size:]
	if want := checksum(k, rest); !bytes.Equal(sum, want[:]) {
		return nil, false
	}
	head, body, ok := bytes.Cut(rest, []byte("\n"))
	e := &Entry{}
	if !ok || json.Unmarshal(head, e) != nil {
		return nil, false
	}
	// One from the future was stored by another clock.
	if age := time.Since(e.At); age > c.ttl || age < -time.Hour {
		return nil, false
	}
	e.Body = body
	return e, true
}

// Put stores an answer in place of an earlier one. It is not forced to the disk:
// what a crash leaves of it is no answer.
func (c *Cache) Put(k Key, e *Entry) error {
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	rest := append(append(head, '\n'), e.Body...)
	sum := checksum(k, rest)
	path := c.path(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(first), sum[:], rest} {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("an answer could not be stored: %w", err)
	}
	return nil
}

// checksum covers the key too: a file under another name is no answer.
func checksum(k Key, rest []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(k[:])
	h.Write(rest)
	h.Sum(sum[:0])
	return sum
}
