package input

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"
	"unsafe"
)

// Row is one request of the input. It owns its memory: it stays valid after
// the next row is read.
type Row struct {
	// ID names the row in the result: the given id, or the first 12 hex digits
	// of Hash and "-n", where n counts such rows from 1.
	ID string
	// IDGiven reports whether the input named the row.
	IDGiven bool
	// NumericID reports whether the input wrote the id as an integer. The Key is
	// that of the same digits as a string.
	NumericID bool
	// Key identifies the row across runs: a hash of ID, or of Hash and the
	// occurrence. Never the line, which moves when the input is edited.
	Key [16]byte
	// Hash is a hash of the rendered request: method, URL, body and headers,
	// credentials excepted. A given id with another Hash is a changed row.
	Hash [16]byte

	File string // as named on the command line, or "stdin"
	Line int    // physical line, from 1

	Method string
	// URL is absolute, http or https, and holds no credentials: user and
	// password of the input become the Authorization header.
	URL *url.URL
	// Target is the request target, path and query, exactly as sent. It is what
	// URL.RequestURI returns.
	Target string
	// Host replaces the host of URL in the Host header, if not empty.
	Host   string
	Header http.Header // nil without headers

	Body    []byte
	HasBody bool // also with an empty body or a BodyFile
	// BodyFile is the file to stream as the body, BodySize its length when the
	// row was read.
	BodyFile string
	BodySize int64
	// ContentType is the type to send if nothing else sets one.
	ContentType string

	// Cost holds the row's own costs by unit; the unit "" is the default one of
	// the provider. Nil if the row gives none.
	Cost map[string]int64
	// Estimate is what the row is taken to cost in the end, if Options.Check has
	// found it out.
	Estimate       map[string]int64
	Lane           string
	Provider       string
	Timeout        time.Duration // of an attempt; 0 if the row gives none
	IdempotencyKey string        // empty unless the row gave one
	DedupKey       string
	// Meta is, byte for byte as in the input, the row's meta or with a template
	// the object itself; of a table and of lines it is an object of the columns
	// in their order, all of them strings.
	Meta json.RawMessage

	// Size is the memory the row holds, in bytes, for a bound on rows in
	// memory. It is an estimate, within a few percent for rows with a body.
	Size int

	url        url.URL // what URL points to: one allocation for both
	occurrence uint32  // of Hash among the rows without an id, from 1; else 0
}

// IdempotencyKeyGiven reports whether the row itself brought an
// Idempotency-Key, as a field or as a header, and so allows a replay.
func (r *Row) IdempotencyKeyGiven() bool { return r.IdempotencyKey != "" }

func (r *Row) size() int {
	n := int(unsafe.Sizeof(*r)) + len(r.ID) + len(r.Target) + len(r.url.Host) + len(r.Body) + len(r.Meta) +
		len(r.Lane) + len(r.Provider) + len(r.IdempotencyKey) + len(r.DedupKey) + len(r.BodyFile)
	for name, values := range r.Header {
		n += 64 + len(name)
		for _, v := range values {
			n += 16 + len(v)
		}
	}
	for unit := range r.Cost {
		n += 32 + len(unit)
	}
	return n
}
