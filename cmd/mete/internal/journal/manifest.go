package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Manifest says what the runs into one output were made of. The caller fills
// in Mete, Inputs and Fingerprints; Open does the rest.
type Manifest struct {
	Version int    `json:"version"`
	Mete    string `json:"mete"`
	// Salt makes the Idempotency-Keys of this output differ from those of any
	// other. It is made once and kept by every resume.
	Salt         string            `json:"salt"`
	Inputs       []Input           `json:"inputs,omitempty"`
	Fingerprints map[string]string `json:"fingerprints,omitempty"` // template, provider, limits …: hashes, never secrets
	Runs         []Run             `json:"runs"`
}

// Run is one start of the program.
type Run struct {
	ID    string    `json:"id"`
	Start time.Time `json:"start"`
	// Unrecorded is what was paid, by unit, for rows that have no record: they
	// were stopped between two attempts.
	Unrecorded map[string]int64 `json:"unrecorded,omitempty"`
}

// Unrecorded is what all runs have paid for rows without a record, by unit.
func (m *Manifest) Unrecorded() map[string]int64 {
	sum := map[string]int64{}
	for _, r := range m.Runs {
		for unit, n := range r.Unrecorded {
			sum[unit] += n
		}
	}
	return sum
}

// Input identifies an input file without reading it all.
type Input struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	Head    string    `json:"head"` // SHA-256 of the first 64 KiB
	Tail    string    `json:"tail"` // and of the last
}

// ReadInput reads at most 128 KiB of a regular file.
func ReadInput(path string) (Input, error) {
	f, err := os.Open(path)
	if err != nil {
		return Input{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Input{}, err
	}
	const part = 64 << 10
	sum := func(from int64) (string, error) {
		h := sha256.New()
		_, err := io.Copy(h, io.NewSectionReader(f, from, part))
		return hex.EncodeToString(h.Sum(nil)), err
	}
	head, err1 := sum(0)
	tail, err2 := sum(max(0, info.Size()-part))
	in := Input{Path: path, Size: info.Size(), ModTime: info.ModTime().UTC(), Head: head, Tail: tail}
	return in, errors.Join(err1, err2)
}

// Differences lists in words what has changed since the manifest was, such as
// "rows.csv: size 10, was 8" or "limits changed". An input's time alone counts
// for nothing.
func (m *Manifest) Differences(was *Manifest) []string {
	var d []string
	if len(m.Inputs) != len(was.Inputs) {
		d = append(d, fmt.Sprintf("%d input files, were %d", len(m.Inputs), len(was.Inputs)))
	}
	for i := range min(len(m.Inputs), len(was.Inputs)) {
		in, old := m.Inputs[i], was.Inputs[i]
		switch {
		case in.Path != old.Path:
			d = append(d, fmt.Sprintf("input %s, was %s", in.Path, old.Path))
		case in.Size != old.Size:
			d = append(d, fmt.Sprintf("%s: size %d, was %d", in.Path, in.Size, old.Size))
		case in.Head != old.Head || in.Tail != old.Tail:
			d = append(d, in.Path+": content changed")
		}
	}
	names := maps.Clone(m.Fingerprints)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, was.Fingerprints)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if m.Fingerprints[name] != was.Fingerprints[name] {
			d = append(d, name+" changed")
		}
	}
	return d
}

// following returns m with what it takes over from the run before.
func (m Manifest) following(was *Manifest, run string, now time.Time) Manifest {
	m.Version = 1
	m.Salt, m.Runs = "", nil
	if was != nil {
		m.Salt, m.Runs = was.Salt, slices.Clone(was.Runs)
	}
	if m.Salt == "" {
		m.Salt = rand.Text()[:16]
	}
	m.Runs = append(m.Runs, Run{ID: run, Start: now.UTC().Truncate(time.Millisecond)})
	return m
}

func (j *Journal) manifestPath() string { return filepath.Join(j.side, "manifest.json") }

// KeepUnrecorded notes in the manifest what this run has paid, by unit, for rows
// that have no record. A stream has no place for it.
func (j *Journal) KeepUnrecorded(costs map[string]int64) error {
	if j.side == "" || len(costs) == 0 {
		return nil
	}
	j.manifest.Runs[len(j.manifest.Runs)-1].Unrecorded = costs
	return writeManifest(j.manifestPath(), &j.manifest, j.sync)
}

// readManifest returns nil if there is none.
func readManifest(path string) (*Manifest, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, err
	}
	return m, nil
}

// writeManifest replaces the file as a whole: the salt has to be on the disk
// before the first request carries it.
func writeManifest(path string, m *Manifest, sync bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return err
	}
	f, err := createTemporary(filepath.Dir(path))
	if err != nil {
		return err
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return install(f, path, sync)
}
