package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Decode reads one line, with or without its line feed. It takes lines that
// other tools have reshaped or reduced, and skips fields it does not know, but
// it wants valid UTF-8, one JSON object, an id, and no field twice. A missing
// key is Sum of the id; a missing ok is taken from status and error.
//
// The Record does not refer to line.
func Decode(line []byte) (*Record, error) {
	r := new(Record)
	var body, encoding []byte
	seen := make(map[string]bool, 32)
	err := members(line, func(name, value []byte) error {
		if known[string(name)] {
			if seen[string(name)] {
				return fmt.Errorf("field %q twice", name)
			}
			seen[string(name)] = true
		}
		var err error
		switch string(name) {
		case "body":
			body = value
		case "body_encoding":
			encoding = value
		default:
			err = r.set(string(name), bytes.TrimSpace(value))
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !seen["id"] {
		return nil, errors.New("no id")
	}
	if !seen["key"] {
		r.Key = SumID(r.ID)
	}
	if !seen["ok"] {
		r.OK = r.Error == nil && (r.Status == 0 || r.Status/100 == 2)
	}
	if encoding != nil {
		if err := into(encoding, &r.Encoding); err != nil {
			return nil, fmt.Errorf("field %q: %w", "body_encoding", err)
		}
	}
	if body != nil {
		if r.Body, err = decodeBody(body, r.Encoding); err != nil {
			return nil, fmt.Errorf("field %q: %w", "body", err)
		}
	}
	return r, nil
}

// known holds the fields that may come only once.
var known = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range []string{
		"v", "id", "key", "hash", "ok", "line", "file", "status", "provider", "method", "url",
		"headers", "body", "body_encoding", "body_bytes", "body_file", "truncated", "bound",
		"waits_ms", "latency_ms", "ttfb_ms", "total_ms", "attempts", "tries", "cost", "error",
		"at", "end", "run", "meta", "value", "dup_of", "fallback", "cache",
	} {
		m[name] = true
	}
	return m
}()

func (r *Record) set(name string, value []byte) (err error) {
	switch name {
	case "v":
		var v int
		if err = into(value, &v); err == nil && v != Version {
			err = fmt.Errorf("version %d, this mete reads %d", v, Version)
		}
	case "id":
		r.ID, r.NumericID, err = decodeID(value)
	case "key":
		r.Key, err = decodeHex(value)
	case "hash":
		r.Hash, err = decodeHex(value)
	case "ok":
		err = into(value, &r.OK)
	case "line":
		err = into(value, &r.Line)
	case "file":
		err = into(value, &r.File)
	case "status":
		err = into(value, &r.Status)
	case "provider":
		err = into(value, &r.Provider)
	case "method":
		err = into(value, &r.Method)
	case "url":
		err = into(value, &r.URL)
	case "headers":
		r.Headers, err = decodeHeaders(value)
	case "body_bytes":
		err = into(value, &r.BodyBytes)
	case "body_file":
		err = into(value, &r.BodyFile)
	case "truncated":
		err = into(value, &r.Truncated)
	case "bound":
		err = into(value, &r.Bound)
	case "waits_ms":
		r.Waits, err = decodeWaits(value)
	case "latency_ms":
		r.Latency, err = decodeMS(value)
	case "ttfb_ms":
		r.TTFB, err = decodeMS(value)
	case "total_ms":
		r.Total, err = decodeMS(value)
	case "attempts":
		err = into(value, &r.Attempts)
	case "tries":
		r.Tries, err = decodeTries(value)
	case "cost":
		r.Costs, err = DecodeCosts(value)
	case "error":
		r.Error, err = decodeError(value)
	case "at":
		err = into(value, &r.At)
	case "end":
		err = into(value, &r.End)
	case "run":
		err = into(value, &r.Run)
	case "value":
		r.Value = bytes.Clone(value)
	case "dup_of":
		if !isNull(value) {
			r.DupOf, r.NumericDupOf, err = decodeID(value)
		}
	case "fallback":
		err = into(value, &r.Fallback)
	case "cache":
		err = into(value, &r.Cache)
	case "meta":
		r.Meta = bytes.Clone(value)
	}
	return err
}

// members calls f for each member of the object on line. value keeps the white
// space around it. name and value are valid until f returns.
func members(line []byte, f func(name, value []byte) error) error {
	if !utf8.Valid(line) {
		return errors.New("not UTF-8")
	}
	bad := func(i int, want string) error { return fmt.Errorf("column %d: want %s", i+1, want) }
	i := skipSpace(line, 0)
	if i >= len(line) || line[i] != '{' {
		return bad(i, "{")
	}
	i = skipSpace(line, i+1)
	more := i >= len(line) || line[i] != '}'
	for more {
		if i >= len(line) || line[i] != '"' {
			return bad(i, "a name in quotes")
		}
		end := skipString(line, i)
		if end < 0 {
			return bad(i, "the end of this string")
		}
		name := line[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			s, err := unquote(line[i:end])
			if err != nil {
				return err
			}
			name = []byte(s)
		}
		if i = skipSpace(line, end); i >= len(line) || line[i] != ':' {
			return bad(i, "a colon")
		}
		from := i + 1
		start := skipSpace(line, from)
		if end = skipValue(line, start, maxLineDepth); end < 0 {
			return bad(start, "a complete value")
		}
		i = skipSpace(line, end)
		if i >= len(line) || line[i] != ',' && line[i] != '}' {
			return bad(i, "a comma or }")
		}
		if err := f(name, line[from:i]); err != nil {
			return err
		}
		if more = line[i] == ','; more {
			i = skipSpace(line, i+1)
		}
	}
	if end := skipSpace(line, i+1); end != len(line) {
		return bad(end, "nothing after the record")
	}
	return nil
}

func into(value []byte, v any) error { return json.Unmarshal(value, v) }

func isNull(value []byte) bool { return string(bytes.TrimSpace(value)) == "null" }

func unquote(value []byte) (s string, err error) {
	if isNull(value) {
		return "", errors.New("null, want a string")
	}
	err = json.Unmarshal(value, &s)
	return s, err
}

func decodeID(value []byte) (id string, numeric bool, err error) {
	if isInteger(string(value)) {
		return string(value), true, nil
	}
	id, err = unquote(value)
	return id, false, err
}

func decodeHex(value []byte) (uint64, error) {
	s, err := unquote(value)
	if err != nil {
		return 0, err
	}
	if len(s) != 16 {
		return 0, fmt.Errorf("%q is not 16 hex digits", s)
	}
	return strconv.ParseUint(s, 16, 64)
}

func decodeMS(value []byte) (time.Duration, error) {
	var ms float64
	err := into(value, &ms)
	return msToDuration(ms), err
}

func msToDuration(ms float64) time.Duration {
	us := math.Round(ms * 1e3)
	if math.Abs(us) > math.MaxInt64/1e3 {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

func decodeHeaders(value []byte) (headers []Header, err error) {
	if isNull(value) {
		return nil, nil
	}
	err = members(value, func(name, value []byte) error {
		h := Header{Name: string(name)}
		if err := into(value, &h.Values); err != nil {
			return err
		}
		headers = append(headers, h)
		return nil
	})
	return headers, err
}

func decodeWaits(value []byte) (Waits, error) {
	var w struct{ Queue, Limiter, Pause, Semaphore, Breaker, Store, Backoff, Conn float64 }
	if err := into(value, &w); err != nil {
		return Waits{}, err
	}
	return Waits{
		Queue:     msToDuration(w.Queue),
		Limiter:   msToDuration(w.Limiter),
		Pause:     msToDuration(w.Pause),
		Semaphore: msToDuration(w.Semaphore),
		Breaker:   msToDuration(w.Breaker),
		Store:     msToDuration(w.Store),
		Backoff:   msToDuration(w.Backoff),
		Conn:      msToDuration(w.Conn),
	}, nil
}

func decodeTries(value []byte) ([]Try, error) {
	var wire []struct {
		N          int
		Provider   string
		At         time.Time
		Status     int
		Limiter    float64 `json:"limiter_ms"`
		Semaphore  float64 `json:"sem_ms"`
		Pause      float64 `json:"pause_ms"`
		Conn       float64 `json:"conn_ms"`
		Took       float64 `json:"ms"`
		RetryAfter float64 `json:"retry_after_ms"`
		Error      Kind
	}
	if err := into(value, &wire); err != nil || len(wire) == 0 {
		return nil, err
	}
	tries := make([]Try, len(wire))
	for i, w := range wire {
		tries[i] = Try{
			N: w.N, Provider: w.Provider, At: w.At, Status: w.Status, Error: w.Error,
			Limiter:    msToDuration(w.Limiter),
			Semaphore:  msToDuration(w.Semaphore),
			Pause:      msToDuration(w.Pause),
			Conn:       msToDuration(w.Conn),
			Took:       msToDuration(w.Took),
			RetryAfter: msToDuration(w.RetryAfter),
		}
	}
	return tries, nil
}

// ReadCosts reads what a record cost, and nothing else of it.
func ReadCosts(line []byte) (costs []Cost, err error) {
	err = members(line, func(name, value []byte) (err error) {
		if string(name) == "cost" {
			costs, err = DecodeCosts(value)
		}
		return err
	})
	return costs, err
}

// DecodeCosts reads the value of the field cost.
func DecodeCosts(value []byte) (costs []Cost, err error) {
	if isNull(value) {
		return nil, nil
	}
	err = members(value, func(name, value []byte) error {
		var c struct{ Est, Act float64 }
		if err := into(value, &c); err != nil {
			return err
		}
		costs = append(costs, Cost{Unit: string(name), Estimate: c.Est, True: c.Act})
		return nil
	})
	return costs, err
}

func decodeError(value []byte) (*Error, error) {
	if isNull(value) {
		return nil, nil
	}
	var e Error
	err := into(value, &e)
	return &e, err
}
