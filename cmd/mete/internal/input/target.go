package input

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Classes of bytes in a URL.
const (
	plain   = iota // may stand in a path as it is
	inQuery        // may stand in a query as it is; a path needs a closer look
	slow           // needs net/url everywhere
	percent
	refused
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case b <= ' ' || b == 0x7F:
			t[c] = refused
		case b == '%':
			t[c] = percent
		case alnum(b) || strings.IndexByte("-_.~$&+,/:;=@", b) >= 0:
			t[c] = plain
		case strings.IndexByte("!'()*?[]\"<>\\^`{|}", b) >= 0:
			t[c] = inQuery
		default:
			t[c] = slow
		}
	}
	return t
}()

func alnum(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func hexDigit(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// setURL sets the row's URL and Target from text, resolving a relative one on
// base if that is not nil. Messages never hold what could be a password: parts
// of the text are quoted only where none can be.
func (r *Row) setURL(text string, base *url.URL) *fault {
	if f := checkURL(text); f != nil {
		return f
	}
	r.URL = &r.url
	if r.fastURL(text) {
		return nil
	}
	return r.slowURL(text, base)
}

// checkURL looks at single bytes only.
func checkURL(text string) *fault {
	if text == "" {
		return &fault{0, "the URL is empty"}
	}
	ascii := true
	for i := range len(text) {
		switch class[text[i]] {
		case refused:
			if text[i] == ' ' {
				return &fault{i, "space in the URL: write %20"}
			}
			return faultf(i, "control character 0x%02x in the URL", text[i])
		case percent:
			if i+2 >= len(text) || !hexDigit(text[i+1]) || !hexDigit(text[i+2]) {
				return &fault{i, "bad escape in the URL: % wants two hex digits, a plain % is written %25"}
			}
		case slow:
			ascii = ascii && text[i] < utf8.RuneSelf
		}
	}
	if !ascii && !utf8.ValidString(text) {
		return &fault{invalidUTF8(text), "not UTF-8"}
	}
	return nil
}

// fastURL parses the plainest URLs without net/url: lower-case scheme, a host
// of letters, digits, dots and hyphens, nothing that a path would have to
// escape. It reports whether text is one.
func (r *Row) fastURL(text string) bool {
	scheme, rest := "https", ""
	switch {
	case strings.HasPrefix(text, "https://"):
		rest = text[8:]
	case strings.HasPrefix(text, "http://"):
		scheme, rest = "http", text[7:]
	default:
		return false
	}
	i := 0
	for i < len(rest) && (alnum(rest[i]) || rest[i] == '.' || rest[i] == '-') {
		i++
	}
	if i == 0 {
		return false
	}
	if i < len(rest) && rest[i] == ':' {
		j := i + 1
		for j < len(rest) && '0' <= rest[j] && rest[j] <= '9' {
			j++
		}
		if !validPort(rest[i+1 : j]) {
			return false
		}
		i = j
	}
	host, rest := rest[:i], rest[i:]
	if rest != "" && rest[0] != '/' && rest[0] != '?' {
		return false
	}
	i = 0
	for i < len(rest) && class[rest[i]] == plain {
		i++
	}
	path, query := rest[:i], rest[i:]
	if query != "" {
		if query[0] != '?' || len(query) == 1 {
			return false
		}
		query = query[1:]
		for j := range len(query) {
			if class[query[j]] == slow {
				return false
			}
		}
	}
	r.url = url.URL{Scheme: scheme, Host: host, Path: path, RawQuery: query}
	r.Target = rest
	if path == "" {
		r.Target = "/" + rest
	}
	return true
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// slowURL parses any other URL.
func (r *Row) slowURL(text string, base *url.URL) *fault {
	abs, f := absolute(text, base)
	if f != nil {
		return f
	}
	u, err := url.Parse(abs)
	if err != nil {
		return explain(text)
	}
	switch {
	case u.Hostname() == "":
		return explain(text)
	case u.Port() != "" && !validPort(u.Port()):
		return explain(text)
	}
	u.Host = strings.TrimSuffix(u.Host, ":")
	u.RawQuery = escapeQuery(u.RawQuery)
	if u.User != nil {
		r.basicAuth(u.User)
		u.User = nil
	}
	r.url = *u
	r.Target = u.RequestURI()
	return nil
}

// basicAuth turns credentials of a URL into the header they stand for. A header
// of the row itself wins, as in curl.
func (r *Row) basicAuth(user *url.Userinfo) {
	if r.Header.Get("Authorization") != "" {
		return
	}
	if r.Header == nil {
		r.Header = make(http.Header, 1)
	}
	password, _ := user.Password()
	r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
}

// escapeQuery escapes what no request line may hold: net/http sends a query as
// it is.
func escapeQuery(query string) string {
	i := 0
	for i < len(query) && query[i] < utf8.RuneSelf {
		i++
	}
	if i == len(query) {
		return query
	}
	const hex = "0123456789ABCDEF"
	b := []byte(query[:i])
	for ; i < len(query); i++ {
		if c := query[i]; c >= utf8.RuneSelf {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// beforeQuery is text without its query and fragment, which may hold a URL.
func beforeQuery(text string) string {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// absolute returns text with a scheme and host, taking both from base if text
// has none. A path that begins with "/" replaces the path of base, "?" keeps
// it, anything else is appended to it; the query of base is kept.
func absolute(text string, base *url.URL) (string, *fault) {
	scheme := text[:max(0, strings.IndexAny(text, ":/?#"))]
	rest := text[len(scheme):]
	if scheme != "" && rest[0] == ':' && validScheme(scheme) {
		lower := strings.ToLower(scheme)
		web := lower == "http" || lower == "https"
		switch {
		case web && strings.HasPrefix(rest, "://"):
			return text, nil
		case web:
			return "", faultf(0, "%q wants two slashes: did you mean %s?", scheme+":", suggest(lower, strings.TrimLeft(rest[1:], "/")))
		case strings.HasPrefix(rest, "://") || !likeHost(rest):
			return "", faultf(0, "scheme %q is not supported: only http and https", scheme)
		}
	}
	switch {
	case strings.HasPrefix(text, "//"):
		host := strings.TrimLeft(text, "/")
		return "", faultf(0, "missing scheme: did you mean %s?", suggest("", host))
	case base == nil && (text[0] == '/' || text[0] == '?' || text[0] == '#'):
		return "", &fault{0, "a URL without a host needs --base-url or a provider"}
	case base == nil || text[0] != '/' && strings.Contains(beforeQuery(rest), "://"):
		return "", faultf(0, "missing scheme: did you mean %s?", suggest("", text))
	}

	text, fragment, _ := strings.Cut(text, "#")
	origin := *base
	origin.RawQuery, origin.Fragment, origin.RawFragment = "", "", ""
	root := origin
	root.Path, root.RawPath = "", ""
	switch {
	case strings.HasPrefix(text, "/"):
		text = root.String() + text
	case text == "" || text[0] == '?':
		text = origin.String() + text
	default:
		text = strings.TrimSuffix(origin.String(), "/") + "/" + text
	}
	if base.RawQuery != "" {
		if strings.Contains(text, "?") {
			text += "&" + base.RawQuery
		} else {
			text += "?" + base.RawQuery
		}
	}
	if fragment != "" {
		text += "#" + fragment
	}
	return text, nil
}

func validScheme(s string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && s[i] != '+' && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return true
}

// likeHost reports whether what follows a first word reads like ":port" or
// ":password@host" rather than the rest of a scheme such as "mailto:".
func likeHost(rest string) bool {
	return len(rest) > 1 && '0' <= rest[1] && rest[1] <= '9' || strings.Contains(rest, "@")
}

// suggest returns a URL for a message, without user, password and query.
func suggest(scheme, text string) string {
	authority := text[:len(text)-len(strings.TrimLeft(text, "/"))]
	text = text[len(authority):]
	end := strings.IndexAny(text, "/?#")
	if end < 0 {
		end = len(text)
	}
	host, path := text[:end], text[end:]
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = "***" + host[i:]
	}
	if strings.Contains(path, "@") {
		host, path = "…", "" // it could be the end of a password with a slash in it
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i] + "…"
	}
	if scheme == "" {
		scheme = "https"
		name := strings.TrimPrefix(host, "***@")
		if strings.HasPrefix(name, "localhost") || strings.HasPrefix(name, "127.") || strings.HasPrefix(name, "[::1]") {
			scheme = "http"
		}
	}
	return clip(scheme + "://" + host + path)
}

// clip shortens s for a message.
func clip(s string) string {
	const longest = 120
	if len(s) <= longest {
		return s
	}
	i := longest
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i] + "…"
}

// explain says what is wrong with a URL that net/url refused. Its own messages
// quote the text, and with it a password.
func explain(text string) *fault {
	i := strings.Index(text, "://")
	if i < 0 {
		return &fault{0, "not a valid URL"}
	}
	at := i + 3
	authority := text[at:]
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	user := ""
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, authority = authority[:i], authority[i+1:]
		at += i + 1
	}
	if authority == "" || authority[0] == ':' {
		return &fault{at, "the URL has no host"}
	}
	port := ""
	colon := strings.LastIndexByte(authority, ':')
	if colon > strings.LastIndexByte(authority, ']') {
		port = authority[colon+1:]
	}
	switch {
	case digits(port) && !validPort(port):
		return faultf(at+colon+1, "port %s is out of range: 1 to 65535", clip(port))
	case port != "" && !digits(port):
		return &fault{at + colon + 1, "the port is not a number (a / or @ in a password must be escaped)"}
	case user != "":
		return &fault{i + 3, "user, password or host of the URL holds a character that must be escaped"}
	}
	return &fault{at, "the host of the URL is not valid"}
}
