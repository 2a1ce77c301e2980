package input

import (
	"bytes"
	"net/url"
	"strings"
)

// parseURLs sets method and URL from a line of a URL list: "URL" or "METHOD
// URL". The line is neither blank nor a comment.
func (r *Row) parseURLs(line []byte, base *url.URL) *fault {
	text := bytes.Trim(line, " \t\r")
	at := bytes.IndexByte(line, text[0])
	r.Method = "GET"
	if i := bytes.IndexAny(text, " \t"); i > 0 && methodWord(text[:i]) {
		r.Method = method(string(text[:i]))
		rest := bytes.TrimLeft(text[i:], " \t")
		at += len(text) - len(rest)
		text = rest
	}
	if f := r.setURL(string(text), base); f != nil {
		f.at += at
		return f
	}
	if r.Method == "CONNECT" {
		return &fault{0, "method CONNECT is not a request"}
	}
	return nil
}

// methodWord reports whether the first word of a line is a method rather than
// the beginning of a URL with a space in it: letters and hyphens, and in lower
// case only the methods everyone knows.
func methodWord(word []byte) bool {
	upper := true
	for _, c := range word {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-') {
			return false
		}
		upper = upper && (c < 'a' || c > 'z')
	}
	if upper {
		return true
	}
	switch strings.ToUpper(string(word)) {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY":
		return true
	}
	return false
}

// method returns the method in upper case, the common ones without allocating.
func method(word string) string {
	switch word {
	case "GET", "get":
		return "GET"
	case "POST", "post":
		return "POST"
	}
	return strings.ToUpper(word)
}

// comment reports whether the line of a URL list is a comment.
func comment(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '#'
}
