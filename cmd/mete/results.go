package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

func newResultsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "results",
		Short: "Work with the result file of a run",
		Long: `Work with the result file of a run.

A result file holds one JSON record per line, in the order in which rows were
finished. A row that was sent again has several lines; the last one counts.`,
		Example: `  mete results fold out.jsonl -o unique.jsonl     # one line per row
  mete results fold out.jsonl | jq -c 'select(.ok|not)'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newFoldCommand())
	for _, s := range []struct{ name, short string }{
		{"filter", "Keep the records that fit a condition"},
		{"join", "Join records with their input rows"},
		{"csv", "Write records as CSV"},
		{"stats", "Sum up a result file"},
		{"order", "Sort records into the order of the input"},
	} {
		c.AddCommand(&cobra.Command{
			Use:                s.name,
			Short:              s.short + " (not available yet)",
			DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return &exitError{exitUsage, fmt.Errorf("results %s: not available yet; fold is", s.name)}
			},
		})
	}
	return c
}

func newFoldCommand() *cobra.Command {
	var out string
	var overwrite bool
	c := &cobra.Command{
		Use:   "fold IN.jsonl [-o OUT.jsonl]",
		Short: "Keep the last record of every row",
		Long: `Keep the last record of every row.

A row that failed and was sent again has more than one line in a result file.
fold writes one line per row: the last one, byte for byte, in the order in which
the rows first appear. A last line that was being written when the program was
killed is left out, and said so on stderr; any other bad line is an error.

IN is read twice, so it has to be a file. It is not changed, and may be the
output of a run that is still going on. Memory: about 24 bytes per row.
Paths in body_file stay as they are, relative to the folder of IN.`,
		Example: `  mete results fold out.jsonl                     # to stdout
  mete results fold out.jsonl -o unique.jsonl     # whole or not at all
  mete results fold out.jsonl | jq -c 'select(.ok) | [.id, .body]'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("results fold: name one result file, as in: mete results fold out.jsonl")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return foldFile(args[0], c.OutOrStdout(), c.ErrOrStderr())
			}
			return foldInto(args[0], out, overwrite, c.ErrOrStderr())
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write to this file instead of stdout")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace the output if it exists")
	return c
}

// foldInto folds into a file that appears as a whole or not at all.
func foldInto(in, out string, overwrite bool, stderr io.Writer) (err error) {
	if info, err := os.Stat(out); err == nil {
		if from, err := os.Stat(in); err == nil && os.SameFile(info, from) {
			return fmt.Errorf("%s is the input; name another output", out)
		}
		if !overwrite {
			return fmt.Errorf("%s exists: add --overwrite to replace it", out)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file; write to stdout instead", out)
		}
	}
	tmp, err := os.OpenFile(fmt.Sprintf("%s.tmp-%d", out, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s", filepath.Dir(out))
	}
	if err != nil {
		return &exitError{exitIO, err}
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	if err := foldFile(in, tmp, stderr); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return &exitError{exitIO, err}
	}
	if err := os.Rename(tmp.Name(), out); err != nil {
		return &exitError{exitIO, err}
	}
	return nil
}

func foldFile(in string, out, stderr io.Writer) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &exitError{exitIO, err}
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: fold reads its input twice", in)
	}
	// The size is read once: the file may be growing.
	src := io.NewSectionReader(f, 0, info.Size())
	var fl fold
	if err := fl.read(src, in, stderr); err != nil {
		return err
	}
	if err := fl.write(src, out); err != nil {
		return &exitError{exitIO, err}
	}
	return nil
}

// fold remembers where the last record of every row is: 16 bytes a row, and 4
// to 8 in the table.
type fold struct {
	rows  []foldRow // in order of first appearance
	table []uint32  // open addressing by sum: index into rows + 1
}

type foldRow struct {
	sum uint64 // of the id
	at  uint64 // offset of the last record, shifted; lowest bit: not the first one
}

func (r foldRow) offset() int64 { return int64(r.at >> 1) }
func (r foldRow) moved() bool   { return r.at&1 != 0 }

