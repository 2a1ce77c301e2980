package record

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"unicode/utf8"
)

// Encoding says how the body stands in the record; see the package comment.
type Encoding string

// The encodings of a body. None is written as null.
const (
	None       Encoding = ""
	JSON       Encoding = "json"
	JSONFolded Encoding = "json-folded"
	Text       Encoding = "text"
	Base64     Encoding = "base64"
	InFile     Encoding = "file"
)

// appendBody appends the value of "body" and says how it is encoded.
func appendBody(dst, body []byte) ([]byte, Encoding) {
	switch {
	case body == nil:
		return append(dst, "null"...), None
	case !utf8.Valid(body):
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, body)
		return append(dst, '"'), Base64
	case !isContainer(body):
		return appendString(dst, body), Text
	case bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, '\r') < 0:
		return append(dst, body...), JSON
	}
	return appendFolded(dst, body), JSONFolded
}

// isContainer reports whether b, which is UTF-8, is a JSON object or array.
func isContainer(b []byte) bool {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' && b[i] != '[' {
		return false
	}
	i = skipValue(b, i, maxBodyDepth)
	return i >= 0 && skipSpace(b, i) == len(b)
}

// appendFolded appends valid JSON without line breaks. They can only stand
// between tokens, where white space is free: so space and tab make up a prefix
// code for all four kinds of it, and nothing is lost.
func appendFolded(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case '"':
			end := skipString(b, i)
			dst = append(dst, b[i:end]...)
			i = end
			continue
		case '\n':
			dst = append(dst, "\t "...)
		case '\t':
			dst = append(dst, "\t\t "...)
		case '\r':
			dst = append(dst, "\t\t\t"...)
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// appendUnfolded undoes appendFolded. Tabs that are no code stay as they are:
// some tool has put the line into another shape.
func appendUnfolded(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		switch rest := b[i:]; {
		case b[i] == '"':
			end := skipString(b, i)
			dst = append(dst, b[i:end]...)
			i = end
		case bytes.HasPrefix(rest, []byte("\t ")):
			dst = append(dst, '\n')
			i += 2
		case bytes.HasPrefix(rest, []byte("\t\t ")):
			dst = append(dst, '\t')
			i += 3
		case bytes.HasPrefix(rest, []byte("\t\t\t")):
			dst = append(dst, '\r')
			i += 3
		default:
			dst = append(dst, b[i])
			i++
		}
	}
	return dst
}

// decodeBody turns the value of "body", with the white space around it, into
// the bytes that were received.
func decodeBody(value []byte, e Encoding) ([]byte, error) {
	switch e {
	case None, InFile:
		if !isNull(value) {
			return nil, fmt.Errorf("body without body_encoding")
		}
		return nil, nil
	case JSON:
		return bytes.Clone(value), nil
	case JSONFolded:
		return appendUnfolded(make([]byte, 0, len(value)), value), nil
	case Text:
		s, err := unquote(value)
		return []byte(s), err
	case Base64:
		s, err := unquote(value)
		if err != nil {
			return nil, err
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if b == nil {
			b = []byte{}
		}
		return b, err
	}
	return nil, fmt.Errorf("unknown body_encoding %q", e)
}
