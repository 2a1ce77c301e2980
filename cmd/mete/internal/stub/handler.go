package stub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// request is what one handler knows of its request.
type request struct {
	*http.Request
	outcome
	s      *Server
	c      *conn // nil outside Start, and under HTTP/2
	length int64 // of the body
	sum    [sha256.Size]byte
	body   []byte // its beginning, where tokens are counted
	usage  Usage
	key    string // Idempotency-Key
	said   string // the body that the query asks for
}

// ServeHTTP answers as the provider, and below /stub/ as the auditor.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := s.now()
	c, _ := r.Context().Value(connKey{}).(*conn)
	stamped := c != nil && c.stamps && r.ProtoMajor == 1
	if stamped {
		if first := c.stamp.Load(); first != 0 {
			t = first
		}
	}
	if strings.HasPrefix(r.URL.Path, "/stub/") {
		s.serveAudit(w, r, c)
		return
	}
	q := request{Request: r, s: s, key: r.Header.Get("Idempotency-Key")}
	var standings []standing
	if stamped {
		q.c = c
		standings = c.standing[:0]
	}
	s.mu.Lock()
	q.outcome = s.ledger.arrive(t, c, standings)
	s.mu.Unlock()
	if stamped {
		c.standing = q.standings
	}
	left := false
	leave := func(e ending) { // exactly once
		left = true
		request, key := q.hashes()
		if q.status == 429 {
			q.left = s.now()
		}
		s.mu.Lock()
		s.ledger.leave(&q.outcome, e, request, key)
		s.mu.Unlock()
	}
	defer func() {
		if !left {
			leave(abandoned)
		}
	}()

	err := q.readBody()
	if stamped {
		// From here on the next byte begins the next request.
		c.stamp.Store(0)
	}
	if err == nil && len(s.cfg.Tokens) > 0 {
		q.usage = usageOf(q.body, q.sum, q.length)
		if q.accepted {
			s.mu.Lock()
			s.ledger.spend(&q.outcome, t, q.usage.Total)
			s.mu.Unlock()
		}
	}
	if err != nil || q.accepted && !q.sleep(q.latency) {
		leave(abandoned)
		panic(http.ErrAbortHandler)
	}
	if q.reset {
		leave(cutOff)
		cut(w)
		return
	}
	q.answer(w, leave)
}

