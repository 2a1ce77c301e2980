// Package journal keeps the results of a run so that nothing paid for is lost
// and nothing is asked twice.
//
// The result file is the journal: a row is done if, and only if, a complete
// record with its key, line feed included, is in the file. Beside the file
// out.jsonl lies the folder out.jsonl.mete with
//
//	manifest.json   what the runs were made of, and the salt of their keys
//	lock            held by the one process that writes
//	bodies/ab/cd/…  response bodies too large for a line, named by SHA-256
//
// Nothing in that folder says that a row is done.
package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Fsync says when records are forced to the disk. Records survive the death of
// the process in any case; this is about power cuts, after which the rows not
// yet forced are sent again.
type Fsync string

// The choices of Fsync; the zero value is EverySecond.
const (
	EverySecond Fsync = "1s"     // or every 1,000 records
	Always      Fsync = "always" // before a record counts as written
	Never       Fsync = "never"  // leave it to the system, for all files
)

// Options say how to open a result file.
type Options struct {
	Resume    bool // continue the file; without one, start afresh
	Overwrite bool // discard what the file holds
	Fsync     Fsync
	Manifest  Manifest // Mete, Inputs and Fingerprints, see there
	Run       string   // id of this run
}

// ErrReaderGone is the error of a stream whose reader has gone away (EPIPE).
// Nothing more can be delivered.
var ErrReaderGone = errors.New("the reader of the output has gone away")

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("journal is closed")

// ExistsError says that the output exists and the user did not say what to do
// with it.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s exists: add --resume to continue it, or --overwrite to start again and lose what it holds", e.Path)
}

// LockedError says that another process writes to the output.
type LockedError struct {
	Path string
	PID  int // 0 if it could not be told
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return e.Path + ": another mete process is writing to it"
	}
	return fmt.Sprintf("%s: mete process %d is writing to it", e.Path, e.PID)
}

// BadLineError names a line, not the last one, that is no record.
type BadLineError struct {
	Path   string
	Line   int64
	Offset int64
	Err    error
}

func (e *BadLineError) Error() string {
	return fmt.Sprintf("%s:%d: not a record of mete (%v); remove this line, at byte %d, and its row is sent again",
		e.Path, e.Line, e.Err, e.Offset)
}

func (e *BadLineError) Unwrap() error { return e.Err }

// ForeignError says that the output holds something else than results.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string {
	return e.Path + " is not a result file of mete: name another output, or add --overwrite to lose what it holds"
}

// State is what the file knew of a row when it was opened.
type State uint8

// The states of a row.
const (
	Missing State = iota // no record: to be sent
	Done                 // a record with ok
	Failed               // a record without; whether to send the row again is the caller's choice
	Changed              // a record with this key, but of another request
)

// Resumed counts what the file held when it was opened.
type Resumed struct {
	Records int64 // lines; a row sent again has several
	Rows    int64
	Failed  int64 // rows whose last record is not ok
}

// Journal is an output open for writing. Its methods may be called from any
// goroutine.
type Journal struct {
	*writer
	path     string // "" for a stream
	side     string
	lock     *flock.Flock
	index    index
	resumed  Resumed
	manifest Manifest
	previous *Manifest
	notices  []string
	sync     bool // fsync is wanted at all
}

// Stream returns a Journal that writes to w, such as standard output: it knows
// no done rows, keeps no bodies and is never forced to disk. Close does not
// close w. A program that streams to standard output has to ignore or catch
// SIGPIPE, or it dies before it can see ErrReaderGone.
func Stream(w io.Writer) *Journal {
	return &Journal{writer: newWriter(stream{w}, Never, 0)}
}

// stream is an output that is not a regular file.
type stream struct{ io.Writer }

func (stream) Sync() error          { return nil }
func (stream) Truncate(int64) error { return nil }
func (stream) Close() error         { return nil }

// Open opens or makes the result file, takes its lock, mends its tail and, with
// Resume, reads which rows are done: about a second per gigabyte, and 16 to 27
// bytes of memory a row. A path that is a pipe or a device gives a Stream.
//
// The error is an *ExistsError, *LockedError, *ForeignError or *BadLineError
// where these say it best; then nothing was changed.
func Open(path string, o Options) (*Journal, error) {
	switch o.Fsync {
	case "":
		o.Fsync = EverySecond
	case EverySecond, Always, Never:
	default:
		return nil, fmt.Errorf("fsync %q: want 1s, always or never", o.Fsync)
	}
	if o.Resume && o.Overwrite {
		return nil, errors.New("--resume and --overwrite exclude each other")
	}
	info, err := os.Stat(path)
	exists := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case exists && info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name a file in it", path)
	case exists && !info.Mode().IsRegular():
		return openStream(path, o)
	}
	if exists { // one file, one lock, whatever link leads to it
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	j := &Journal{path: path, side: path + ".mete", sync: o.Fsync != Never}
	if exists && !o.Resume && !o.Overwrite {
		return nil, j.refuse()
	}
	if err := makeDirs(j.side, j.sync); err != nil {
		return nil, err
	}
	if err := j.takeLock(); err != nil {
		return nil, err
	}
	f, size, err := j.open(o)
	if err != nil {
		return nil, errors.Join(err, j.lock.Close())
	}
	j.writer = newWriter(f, o.Fsync, size)
	return j, nil
}

