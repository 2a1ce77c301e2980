package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Head is what resume and fold need to know of a record.
type Head struct {
	ID   []byte // as text, without quotes; refers to the line unless it had escapes
	Key  uint64
	Hash uint64 // 0 if the record does not tell
	OK   bool
	// Status is that of the response; 0 if there was none.
	Status int
}

// SumID is the key hash of a row that its input named, as package input makes
// its key.
func SumID(id string) uint64 { return Sum("id\x00" + id) }

// Sum hashes a row key to the 64 bits that records and journals hold: the
// first 8 bytes of its SHA-256, big endian. Among a million rows two
// share a sum with a chance of 3 in 10^8, and then the request hash differs, so
// that the row is reported as changed rather than skipped.
func Sum[S ~string | ~[]byte](key S) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:8])
}

// ReadHead reads the head of one line, with or without its line feed.
//
// A line as AppendJSON wrote it is recognised by its ends alone, which takes a
// fraction of a microsecond, as long as nothing speaks against it: a NUL byte,
// as a power cut leaves, or a second record begun within the line. Any other
// line is checked whole. In either case an error means: no complete record.
func ReadHead(line []byte) (Head, error) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if h, ok := quickHead(line); ok {
		return h, nil
	}
	return FullHead(line)
}

// quickHead knows exactly the layout of AppendJSON.
func quickHead(line []byte) (h Head, ok bool) {
	if len(line) <= len(opening) || string(line[:len(opening)]) != opening || !closed(line) {
		return h, false
	}
	rest := line[len(opening):]
	i := 0
	if rest[0] == '"' {
		i = bytes.IndexByte(rest[1:], '"') + 2
		if i < 2 {
			return h, false
		}
		h.ID = rest[1 : i-1]
		if bytes.IndexByte(h.ID, '\\') >= 0 {
			return h, false
		}
	} else {
		if i = bytes.IndexByte(rest, ','); i < 0 || !isInteger(string(rest[:i])) {
			return h, false
		}
		h.ID = rest[:i]
	}
	const fixed = `,"key":"0123456789abcdef","hash":"0123456789abcdef","ok":`
	tail := rest[i:]
	if len(tail) < len(fixed)+4 ||
		string(tail[:8]) != fixed[:8] || string(tail[24:34]) != fixed[24:34] || string(tail[50:57]) != fixed[50:57] {
		return h, false
	}
	var valid1, valid2 bool
	h.Key, valid1 = hex64(tail[8:24])
	h.Hash, valid2 = hex64(tail[34:50])
	h.OK = string(tail[57:61]) == "true"
	h.Status, ok = quickStatus(tail[57:])
	if !ok || !valid1 || !valid2 || bytes.IndexByte(line, 0) >= 0 || bytes.Contains(rest, []byte(opening)) {
		return h, false
	}
	return h, true
}

// quickStatus reads the status out of what follows upon "ok": of a record.
func quickStatus(b []byte) (status int, ok bool) {
	const line, file, before = `,"line":`, `,"file":"`, `,"status":`
	i := bytes.IndexByte(b, ',')
	if i < 0 || !bytes.HasPrefix(b[i:], []byte(line)) {
		return 0, false
	}
	i = skipNumber(b, i+len(line))
	if i < 0 {
		return 0, false
	}
	if bytes.HasPrefix(b[i:], []byte(file)) {
		if i = skipString(b, i+len(file)-1); i < 0 {
			return 0, false
		}
	}
	if !bytes.HasPrefix(b[i:], []byte(before)) {
		return 0, false
	}
	i += len(before)
	end := skipDigits(b, i)
	if end < 0 || end-i > 3 {
		return 0, false
	}
	for _, c := range b[i:end] {
		status = 10*status + int(c-'0')
	}
	return status, true
}

// closed reports whether line ends like a record of AppendJSON.
func closed(line []byte) bool {
	end := len(line) - len(`"}`)
	if string(line[end:]) != `"}` {
		return false
	}
	quote := bytes.LastIndexByte(line[:end], '"')
	return quote >= 0 && bytes.HasSuffix(line[:quote], []byte(closing))
}

// hex64 reads 16 lower-case hex digits.
func hex64(b []byte) (v uint64, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}

// FullHead is ReadHead that checks the whole line in any case.
func FullHead(line []byte) (Head, error) {
	var r Record
	var hasID, hasKey, hasOK bool
	err := members(line, func(name, value []byte) (err error) {
		var has *bool
		switch string(name) {
		case "id":
			has = &hasID
		case "key":
			has = &hasKey
		case "ok":
			has = &hasOK
		case "v", "hash", "status", "error":
		default:
			return nil
		}
		if has != nil {
			if *has {
				return fmt.Errorf("field %q twice", name)
			}
			*has = true
		}
		if err = r.set(string(name), bytes.TrimSpace(value)); err != nil {
			err = fmt.Errorf("field %q: %w", name, err)
		}
		return err
	})
	if err != nil {
		return Head{}, err
	}
	if !hasID {
		return Head{}, errors.New("no id")
	}
	if !hasKey {
		r.Key = SumID(r.ID)
	}
	if !hasOK {
		r.OK = r.Error == nil && (r.Status == 0 || r.Status/100 == 2)
	}
	return Head{ID: []byte(r.ID), Key: r.Key, Hash: r.Hash, OK: r.OK, Status: r.Status}, nil
}

// Torn reports whether b, which is not a complete record, can be what is left
// of one that was being written: the beginning of one, or the NUL bytes that a
// file system shows where data never reached the disk.
func Torn(b []byte) bool {
	b = bytes.TrimLeft(b, "\x00")
	n := min(len(b), len(opening))
	return string(b[:n]) == opening[:n]
}
