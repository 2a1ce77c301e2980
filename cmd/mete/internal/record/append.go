package record

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// Every line starts like this. Head relies on it, and on key, hash and ok
// coming next.
const opening = `{"v":1,"id":`

// And every line ends with this, the run's id and a brace: so the end of a
// record is known from the end of some value in it.
const closing = `,"run":`

// AppendJSON appends r as one line, line feed included, and returns the
// extended buffer. It cannot fail: whatever r holds, the line is valid JSON.
// It allocates only to grow dst.
func AppendJSON(dst []byte, r *Record) []byte {
	dst = append(dst, opening...)
	dst = appendID(dst, r.ID, r.NumericID)
	dst = appendHex(append(dst, `,"key":`...), r.Key)
	dst = appendHex(append(dst, `,"hash":`...), r.Hash)
	dst = strconv.AppendBool(append(dst, `,"ok":`...), r.OK)
	dst = strconv.AppendInt(append(dst, `,"line":`...), r.Line, 10)
	if r.File != "" {
		dst = appendString(append(dst, `,"file":`...), r.File)
	}
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(r.Status), 10)
	dst = appendString(append(dst, `,"provider":`...), r.Provider)
	dst = appendString(append(dst, `,"method":`...), r.Method)
	dst = appendString(append(dst, `,"url":`...), r.URL)
	dst = appendHeaders(append(dst, `,"headers":`...), r.Headers)
	dst = appendBodyFields(dst, r)
	dst = appendValue(dst, r.Value)
	if r.DupOf != "" {
		dst = appendID(append(dst, `,"dup_of":`...), r.DupOf, r.NumericDupOf)
	}
	if r.Fallback != 0 {
		dst = strconv.AppendInt(append(dst, `,"fallback":`...), int64(r.Fallback), 10)
	}
	if r.Cache != "" {
		dst = appendString(append(dst, `,"cache":`...), r.Cache)
	}
	dst = appendOrNull(append(dst, `,"bound":`...), r.Bound)
	dst = appendWaits(append(dst, `,"waits_ms":`...), &r.Waits)
	dst = appendMS(append(dst, `,"latency_ms":`...), r.Latency)
	dst = appendMS(append(dst, `,"ttfb_ms":`...), r.TTFB)
	dst = appendMS(append(dst, `,"total_ms":`...), r.Total)
	dst = strconv.AppendInt(append(dst, `,"attempts":`...), int64(r.Attempts), 10)
	dst = append(dst, `,"tries":[`...)
	for i := range r.Tries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTry(dst, &r.Tries[i])
	}
	dst = appendCosts(append(dst, `],"cost":`...), r.Costs)
	dst = appendError(append(dst, `,"error":`...), r.Error)
	dst = appendTime(append(dst, `,"at":`...), r.At)
	dst = appendTime(append(dst, `,"end":`...), r.End)
	dst = appendMeta(dst, r.Meta)
	dst = appendString(append(dst, closing...), r.Run)
	return append(dst, "}\n"...)
}

func appendID(dst []byte, id string, numeric bool) []byte {
	if numeric && isInteger(id) {
		return append(dst, id...)
	}
	return appendString(dst, id)
}

// appendValue writes a value as it is; what is not one line of JSON is left out.
func appendValue(dst, value []byte) []byte {
	if len(value) == 0 || bytes.ContainsAny(value, "\n\r") || !isValue(value, maxBodyDepth) {
		return dst
	}
	return append(append(dst, `,"value":`...), value...)
}

func appendBodyFields(dst []byte, r *Record) []byte {
	dst = append(dst, `,"body":`...)
	encoding, size := InFile, r.BodyBytes
	if r.BodyFile != "" {
		dst = append(dst, "null"...)
	} else {
		dst, encoding = appendBody(dst, r.Body)
		if size == 0 {
			size = int64(len(r.Body))
		}
	}
	dst = appendOrNull(append(dst, `,"body_encoding":`...), string(encoding))
	dst = strconv.AppendInt(append(dst, `,"body_bytes":`...), size, 10)
	dst = appendOrNull(append(dst, `,"body_file":`...), r.BodyFile)
	return strconv.AppendBool(append(dst, `,"truncated":`...), r.Truncated)
}

