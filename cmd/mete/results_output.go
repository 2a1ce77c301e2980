package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/results"
)

// resultsFlags are those that all commands on result files have.
type resultsFlags struct {
	output    string
	overwrite bool
	skipBad   bool
}

func (f *resultsFlags) register(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&f.output, "output", "o", "", "write to this `FILE`, whole or not at all, instead of stdout")
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace the output if it exists")
	c.Flags().BoolVar(&f.skipBad, "skip-bad", false, "leave out lines that are no record, instead of stopping")
}

func (f *resultsFlags) input(c *cobra.Command, paths []string) *results.Input {
	return &results.Input{Paths: paths, Stdin: c.InOrStdin(), Notices: c.ErrOrStderr(), SkipBad: f.skipBad}
}

// write has do write the output, and gives errors their exit codes. inputs are
// files that must not be the output.
func (f *resultsFlags) write(c *cobra.Command, inputs []string, do func(io.Writer) error) error {
	err := f.writeTo(c, inputs, do)
	if errors.Is(err, syscall.EPIPE) { // SIGPIPE is ignored, or it would have ended the program
		return &exitError{exitPipe, nil}
	}
	if _, ok := errors.AsType[*results.FileError](err); ok {
		return &exitError{exitIO, err}
	}
	return err
}

// exitPipe is what a shell reports for a program that SIGPIPE ended.
const exitPipe = 141

func (f *resultsFlags) writeTo(c *cobra.Command, inputs []string, do func(io.Writer) error) error {
	if f.output == "" {
		if f.overwrite {
			return errors.New("--overwrite goes with -o FILE")
		}
		return do(c.OutOrStdout())
	}
	path, err := f.target(inputs)
	if err != nil {
		return err
	}
	tmp, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s", filepath.Dir(path))
	}
	if err != nil {
		return &results.FileError{Err: err}
	}
	defer tmp.Cleanup()
	defer removeOnSignal(tmp.Name())()
	if err := do(tmp); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil && !f.overwrite {
		return fmt.Errorf("%s came into being meanwhile: add --overwrite to replace it", f.output)
	}
	if err := tmp.CloseAtomicallyReplace(); err != nil {
		return &results.FileError{Err: err}
	}
	return nil
}

// target checks the output and returns its path without links.
func (f *resultsFlags) target(inputs []string) (string, error) {
	info, err := os.Stat(f.output)
	if err != nil {
		return f.output, nil
	}
	for _, in := range inputs {
		if from, err := os.Stat(in); err == nil && in != "-" && os.SameFile(info, from) {
			return "", fmt.Errorf("%s is the input; name another output", f.output)
		}
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file; write to stdout instead", f.output)
	}
	if !f.overwrite {
		return "", fmt.Errorf("%s exists: add --overwrite to replace it", f.output)
	}
	path, err := filepath.EvalSymlinks(f.output)
	if err != nil {
		return "", &results.FileError{Err: err}
	}
	return path, nil
}

// removeOnSignal removes the unfinished file when a signal ends the program,
// wherever it may be waiting. The function it returns puts an end to that.
func removeOnSignal(path string) (stop func()) {
	c := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case s := <-c:
			os.Remove(path)
			os.Exit(128 + int(s.(syscall.Signal)))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(c)
		close(done)
	}
}