// refuse tells apart an output that is in use from one that was left behind.
func (j *Journal) refuse() error {
	if _, err := os.Stat(j.side); err == nil {
		if err := j.takeLock(); err != nil {
			return err
		}
		if err := j.lock.Close(); err != nil {
			return err
		}
	}
	return &ExistsError{j.path}
}

func openStream(path string, o Options) (*Journal, error) {
	if o.Resume {
		return nil, fmt.Errorf("%s is not a regular file: --resume needs one", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Journal{writer: newWriter(closingStream{stream{f}, f}, Never, 0)}, nil
}

type closingStream struct {
	stream
	f *os.File
}

func (s closingStream) Close() error { return s.f.Close() }

// open does what has to be done under the lock, and returns the file ready to
// be appended to.
func (j *Journal) open(o Options) (f *os.File, size int64, err error) {
	flags := os.O_RDWR | os.O_APPEND
	f, err = os.OpenFile(j.path, flags, 0)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if f, err = os.OpenFile(j.path, flags|os.O_CREATE|os.O_EXCL, 0o666); err == nil && j.sync {
			err = syncDir(filepath.Dir(j.path))
		}
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if !fresh && !o.Resume && !o.Overwrite { // made since we looked
		return nil, 0, &ExistsError{j.path}
	}
	if o.Overwrite && !fresh {
		if err := f.Truncate(0); err != nil {
			return nil, 0, err
		}
		if err := os.RemoveAll(j.bodies()); err != nil {
			return nil, 0, err
		}
		fresh = true
	}
	if err := j.removeTemporaries(); err != nil {
		return nil, 0, err
	}
	if !fresh {
		if err := j.recall(); err != nil {
			return nil, 0, err
		}
		if size, err = j.load(f); err != nil {
			return nil, 0, err
		}
	}
	j.manifest = o.Manifest.following(j.previous, o.Run, time.Now())
	if err := writeManifest(j.manifestPath(), &j.manifest, j.sync); err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// recall reads the manifest of the runs before. Without it there is only one
// thing that cannot be had back, the salt; so the run goes on and says so.
func (j *Journal) recall() error {
	was, err := readManifest(j.manifestPath())
	if was == nil && errors.Is(err, fs.ErrPermission) {
		return err
	}
	if was == nil {
		if err == nil {
			err = fs.ErrNotExist
		}
		j.notices = append(j.notices, fmt.Sprintf("%s: %v; rows that were in flight are sent again under a new Idempotency-Key", j.manifestPath(), err))
	}
	j.previous = was
	return nil
}

// load mends the tail of f, fills the index and returns the size of f.
func (j *Journal) load(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	t, err := findTail(f, info.Size())
	if err != nil {
		return 0, err
	}
	records, err := scan(io.NewSectionReader(f, 0, t.end), j.path, &j.index)
	if err != nil {
		return 0, err
	}
	if t.dropped > 0 && records == 0 && j.previous == nil && !t.ours {
		return 0, &ForeignError{j.path}
	}
	j.resumed = Resumed{Records: records, Rows: int64(j.index.n), Failed: j.index.failed()}
	switch {
	case t.dropped > 0:
		if err := f.Truncate(t.end); err != nil {
			return 0, err
		}
		j.notices = append(j.notices, fmt.Sprintf("%s: dropped %d bytes of a torn record (its row is sent again)", j.path, t.dropped))
	case t.newline:
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		t.end++
		j.notices = append(j.notices, j.path+": ended the last record, which lacked its line feed")
	default:
		return t.end, nil
	}
	if j.sync {
		return t.end, f.Sync()
	}
	return t.end, nil
}

// Done returns what the file held about a row when it was opened. It costs a
// memory access or two and does not see records appended since.
func (j *Journal) Done(key, hash uint64) State { return j.index.state(key, hash) }

// Status returns the status of a row's last record when the file was opened; 0
// if there is none, or the row got no response. It costs what Done does.
func (j *Journal) Status(key uint64) int { return j.index.status(key) }

// Resumed counts the records that were found.
func (j *Journal) Resumed() Resumed { return j.resumed }

// Notices returns what the user should be told about the opening.
func (j *Journal) Notices() []string { return j.notices }

// Manifest returns the manifest as it was written for this run.
func (j *Journal) Manifest() Manifest { return j.manifest }

// Previous returns the manifest that was found, nil for a fresh output.
func (j *Journal) Previous() *Manifest { return j.previous }

// Side returns the folder beside the output, "" for a stream.
func (j *Journal) Side() string { return j.side }

// Close writes what is pending, once more if that has failed before, forces it
// to disk and gives up the lock. Records that could not be written are lost
// with it: the error is then an *UnwrittenError. To go on trying for a while,
// call Flush first. Close blocks as long as the file system, or the reader of a
// stream, does.
func (j *Journal) Close() error {
	err := j.writer.close()
	if j.lock != nil {
		err = errors.Join(err, j.lock.Close())
	}
	return err
}