func (q *request) readBody() error {
	if q.Body == nil || q.Body == http.NoBody {
		return nil
	}
	var buf []byte
	if q.c != nil {
		buf = q.c.buf
	}
	if cap(buf) < 4<<10 {
		buf = make([]byte, 4<<10)
	}
	buf = buf[:cap(buf)]
	if q.c != nil {
		q.c.buf = buf
	}
	h := sha256.New()
	for {
		n, err := q.Body.Read(buf)
		h.Write(buf[:n])
		q.length += int64(n)
		if len(q.s.cfg.Tokens) > 0 && len(q.body) < largestBody {
			q.body = append(q.body, buf[:n]...)
		}
		if err == io.EOF {
			h.Sum(q.sum[:0])
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hashes are by what the audit knows the request and its key again.
func (q *request) hashes() (request, key uint64) {
	var h maphash.Hash
	h.SetSeed(q.s.seed)
	h.WriteString(q.Method)
	h.WriteByte(' ')
	h.WriteString(q.RequestURI)
	h.WriteByte('\n')
	h.Write(q.sum[:])
	if q.key != "" {
		key = maphash.String(q.s.seed, q.key) | 1
	}
	return h.Sum64(), key
}

// sleep tells whether the client is still there at its end.
func (q *request) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-q.Context().Done():
		return false
	}
}

// cut ends the connection instead of an answer.
func cut(w http.ResponseWriter) {
	if hj, ok := w.(http.Hijacker); ok {
		if nc, _, err := hj.Hijack(); err == nil {
			if c, ok := nc.(*conn); ok {
				c.reset()
			}
			nc.Close()
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// path gives some paths their own status: /status/503, and /once/503/any the
// first time it is asked. Then body=TEXT and header=NAME:VALUE in the query
// give the answer a body and fields of its own, as for an error that comes with
// a 200; that counts as a soft error.
func (q *request) path(h http.Header) error {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	if kind != "status" && kind != "once" || q.status != 200 {
		return nil
	}
	code, _, _ := strings.Cut(rest, "/")
	status, err := strconv.Atoi(code)
	if err != nil || !isStatus(status) {
		q.status = 400
		return fmt.Errorf("%q is not a status from 200 to 599", code)
	}
	if kind == "once" {
		sum, _ := q.hashes()
		q.s.mu.Lock()
		first := q.s.ledger.first(sum)
		q.s.mu.Unlock()
		if !first {
			return nil
		}
	}
	q.status = status
	asked := q.URL.Query()
	q.said = asked.Get("body")
	q.soft = q.said != ""
	for _, field := range asked["header"] {
		if name, value, ok := strings.Cut(field, ":"); ok {
			h.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return nil
}

// answer writes the answer and calls leave just before its last byte.
func (q *request) answer(w http.ResponseWriter, leave func(ending)) {
	cfg := &q.s.cfg
	h := w.Header()
	if !q.accepted {
		writeRetryAfter(h, cfg.RetryAfter, cfg.Headers, q.wait, time.Now())
	}
	writeQuota(h, cfg.Headers, q.standings, time.Now())

	buf := []byte(nil)
	if q.c != nil {
		buf = q.c.buf[:0]
	}
	pad := 0
	h["Content-Type"] = []string{"application/json"}
	problem := q.path(h)
	switch {
	case !q.accepted:
		buf = append(buf, refusal(cfg.Headers)...)
	case problem != nil:
		buf = appendJSON(append(buf, `{"error":`...), problem.Error())
		buf = append(buf, "}\n"...)
	case q.status == 204 || q.status == 304:
	case q.said != "":
		buf = append(append(buf, q.said...), '\n')
	case q.status == 200 && q.soft:
		buf = q.appendEcho(append(buf, `{"status":"OVER_QUERY_LIMIT",`...))
		buf = append(buf, "}\n"...)
	case q.status/100 == 2 && cfg.Stream.Events > 0:
		q.stream(w, leave)
		return
	default:
		buf = q.appendEcho(append(buf, '{'))
		if q.status/100 == 2 {
			pad = cfg.BodySize - len(buf) - len(`,"pad":""}`+"\n")
		}
		if pad > 0 {
			buf = append(buf, `,"pad":"`...)
		} else {
			buf = append(buf, "}\n"...)
		}
	}
	if q.c != nil {
		q.c.buf = buf
	}
	const tail = "\"}\n"
	if pad > 0 {
		h.Set("Content-Length", strconv.Itoa(len(buf)+pad+len(tail)))
	}
	if q.status != 200 {
		w.WriteHeader(q.status)
	}
	if pad <= 0 || q.Method == http.MethodHead {
		leave(answered)
		_, _ = w.Write(buf)
		return
	}
	_, err := w.Write(buf)
	for ; pad > 0 && err == nil; pad -= len(q.s.pad) {
		_, err = w.Write(q.s.pad[:min(pad, len(q.s.pad))])
	}
	if err != nil {
		leave(abandoned)
		return
	}
	leave(answered)
	_, _ = w.Write([]byte(tail))
}

// stream answers with server-sent events, the last of which is [DONE].
func (q *request) stream(w http.ResponseWriter, leave func(ending)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(q.status)
	flush := http.NewResponseController(w)
	for i := 1; i <= q.s.cfg.Stream.Events; i++ {
		if flush.Flush() != nil || !q.sleep(q.s.cfg.Stream.Gap) {
			leave(abandoned)
			return
		}
		fmt.Fprintf(w, "data: {\"n\":%d}\n\n", i)
	}
	if len(q.s.cfg.Tokens) > 0 {
		_, _ = w.Write(append(q.appendUsage([]byte("data: {")), "}\n\n"...))
	}
	if flush.Flush() != nil {
		leave(abandoned)
		return
	}
	leave(answered)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// appendEcho appends the members of the echo, without braces.
func (q *request) appendEcho(b []byte) []byte {
	b = appendJSON(append(b, `"method":`...), q.Method)
	b = appendJSON(append(b, `,"path":`...), q.URL.Path)
	b = appendJSON(append(b, `,"query":`...), q.URL.RawQuery)
	b = strconv.AppendInt(append(b, `,"body_length":`...), q.length, 10)
	if q.length > 0 {
		b = append(b, `,"body_sha256":"`...)
		b = hex.AppendEncode(b, q.sum[:])
		b = append(b, '"')
	}
	if q.key != "" {
		b = appendJSON(append(b, `,"idempotency_key":`...), q.key)
	}
	if len(q.s.cfg.Tokens) > 0 {
		b = q.appendUsage(append(b, ',')) // of a fault, too: what was done is paid
	}
	return b
}

// appendUsage appends the member usage, without braces.
func (q *request) appendUsage(b []byte) []byte {
	u := &q.usage
	return fmt.Appendf(b, `"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, u.Prompt, u.Completion, u.Total)
}

// appendJSON appends s as a JSON string. Plain text, the usual case, is copied.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// serveAudit answers the paths below /stub/, which the audit does not count.
func (s *Server) serveAudit(w http.ResponseWriter, r *http.Request, c *conn) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if c != nil {
		c.stamp.Store(0)
	}
	if err != nil {
		http.Error(w, oneLine(err.Error()), http.StatusBadRequest)
		return
	}
	want := http.MethodPost
	switch r.URL.Path {
	case "/stub/audit":
		want = http.MethodGet
	case "/stub/reset", "/stub/faults":
	default:
		http.Error(w, "no such path: GET /stub/audit, POST /stub/reset, POST /stub/faults", http.StatusNotFound)
		return
	}
	if r.Method != want {
		w.Header().Set("Allow", want)
		http.Error(w, "use "+want+" "+r.URL.Path, http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/stub/audit":
		var buf bytes.Buffer
		_ = json.NewEncoder(&buf).Encode(s.Audit()) // of numbers only: cannot fail
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(buf.Bytes())
	case "/stub/reset":
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	case "/stub/faults":
		f, err := ParseFault(body)
		if err == nil {
			err = s.setFault(f, c)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
