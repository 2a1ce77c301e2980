package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
)

// Largest is how many bytes of a response, or of one event of a stream, are
// looked at.
const Largest = 1 << 20

// Response takes in a response while it is read, so that its true cost can be
// told at its end.
//
// Of a stream of events (text/event-stream) it keeps the last one whose data
// are JSON, which a closing [DONE] is not. Usage that any of the events told,
// as "usage" at the top, in "message" or in "response", is put into it as
// "usage", later figures over earlier ones: the first event of one dialect
// tells the tokens that came in, a later one those that went out, and the last
// one neither.
type Response struct {
	status int
	header http.Header
	size   int64
	text   bytes.Buffer // at most Largest and one
	events *events      // of a stream
}

// NewResponse begins a response.
func NewResponse(status int, h http.Header) *Response {
	r := &Response{status: status, header: h}
	if t, _, _ := mime.ParseMediaType(h.Get("Content-Type")); t == "text/event-stream" {
		r.events = &events{}
	}
	return r
}

// Write takes in the next part of the body. It never fails.
func (r *Response) Write(p []byte) (int, error) {
	r.size += int64(len(p))
	if r.events != nil {
		r.events.write(p)
		return len(p), nil
	}
	r.text.Write(p[:min(len(p), Largest+1-r.text.Len())])
	return len(p), nil
}

func (r *Response) value() (any, error) {
	if r.events != nil {
		return r.events.value(), nil
	}
	if r.text.Len() > Largest {
		return nil, fmt.Errorf("the response has %d bytes, and only %d are looked at", r.size, Largest)
	}
	return read(r.text.Bytes()), nil
}

// events reads a stream of server-sent events as the HTML standard has it
// (9.2.6), save that an event at the end needs no empty line after it.
type events struct {
	line  []byte
	data  []byte
	cr    bool // the last byte was a carriage return
	long  bool // the event is larger than is looked at
	last  []byte
	usage map[string]any
}

var usageName = []byte(`"usage"`)

func (e *events) write(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\n")
		if e.cr && p[0] == '\n' {
			e.cr, p = false, p[1:]
			continue
		}
		e.cr = false
		if i < 0 {
			e.add(p)
			return
		}
		e.add(p[:i])
		e.endLine()
		e.cr = p[i] == '\r'
		p = p[i+1:]
	}
}

func (e *events) add(p []byte) {
	if len(e.line)+len(p) > Largest {
		e.long = true
		return
	}
	e.line = append(e.line, p...)
}

func (e *events) endLine() {
	line := e.line
	e.line = e.line[:0]
	if len(line) == 0 {
		e.dispatch()
		return
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimPrefix(data, []byte(" "))
	if len(e.data)+len(data) > Largest {
		e.long = true
		return
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
}

// dispatch ends an event.
func (e *events) dispatch() {
	data, long := e.data, e.long
	e.data, e.long = e.data[:0], false
	if long || len(data) == 0 || !json.Valid(data) {
		return
	}
	e.last = append(e.last[:0], data...)
	if !bytes.Contains(data, usageName) {
		return
	}
	var v struct {
		Usage             map[string]any
		Message, Response struct{ Usage map[string]any }
	}
	if json.Unmarshal(data, &v) != nil {
		return
	}
	for _, u := range []map[string]any{v.Message.Usage, v.Response.Usage, v.Usage} {
		for name, n := range u {
			if n == nil {
				continue
			}
			if e.usage == nil {
				e.usage = map[string]any{}
			}
			e.usage[name] = n
		}
	}
}

func (e *events) value() any {
	e.endLine()
	e.dispatch()
	v := read(e.last)
	if m, ok := v.(map[string]any); ok && e.usage != nil {
		m["usage"] = maps.Clone(e.usage)
	}
	return v
}
