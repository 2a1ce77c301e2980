package template

import (
	"bytes"
	"strings"
)

const hex = "0123456789ABCDEF"

// unreserved are the bytes that mean the same everywhere in a URL (RFC 3986,
// 2.3).
var unreserved = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || strings.IndexByte("-._~", b) >= 0
	}
	return t
}()

// escapeURL fits a path as well as a query: a space is %20, not +.
func escapeURL(dst []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; unreserved[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// escapeHost leaves ports and IPv6 addresses alone. Nothing ends the host: a
// slash or @ of the value gives a host that is refused, or part of a password.
func escapeHost(dst []byte, value string) []byte {
	ipv6 := bracketed(value)
	for i := range len(value) {
		if c := value[i]; unreserved[c] || c == ':' || i <= ipv6 && (c == '[' || c == ']') {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// bracketed returns where the IPv6 address at the start of a host ends, or -1.
func bracketed(host string) int {
	if !strings.HasPrefix(host, "[") {
		return -1
	}
	end := strings.IndexByte(host, ']')
	if end < 0 || !strings.Contains(host[:end], ":") {
		return -1
	}
	for i := 1; i < end; i++ {
		if c := host[i]; c != ':' && c != '.' && !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return -1
		}
	}
	return end
}

func escapeJSON(dst []byte, value string) []byte {
	return append(escapeJSONText(append(dst, '"'), value), '"')
}

// escapeJSONText escapes what RFC 8259 asks for and nothing else, so that all
// other characters arrive as they were written.
func escapeJSONText(dst []byte, value string) []byte {
	start := 0
	for i := range len(value) {
		c := value[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, value[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, value[start:]...)
}

// AppendJSON appends value as a JSON string. All its characters but quotes,
// backslashes and controls stay as they are.
func AppendJSON(dst []byte, value string) []byte { return escapeJSON(dst, value) }

// dotSegment reports whether a path of the URL has a segment "." or "..",
// which servers and proxies resolve: a value could so name another resource. No
// escaping helps (golang/go#27559).
func dotSegment(url []byte) bool {
	if !bytes.Contains(url, []byte("/.")) {
		return false
	}
	if i := bytes.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if i := bytes.Index(url, []byte("://")); i >= 0 {
		url = url[i+3:]
	}
	for segment := range bytes.SplitSeq(url, []byte{'/'}) {
		if string(segment) == "." || string(segment) == ".." {
			return true
		}
	}
	return false
}
