package input

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The fields of a row. Index and name are joined here only.
const (
	fID = iota
	fCustomID
	fURL
	fMethod
	fHeaders
	fBody
	fBodyBase64
	fBodyFile
	fCost
	fLane
	fProvider
	fTimeout
	fIdempotencyKey
	fDedupKey
	fMeta
	fields
)

var fieldNames = [fields]string{
	"id", "custom_id", "url", "method", "headers", "body", "body_base64", "body_file",
	"cost", "lane", "provider", "timeout", "idempotency_key", "dedup_key", "meta",
}

const longestID = 256 // bytes

// field is one top-level member of a row; value is nil if it is missing.
type field struct {
	at    int // of the value
	value []byte
}

// parseJSON sets the row from a line of JSON Lines. Where the id can be read it
// is set even if something else is wrong. dir is the input file's folder.
func (r *Row) parseJSON(line []byte, o *Options, dir string) *fault {
	if !utf8.Valid(line) {
		return notUTF8(line)
	}
	s := scanner{text: line}
	batch := batches[o.Format] // nil is none
	if c := s.peek(); c != '{' {
		switch {
		case c == '[':
			return &fault{s.at, "expected an object, found an array: one object per line"}
		case c == '#' || c == '/':
			return &fault{s.at, "expected an object: JSON Lines have no comments"}
		}
		return s.unexpected("an object")
	}
	start := s.at
	var f [fields]field
	var first *fault // the first mistake that leaves the rest of the line readable
	broken := s.object(func(at int, key []byte) *fault {
		name := key[1 : len(key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = unquote(key)
		}
		i := batch.fieldIndex(name)
		valueAt := s.at
		value, bad := s.value(1)
		if bad != nil {
			return bad
		}
		switch {
		case first != nil:
		case i < 0:
			first = batch.unknown(at, string(name), o.Format)
		case f[i].value != nil:
			first = faultf(at, "field %q is given twice", name)
		case value[0] == 'n' && i != fMeta:
			first = faultf(valueAt, "%s is null: leave the field out", name)
		}
		if i >= 0 && f[i].value == nil && (value[0] != 'n' || i == fMeta) {
			f[i] = field{valueAt, value}
		}
		return nil
	})
	if broken == nil {
		if s.space(); s.at < len(line) {
			broken = &fault{s.at, "more text after the object: one object per line"}
		}
	}
	if bad := r.setID(&f); bad != nil && first == nil {
		first = bad
	}
	switch {
	case broken != nil:
		return broken
	case first != nil:
		return first
	}
	if batch != nil {
		if bad := batch.complete(&f, start); bad != nil {
			return bad
		}
	}
	return r.setFields(&f, start, o, dir)
}

func fieldIndex(name []byte) int {
	for i, known := range fieldNames {
		if string(name) == known {
			return i
		}
	}
	return -1
}

func (r *Row) setID(f *[fields]field) *fault {
	if f[fID].value != nil && f[fCustomID].value != nil {
		return &fault{f[fCustomID].at, "id and custom_id exclude each other"}
	}
	id, name := f[fID], "id"
	if id.value == nil {
		id, name = f[fCustomID], "custom_id"
	}
	switch {
	case id.value == nil:
		return nil
	case id.value[0] == '"':
		r.ID = string(unquote(id.value))
	case digits(strings.TrimPrefix(string(id.value), "-")):
		r.ID, r.NumericID = string(id.value), true
	case id.value[0] == '-' || '0' <= id.value[0] && id.value[0] <= '9':
		return faultf(id.at, "%s is not a whole number: quote it", name)
	default:
		return faultf(id.at, "%s is %s: want a string or an integer", name, kind(id.value))
	}
	if n := len(r.ID); n == 0 || n > longestID {
		r.ID = ""
		if n == 0 {
			return faultf(id.at, "%s is empty", name)
		}
		return faultf(id.at, "%s has %d bytes, more than %d", name, n, longestID)
	}
	r.IDGiven = true
	return nil
}

func (r *Row) setFields(f *[fields]field, start int, o *Options, dir string) *fault {
	texts := [...]struct {
		i    int
		into *string
	}{
		{fMethod, &r.Method}, {fLane, &r.Lane}, {fProvider, &r.Provider},
		{fIdempotencyKey, &r.IdempotencyKey}, {fDedupKey, &r.DedupKey},
	}
	for _, t := range texts {
		if f[t.i].value == nil {
			continue
		}
		text, bad := f[t.i].text(t.i)
		if bad == nil && text == "" {
			bad = faultf(f[t.i].at, "%s is empty", fieldNames[t.i])
		}
		if bad != nil {
			return bad
		}
		*t.into = text
	}
	if i := strings.IndexFunc(r.IdempotencyKey, func(c rune) bool { return c < ' ' || c >= 0x7F }); i >= 0 {
		return &fault{f[fIdempotencyKey].at, "idempotency_key must be printable ASCII: it is sent as a header"}
	}
	for _, set := range [...]func() *fault{
		func() *fault { return r.setHeaders(f[fHeaders]) },
		func() *fault { return r.setBody(f, o, dir) },
		func() *fault { return r.setMethod(f[fMethod]) },
		func() *fault { return r.resolve(f, start, o) },
		func() *fault { return r.setCost(f[fCost]) },
		func() *fault { return r.setTimeout(f[fTimeout]) },
	} {
		if bad := set(); bad != nil {
			return bad
		}
	}
	r.Meta = json.RawMessage(bytes.Clone(f[fMeta].value))
	return nil
}

// text returns the string the field holds.
func (f field) text(i int) (string, *fault) {
	if f.value[0] != '"' {
		return "", faultf(f.at, "%s is %s: want a string", fieldNames[i], kind(f.value))
	}
	return string(unquote(f.value)), nil
}

func (r *Row) setMethod(f field) *fault {
	if r.Method == "" {
		r.Method = "GET"
		if r.HasBody {
			r.Method = "POST"
		}
		return nil
	}
	if !token(r.Method) {
		return faultf(f.at, "not a method: %s", quote(r.Method))
	}
	r.Method = method(r.Method)
	if r.Method == "CONNECT" {
		return &fault{f.at, "method CONNECT is not a request"}
	}
	return nil
}

func (r *Row) resolve(f *[fields]field, start int, o *Options) *fault {
	base := o.BaseURL
	if r.Provider != "" && o.ResolveProvider != nil {
		u, ok := o.ResolveProvider(r.Provider)
		if !ok {
			return faultf(f[fProvider].at, "provider %s is not in the configuration", quote(r.Provider))
		}
		base = u
	}
	if f[fURL].value == nil {
		return &fault{start, "url is missing"}
	}
	text, bad := f[fURL].text(fURL)
	if bad == nil {
		if bad = r.setURL(text, base); bad != nil {
			// Inside a string with escapes places have moved: point at its start.
			if len(text) == len(f[fURL].value)-2 {
				bad.at++
			} else {
				bad.at = 0
			}
			bad.at += f[fURL].at
		}
	}
	return bad
}

func (r *Row) setHeaders(f field) *fault {
	if f.value == nil {
		return nil
	}
	if f.value[0] != '{' {
		return faultf(f.at, "headers is %s: want an object", kind(f.value))
	}
	s := scanner{text: f.value}
	bad := s.object(func(at int, key []byte) *fault {
		name := string(unquote(key))
		var values []string
		one := func() *fault {
			at := s.at
			value, bad := s.value(0)
			if bad != nil {
				return bad
			}
			if value[0] != '"' {
				return faultf(at, "header %s is %s: want a string or an array of strings", quote(name), kind(value))
			}
			values = append(values, string(unquote(value)))
			return nil
		}
		var bad *fault
		if s.peek() == '[' {
			bad = s.array(one)
		} else {
			bad = one()
		}
		if bad == nil {
			if msg := r.setHeader(name, values); msg != "" {
				bad = &fault{at, msg}
			}
		}
		return bad
	})
	if bad != nil {
		bad.at += f.at
	}
	return bad
}

func (r *Row) setCost(f field) *fault {
	if f.value == nil {
		return nil
	}
	r.Cost = make(map[string]int64, 1)
	if f.value[0] != '{' {
		return r.addCost("", f)
	}
	s := scanner{text: f.value}
	bad := s.object(func(at int, key []byte) *fault {
		unit := string(unquote(key))
		if _, ok := r.Cost[unit]; ok || unit == "" {
			return faultf(at, "cost has unit %s twice or without a name", quote(unit))
		}
		at = s.at
		value, bad := s.value(0)
		if bad == nil {
			bad = r.addCost(unit, field{at, value})
		}
		return bad
	})
	if bad != nil {
		bad.at += f.at
	}
	return bad
}

func (r *Row) addCost(unit string, f field) *fault {
	n, err := strconv.ParseUint(string(f.value), 10, 63)
	switch {
	case err == nil:
		r.Cost[unit] = int64(n)
		return nil
	case f.value[0] != '-' && (f.value[0] < '0' || f.value[0] > '9'):
		return faultf(f.at, "cost is %s: want a number or {\"unit\": number}", kind(f.value))
	}
	return faultf(f.at, "cost %s is not a whole number from 0", clip(string(f.value)))
}

func (r *Row) setTimeout(f field) *fault {
	if f.value == nil {
		return nil
	}
	text := string(f.value)
	if text[0] == '"' {
		text = string(unquote(f.value))
	}
	d, err := time.ParseDuration(text)
	switch {
	case f.value[0] == '"' && err == nil && d > 0:
		r.Timeout = d
		return nil
	case digits(text):
		return faultf(f.at, "timeout wants a unit: %q", clip(text)+"s")
	case f.value[0] != '"':
		return faultf(f.at, "timeout is %s: want a string such as \"30s\"", kind(f.value))
	case err == nil:
		return faultf(f.at, "timeout %s is not above zero", quote(text))
	}
	return faultf(f.at, "timeout %s is not a duration such as \"1m30s\"", quote(text))
}
