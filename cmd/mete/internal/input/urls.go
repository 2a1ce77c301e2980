package input

import "strings"

// parseURLs sets the row from a line of a URL list: "URL" or "METHOD URL". The
// line is neither blank nor a comment.
func (s *Source) parseURLs(r *Row, line []byte) *fault {
	at := indent(line)
	text := trimRight(line[at:])
	if i := word(text); i < len(text) && methodWord(text[:i]) {
		r.Method = method(string(text[:i]))
		i += indent(text[i:])
		at, text = at+i, text[i:]
	}
	url := string(text)
	if f := r.setURL(url, s.options.BaseURL); f != nil {
		f.at += at
		return f
	}
	if r.Method == "CONNECT" {
		return &fault{0, "method CONNECT is not a request"}
	}
	if s.template != nil {
		s.values = append(s.values[:0], url)
		if f := s.render(r, s.values, "", -1); f != nil {
			return f
		}
	}
	if r.Method == "" {
		r.Method = s.options.methodOf(r)
	}
	return nil
}

// word returns the length of the first word.
func word(text []byte) int {
	i := 0
	for i < len(text) && text[i] != ' ' && text[i] != '\t' && text[i] != ':' {
		i++
	}
	if i < len(text) && text[i] == ':' {
		return len(text) // a URL, not a method
	}
	return i
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

// indent returns how many blanks the line begins with.
func indent(line []byte) int {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
		i++
	}
	return i
}

// trimRight cuts blanks at the end.
func trimRight(line []byte) []byte {
	n := len(line)
	for n > 0 && (line[n-1] == ' ' || line[n-1] == '\t' || line[n-1] == '\r') {
		n--
	}
	return line[:n]
}
