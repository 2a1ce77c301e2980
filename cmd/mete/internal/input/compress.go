package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// magics are how files begin that are no text. A file without a remedy is
// unpacked.
var magics = []struct{ bytes, name, remedy string }{
	{"\x1F\x8B", "gzip", ""},
	{"\x28\xB5\x2F\xFD", "zstd", ""},
	{"BZh9", "bzip2", "pipe it through bunzip2"},
	{"\xFD7zX", "xz", "pipe it through unxz"},
	{"PK\x03\x04", "a zip file or an Excel workbook", "unpack it, or save it as CSV UTF-8"},
	{"\xD0\xCF\x11\xE0", "an old Excel workbook", "save it as CSV UTF-8"},
}

// longestMagic is how many bytes tell the kind of a file.
const longestMagic = 4

// magic returns what a file is that begins with head, or "" for text.
func magic(head []byte) (name, remedy string) {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.bytes)) {
			return m.name, m.remedy
		}
	}
	return "", ""
}

// packedFile reports whether a file is compressed, or cannot be read at all.
func packedFile(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	head := make([]byte, longestMagic)
	n, _ := io.ReadFull(f, head)
	name, remedy := magic(head[:n])
	return name != "" && remedy == ""
}

// widest is the largest window of zstd that is unpacked, what the zstd program
// takes without being asked.
const widest = 128 << 20

// unpacker reads compressed data. It never takes an end for good that the
// format does not confirm.
type unpacker struct {
	name string
	r    io.Reader
	err  error // of the packed data's reader, which is not the archive's fault
}

// unpack returns the contents of gzip or zstd data. It blocks as packed does.
func unpack(name string, packed io.Reader) *unpacker {
	u := &unpacker{name: name}
	packed = &watched{packed, &u.err}
	var err error
	if name == "gzip" {
		u.r, err = gzip.NewReader(packed)
	} else {
		// With one decoder no goroutine is started.
		u.r, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(widest))
	}
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		u.r = failing{err}
	}
	return u
}

func (u *unpacker) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case u.err != nil:
		return n, u.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("the %s data is cut off: copy or download it again", u.name)
	}
	return n, fmt.Errorf("the %s data is damaged: %w", u.name, err)
}

// watched keeps the error of a reader.
type watched struct {
	io.Reader
	err *error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err != nil && err != io.EOF {
		*w.err = err
	}
	return n, err
}

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
