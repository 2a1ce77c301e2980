package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"path"
	"path/filepath"
)

// ErrNoBodies is returned by NewBody for a stream, which has no place for
// files.
var ErrNoBodies = errors.New("bodies need an output file")

// Body is a response body on its way to a file. Either Commit or Discard must
// be called; the second call does nothing.
type Body struct {
	j    *Journal
	f    *os.File
	sum  hash.Hash
	size int64
}

// NewBody starts the file of one body.
func (j *Journal) NewBody() (*Body, error) {
	if j.side == "" {
		return nil, ErrNoBodies
	}
	if err := makeDirs(j.bodies(), j.sync); err != nil {
		return nil, err
	}
	f, err := createTemporary(j.bodies())
	if err != nil {
		return nil, err
	}
	return &Body{j: j, f: f, sum: sha256.New()}, nil
}

// Write adds to the body.
func (b *Body) Write(p []byte) (int, error) {
	n, err := b.f.Write(p)
	b.sum.Write(p[:n])
	b.size += int64(n)
	return n, err
}

// Size returns how many bytes were written.
func (b *Body) Size() int64 { return b.size }

// Commit gives the file its name and returns it, relative to the folder of the
// output, as it belongs into the record. The file is on the disk by then, so
// append the record afterwards: a record never names a file that a power cut
// takes away. Equal bodies share one file.
func (b *Body) Commit() (string, error) {
	if b.f == nil {
		return "", os.ErrClosed
	}
	f := b.f
	b.f = nil
	name := hex.EncodeToString(b.sum.Sum(nil))
	dir := filepath.Join(b.j.bodies(), name[:2], name[2:4])
	full := filepath.Join(dir, name)
	relative := path.Join(filepath.Base(b.j.side), "bodies", name[:2], name[2:4], name)
	if info, err := os.Stat(full); err == nil && info.Size() == b.size {
		return relative, errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err := makeDirs(dir, b.j.sync); err != nil {
		return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := install(f, full, b.j.sync); err != nil {
		return "", err
	}
	return relative, nil
}

// Discard removes an unfinished body.
func (b *Body) Discard() error {
	if b.f == nil {
		return nil
	}
	f := b.f
	b.f = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (j *Journal) bodies() string { return filepath.Join(j.side, "bodies") }