func appendHeaders(dst []byte, headers []Header) []byte {
	dst = append(dst, '{')
	for i := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		start := len(dst)
		dst = appendString(dst, headers[i].Name)
		for k, c := range dst[start:] {
			if 'A' <= c && c <= 'Z' {
				dst[start+k] = c | 0x20
			}
		}
		dst = append(dst, ":["...)
		for k, v := range headers[i].Values {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, v)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendWaits(dst []byte, w *Waits) []byte {
	dst = appendMS(append(dst, `{"queue":`...), w.Queue)
	dst = appendMS(append(dst, `,"limiter":`...), w.Limiter)
	dst = appendMS(append(dst, `,"pause":`...), w.Pause)
	dst = appendMS(append(dst, `,"semaphore":`...), w.Semaphore)
	if w.Breaker != 0 {
		dst = appendMS(append(dst, `,"breaker":`...), w.Breaker)
	}
	if w.Store != 0 {
		dst = appendMS(append(dst, `,"store":`...), w.Store)
	}
	dst = appendMS(append(dst, `,"backoff":`...), w.Backoff)
	dst = appendMS(append(dst, `,"conn":`...), w.Conn)
	return append(dst, '}')
}

func appendTry(dst []byte, t *Try) []byte {
	dst = strconv.AppendInt(append(dst, `{"n":`...), int64(t.N), 10)
	dst = appendString(append(dst, `,"provider":`...), t.Provider)
	dst = appendTime(append(dst, `,"at":`...), t.At)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(t.Status), 10)
	dst = appendMS(append(dst, `,"limiter_ms":`...), t.Limiter)
	dst = appendMS(append(dst, `,"sem_ms":`...), t.Semaphore)
	dst = appendMS(append(dst, `,"pause_ms":`...), t.Pause)
	dst = appendMS(append(dst, `,"conn_ms":`...), t.Conn)
	dst = appendMS(append(dst, `,"ms":`...), t.Took)
	if t.RetryAfter != 0 {
		dst = appendMS(append(dst, `,"retry_after_ms":`...), t.RetryAfter)
	}
	dst = appendOrNull(append(dst, `,"error":`...), string(t.Error))
	return append(dst, '}')
}

func appendCosts(dst []byte, costs []Cost) []byte {
	dst = append(dst, '{')
	for i := range costs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, costs[i].Unit)
		dst = appendNumber(append(dst, `:{"est":`...), costs[i].Estimate)
		dst = appendNumber(append(dst, `,"act":`...), costs[i].True)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendError(dst []byte, e *Error) []byte {
	if e == nil {
		return append(dst, "null"...)
	}
	dst = appendString(append(dst, `{"kind":`...), string(e.Kind))
	dst = appendOrNull(append(dst, `,"phase":`...), e.Phase)
	dst = appendString(append(dst, `,"message":`...), e.Message)
	dst = strconv.AppendBool(append(dst, `,"retryable":`...), e.Retryable)
	return append(dst, '}')
}

func appendMeta(dst, meta []byte) []byte {
	if meta == nil {
		return dst
	}
	dst = append(dst, `,"meta":`...)
	if !isValue(meta, maxBodyDepth) {
		return appendString(dst, meta)
	}
	start := len(dst)
	dst = append(dst, meta...)
	if bytes.IndexByte(meta, '\n') < 0 && bytes.IndexByte(meta, '\r') < 0 {
		return dst
	}
	for i, c := range dst[start:] {
		if c == '\n' || c == '\r' { // between tokens, or it would not be JSON
			dst[start+i] = ' '
		}
	}
	return dst
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

func appendHex(dst []byte, v uint64) []byte {
	dst = append(dst, '"')
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[v>>shift&15])
	}
	return append(dst, '"')
}

// appendMS appends d in milliseconds, to the microsecond.
func appendMS(dst []byte, d time.Duration) []byte {
	if d == 0 {
		return append(dst, '0')
	}
	us := int64(d.Round(time.Microsecond) / time.Microsecond)
	if us < 0 {
		dst = append(dst, '-')
		us = -us
	}
	dst = strconv.AppendInt(dst, us/1000, 10)
	frac := us % 1000
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// appendNumber appends f; JSON has no word for infinity or not-a-number.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// appendTime appends t in UTC to the millisecond, or null.
func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return append(dst, "null"...)
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / 1e6
	two := func(v int) (byte, byte) { return byte('0' + v/10), byte('0' + v%10) }
	y1, y2 := two(year / 100)
	y3, y4 := two(year % 100)
	m1, m2 := two(int(month))
	d1, d2 := two(day)
	h1, h2 := two(hour)
	i1, i2 := two(minute)
	s1, s2 := two(second)
	f2, f3 := two(ms % 100)
	return append(dst, '"', y1, y2, y3, y4, '-', m1, m2, '-', d1, d2, 'T',
		h1, h2, ':', i1, i2, ':', s1, s2, '.', byte('0'+ms/100), f2, f3, 'Z', '"')
}

func isInteger(s string) bool {
	b := []byte(s)
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
