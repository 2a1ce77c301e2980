package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/metehq/mete/cmd/mete/internal/journal"
	"github.com/metehq/mete/cmd/mete/internal/record"
)

// failuresFile is the file of --errors. Records are appended to it as rows fail,
// and everything in it is in the output as well. So it need not survive a crash:
// a resume makes it anew.
type failuresFile struct {
	mu      sync.Mutex
	file    *os.File
	regular bool // not a device or a pipe
}

// checkFailures refuses a file of --errors that holds something else.
func (f *boundFlags) checkFailures(output string, inputs []string, resume, overwrite bool) error {
	if f.failures == "" {
		return nil
	}
	if output != "" && sameFile(f.failures, output) {
		return fmt.Errorf("--errors %s is the output itself: name another file", f.failures)
	}
	for _, path := range inputs {
		if sameFile(f.failures, path) {
			return fmt.Errorf("--errors %s is an input: name another file", f.failures)
		}
	}
	info, err := os.Stat(f.failures)
	switch {
	case err != nil || !info.Mode().IsRegular() || info.Size() == 0 || overwrite:
		return nil
	case foreign(f.failures):
		return fmt.Errorf("--errors %s holds something else than records of failed rows: name another file", f.failures)
	case resume:
		return nil
	case output == "":
		return fmt.Errorf("--errors %s exists: remove it, or name another file", f.failures)
	}
	return fmt.Errorf("--errors %s exists: add --resume to go on with it, or --overwrite to discard it", f.failures)
}

// foreign reports whether a file does not begin like records.
func foreign(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false // it will be told when it is to be written
	}
	defer file.Close()
	head := make([]byte, 64)
	n, err := file.Read(head)
	return err == nil && !record.Torn(head[:n])
}

func sameFile(a, b string) bool {
	if x, err := filepath.Abs(a); err == nil {
		if y, err := filepath.Abs(b); err == nil && x == y {
			return true
		}
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// openFailures opens the file of --errors, with what is failed in the output.
func openFailures(path string, out *journal.Journal) (*failuresFile, error) {
	f := &failuresFile{regular: true}
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		mode, f.regular = os.O_WRONLY, false
	}
	var err error
	if f.file, err = os.OpenFile(path, mode, 0o644); err != nil {
		return nil, err
	}
	if err := f.renew(out); err != nil {
		f.file.Close()
		return nil, err
	}
	return f, nil
}

// renew makes the file anew from the output: a crash may have left it without
// the last records, and of a row that was sent again only the last one counts.
func (f *failuresFile) renew(out *journal.Journal) error {
	if !f.regular {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	return out.WriteFailed(f.file)
}

func (f *failuresFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(line)
}