// read finds the last record of every row.
func (fl *fold) read(src *io.SectionReader, name string, stderr io.Writer) error {
	lines := record.NewReader(io.NewSectionReader(src, 0, src.Size()))
	var bad error // of the line before, which must turn out to be the last
	var badAt int64
	for lines.Next() {
		if bad != nil {
			return bad
		}
		line := lines.Line()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		head, err := record.ReadHead(line)
		if err == nil && (!lines.Whole() || lines.Offset()+int64(len(line)) == src.Size()) {
			head, err = record.FullHead(line)
		}
		if err != nil {
			badAt = lines.Offset()
			bad = fmt.Errorf("%s:%d: not a record of mete: %w; remove this line (byte %d) and fold again", name, lines.Number(), err, badAt)
			continue
		}
		if err := fl.note(src, head, lines.Offset()); err != nil {
			return &exitError{exitIO, err}
		}
	}
	if err := lines.Err(); err != nil {
		return &exitError{exitIO, err}
	}
	if bad != nil {
		if len(fl.rows) == 0 && badAt == 0 && !fl.torn(src) {
			return bad
		}
		fmt.Fprintf(stderr, "mete: %s: left out %d bytes of a torn record at the end\n", name, src.Size()-badAt)
	}
	return nil
}

// torn reports whether a file that holds no record may be the beginning of one.
func (fl *fold) torn(src io.ReaderAt) bool {
	start := make([]byte, 64)
	n, _ := src.ReadAt(start, 0)
	return record.Torn(start[:n])
}

// note enters one record. Rows are told apart by id and key; where sums of ids
// are equal, the records are compared, so no row is ever lost to chance.
func (fl *fold) note(src io.ReaderAt, head record.Head, offset int64) error {
	if (len(fl.rows)+1)*4 > len(fl.table)*3 {
		fl.grow()
	}
	sum := record.Sum(head.ID)
	mask := uint64(len(fl.table) - 1)
	for i := sum & mask; ; i = (i + 1) & mask {
		n := fl.table[i]
		if n == 0 {
			fl.rows = append(fl.rows, foldRow{sum: sum, at: uint64(offset) << 1})
			fl.table[i] = uint32(len(fl.rows))
			return nil
		}
		row := &fl.rows[n-1]
		if row.sum != sum {
			continue
		}
		line, err := lineAt(src, row.offset())
		if err != nil {
			return err
		}
		was, err := record.ReadHead(line)
		if err != nil {
			return err
		}
		if bytes.Equal(was.ID, head.ID) && was.Key == head.Key {
			row.at = uint64(offset)<<1 | 1
			return nil
		}
	}
}

func (fl *fold) grow() {
	fl.table = make([]uint32, max(1024, 2*len(fl.table)))
	mask := uint64(len(fl.table) - 1)
	for n, row := range fl.rows {
		i := row.sum & mask
		for fl.table[i] != 0 {
			i = (i + 1) & mask
		}
		fl.table[i] = uint32(n + 1)
	}
}

// write copies the records. Those that are the first of their row lie in order
// and are read in one sweep, others are fetched.
func (fl *fold) write(src *io.SectionReader, out io.Writer) error {
	w := bufio.NewWriterSize(out, 256<<10)
	lines := record.NewReader(io.NewSectionReader(src, 0, src.Size()))
	for _, row := range fl.rows {
		var line []byte
		if row.moved() {
			var err error
			if line, err = lineAt(src, row.offset()); err != nil {
				return err
			}
		} else {
			for lines.Next() && lines.Offset() < row.offset() {
			}
			if line = lines.Line(); line == nil {
				return errors.Join(io.ErrUnexpectedEOF, lines.Err())
			}
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		if line[len(line)-1] != '\n' {
			if err := w.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// lineAt reads the line that starts at offset, with its line feed if it has
// one.
func lineAt(src io.ReaderAt, offset int64) ([]byte, error) {
	buf := make([]byte, 0, 4<<10)
	for {
		n, err := src.ReadAt(buf[len(buf):cap(buf)], offset+int64(len(buf)))
		from := len(buf)
		buf = buf[:from+n]
		if i := bytes.IndexByte(buf[from:], '\n'); i >= 0 {
			return buf[:from+i+1], nil
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		buf = append(buf, make([]byte, len(buf))...)[:len(buf)]
	}
}
