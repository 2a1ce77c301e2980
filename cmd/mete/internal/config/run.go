package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run is what `mete run` does beside the limits: how it treats its input, its
// output and its end.
type Run struct {
	// DuplicateIDs says what becomes of a second row with an id: "fail",
	// "suffix" or "skip".
	DuplicateIDs string
	// OnChange says what a resume does with a row that differs from what was
	// sent for it: "fail", "rerun" or "keep".
	OnChange string
	// Fsync says when records are forced to the disk: "1s", "always" or
	// "never".
	Fsync string
	// DrainTimeout is what requests in flight get when a run is stopped.
	DrainTimeout time.Duration
	// MaxLine is the longest line of input, in bytes: 1 to 1 GiB.
	MaxLine int64
	// AllowFiles lets rows name files to send.
	AllowFiles bool
	// IdempotencyKey is the header field that makes a POST safe to repeat;
	// empty for none.
	IdempotencyKey string
}

// off is the word for no header field.
const off = "off"

// The words of the keys of run that take one of a few.
var (
	duplicateWords = []string{"fail", "suffix", "skip"}
	changeWords    = []string{"fail", "rerun", "keep"}
	fsyncWords     = []string{"1s", "always", "never"}
)

func builtinRun() Run {
	return Run{
		DuplicateIDs: "fail", OnChange: "fail", Fsync: "1s",
		DrainTimeout: 30 * time.Second, MaxLine: 16 << 20, IdempotencyKey: "Idempotency-Key",
	}
}

// Empty returns what holds without a file: no providers, and every default.
func Empty() *File { return &File{Defaults: builtin(), Run: builtinRun()} }

// run decodes the section run.
func (d *decoder) run(n *node, r *Run) {
	s := d.section(n, "run", "run")
	if at := s["duplicate_ids"]; at != nil {
		d.oneOf(at, "duplicate_ids", duplicateWords, &r.DuplicateIDs)
	}
	if at := s["on_change"]; at != nil {
		d.oneOf(at, "on_change", changeWords, &r.OnChange)
	}
	if at := s["fsync"]; at != nil {
		d.oneOf(at, "fsync", fsyncWords, &r.Fsync)
	}
	if at := s["drain_timeout"]; at != nil {
		if t, ok := d.duration(at, "drain_timeout", false); ok {
			r.DrainTimeout = t
		}
	}
	if at := s["max_line"]; at != nil {
		if size, ok := d.size(at, "max_line", 1<<30); ok {
			r.MaxLine = size
		}
	}
	if at := s["allow_files"]; at != nil {
		if yes, ok := d.truth(at, "allow_files"); ok {
			r.AllowFiles = yes
		}
	}
	if at := s["idempotency_key"]; at != nil {
		switch name, ok := d.word(at, "idempotency_key"); {
		case !ok:
		case name == off:
			r.IdempotencyKey = ""
		case d.headerName(at, name):
			r.IdempotencyKey = name
		}
	}
}

// oneOf reads one of a few words.
func (d *decoder) oneOf(n *node, what string, words []string, to *string) {
	word, ok := d.word(n, what)
	if !ok {
		return
	}
	if !slices.Contains(words, word) {
		all := words[0]
		if last := len(words) - 1; last > 0 {
			all = strings.Join(words[:last], ", ") + " or " + words[last]
		}
		d.errorf(n, "%s must be %s, not %q", what, all, word)
		return
	}
	*to = word
}

var sizes = regexp.MustCompile(`^([0-9]{1,10})(B|KB|KiB|MB|MiB|GB|GiB)?$`)

var units = []struct {
	name  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// size reads a number of bytes, with or without a unit, from 1 to most.
func (d *decoder) size(n *node, what string, most int64) (int64, bool) {
	v, ok := d.scalar(n, what)
	if !ok {
		return 0, false
	}
	m := sizes.FindStringSubmatch(strings.TrimSpace(v.s))
	if m == nil {
		d.errorf(n, "%s must be a size, not %s: write it as in 16MiB", what, v.shown())
		return 0, false
	}
	size, _ := strconv.ParseInt(m[1], 10, 64) // ten digits fit
	for _, u := range units {
		if u.name == m[2] {
			size *= u.bytes // at most 1e10 times 1 GiB
		}
	}
	if size < 1 || size > most {
		d.errorf(n, "%s must be from 1 byte to %s", what, sizeText(most))
		return 0, false
	}
	return size, true
}

// sizeText writes a size as in a file.
func sizeText(size int64) string {
	for _, u := range units {
		if size%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(size/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(size, 10) + "B"
}

func (s *shown) run(r Run) {
	add := func(key string, v any) { s.add(v, "run", key) }
	add("duplicate_ids", r.DuplicateIDs)
	add("on_change", r.OnChange)
	add("fsync", r.Fsync)
	add("drain_timeout", timeText(r.DrainTimeout))
	add("max_line", sizeText(r.MaxLine))
	add("allow_files", r.AllowFiles)
	if r.IdempotencyKey == "" {
		add("idempotency_key", off)
	} else {
		add("idempotency_key", r.IdempotencyKey)
	}
}
