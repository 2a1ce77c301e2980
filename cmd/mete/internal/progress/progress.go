// Package progress shows what a run does while it works and when it has ended.
//
// On a terminal it keeps two lines up to date; everywhere else it writes a
// line from time to time, without a single escape byte. The runner is asked,
// never told: progress polls a Snapshot, so that showing it costs the hot path
// nothing.
//
// Between two writes the cursor always rests, visible, at the start of the line
// below. So there is nothing to restore: whatever ends the program, a panic or
// SIGKILL included, leaves whole lines and a usable terminal.
package progress

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Mode is the form of the progress.
type Mode string

// The modes of --progress.
const (
	// Auto is Bar on a terminal and Plain elsewhere.
	Auto Mode = "auto"
	// Bar is the two lines; not on a terminal it is Plain.
	Bar Mode = "bar"
	// Plain is one line of key=value pairs from time to time.
	Plain Mode = "plain"
	// JSON is one JSON object per line, with the same keys and at the same
	// times as Plain.
	JSON Mode = "json"
	// None shows notes only.
	None Mode = "none"
)

// ParseMode returns the mode that s names, Auto if s is empty.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return Auto, nil
	case Auto, Bar, Plain, JSON, None:
		return m, nil
	}
	return "", fmt.Errorf("unknown progress mode %q: use auto, bar, plain, json or none", s)
}

// Options say where and how progress is shown. Detect fills in those that
// depend on the terminal.
type Options struct {
	// Out is where everything goes, usually standard error. Each write holds
	// whole lines. After a write has failed nothing more is written.
	Out io.Writer
	// IsTerminal says that Out is a terminal that can move its cursor. Escape
	// bytes are written only if it is true.
	IsTerminal bool
	// Width returns the columns of the terminal now; it is called before each
	// write. Nil or a result below 1 means 80.
	Width func() int
	// Mode is the form; empty means Auto.
	Mode Mode
	// Color allows colours on a terminal.
	Color bool
	// ASCII avoids every character outside of ASCII that is not the user's.
	ASCII bool
	// Quiet shows nothing but the answers to Now.
	Quiet bool
	// Snapshot returns the state of the run. It is called five times a second
	// from the goroutine of Run, and once from Close; it must neither block
	// nor call Close.
	Snapshot func() Snapshot
}

// Progress shows one run. Its methods may be called from any goroutine.
type Progress struct {
	o     Options
	paint *painter

	wake chan struct{}
	stop chan struct{}

	mu      sync.Mutex // guards what others leave for the writer
	notes   []string
	lost    int  // notes that found no room
	asked   bool // Now was called
	stopped bool

	writer sync.Mutex // held by the one that writes: Run, and at the end Close
	failed bool
	est    estimator
	start  time.Time
	drawn  [2]string // the lines on the screen
	rows   int       // that the cursor rests below
	width  int       // they were drawn for
	looked time.Time // last look at the run
	wrote  time.Time // last write
	line   time.Time // last line for programs
	state  string    // as of the last look
	change bool      // the state has changed since the last line
}

const (
	poll      = 200 * time.Millisecond // between two looks at the run
	spacing   = 100 * time.Millisecond // between two writes, at least
	often     = 10 * time.Second       // between two lines for programs,
	oftenFor  = 5 * time.Minute        // during this time,
	seldom    = time.Minute            // and afterwards
	settle    = time.Second            // between a line and one for a change
	suspended = 2 * time.Second        // without a look: the screen is not ours any more
	mostNotes = 256                    // that wait to be written
)

// New returns the progress of a run. It shows nothing before Run.
func New(o Options) *Progress {
	if o.Mode == "" || o.Mode == Auto || o.Mode == Bar {
		o.Mode = Plain
		if o.IsTerminal {
			o.Mode = Bar
		}
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Snapshot == nil {
		o.Snapshot = func() Snapshot { return Snapshot{Total: unknown} }
	}
	return &Progress{
		o:     o,
		paint: newPainter(o.Color && o.IsTerminal, o.ASCII),
		wake:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		start: time.Now(),
	}
}

// Run shows progress until ctx is done or Close is called, and returns then.
// It is the only one that writes meanwhile, so a terminal that has been
// stopped (Ctrl-S) stops the display and nothing else.
func (p *Progress) Run(ctx context.Context) {
	p.writer.Lock()
	defer p.writer.Unlock()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	p.start = time.Now()
	p.line = p.start
	for ctx.Err() == nil {
		select {
		case <-p.stop:
			return
		default:
		}
		p.look(p.o.Snapshot())
		select {
		case <-ctx.Done():
		case <-p.stop:
			return
		case <-tick.C:
		case <-p.wake:
			if time.Since(p.wrote) < spacing {
				select {
				case <-ctx.Done():
				case <-p.stop:
					return
				case <-tick.C:
				}
			}
		}
	}
}

// Note shows a line of text: a pause, a parked provider, a warning. On a
// terminal it goes above the two lines. It never blocks; of more notes than
// can be shown the last ones are counted instead.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.o.Quiet || p.stopped:
		return
	case len(p.notes) >= mostNotes:
		p.lost++
	default:
		p.notes = append(p.notes, text)
	}
	p.signal()
}

// Now shows one line with everything at once, in any mode and even if Quiet:
// the answer to SIGUSR1. It never blocks.
func (p *Progress) Now() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
	p.signal()
}

func (p *Progress) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close ends Run, waits for it, and shows the end state: on a terminal one line
// that stays. It writes what notes are left. Later calls do nothing.
func (p *Progress) Close() {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return
	}
	p.stopped = true
	close(p.stop)
	p.mu.Unlock()

	p.writer.Lock()
	defer p.writer.Unlock()
	now := time.Now()
	v := p.est.observe(now, p.o.Snapshot())
	above := p.pending(now, v)
	if p.o.Quiet || p.o.Mode == None {
		p.write(now, above)
		return
	}
	if p.o.Mode != Bar {
		if v.State == "" {
			v.State = "ended"
		}
		v.PausedFor, v.Rate, v.eta = 0, v.average, unknown
		p.write(now, above+p.programLine(now, v))
		return
	}
	p.draw(now, above, p.paint.first(v, p.columns()-1, true))
}

// look takes a snapshot and writes what is due.
func (p *Progress) look(s Snapshot) {
	now := time.Now()
	v := p.est.observe(now, s)
	above := p.pending(now, v)
	switch {
	case p.o.Quiet || p.o.Mode == None:
		p.write(now, above)
	case p.o.Mode == Bar:
		if now.Sub(p.looked) > suspended {
			p.rows = 0 // the shell has written since; leave it alone
		}
		first, second := p.paint.lines(v, p.columns()-1)
		p.draw(now, above, first, second)
	default:
		if p.due(now, state(v.Snapshot)) {
			above += p.programLine(now, v)
			p.line, p.change = now, false
		}
		p.write(now, above)
	}
	p.looked = now
}

// due reports whether a line for programs has to be written. A change of state
// gets one soon, but a state that flickers does not fill the log.
func (p *Progress) due(now time.Time, state string) bool {
	if p.state != "" && state != p.state {
		p.change = true
	}
	p.state = state
	every := often
	if now.Sub(p.start) > oftenFor {
		every = seldom
	}
	since := now.Sub(p.line)
	return since >= every || p.change && since >= settle
}

// pending returns, and forgets, what others asked to be shown.
func (p *Progress) pending(now time.Time, v view) string {
	p.mu.Lock()
	notes, lost, asked := p.notes, p.lost, p.asked
	p.notes, p.lost, p.asked = nil, 0, false
	p.mu.Unlock()
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("and %d more notes", lost))
	}
	var b strings.Builder
	for _, text := range notes {
		b.WriteString(p.note(now, Printable(text)))
	}
	if asked {
		b.WriteString(p.programLine(now, v))
	}
	return b.String()
}

func (p *Progress) note(now time.Time, text string) string {
	switch {
	case p.o.Mode == JSON:
		return object(notePairs(now, text))
	case p.o.Mode == Plain:
		return plain(notePairs(now, text))
	case p.o.IsTerminal:
		return wrap(text, "  ", p.columns()-1, p.paint.width) + "\n"
	}
	return text + "\n"
}

func (p *Progress) programLine(now time.Time, v view) string {
	switch {
	case p.o.Mode == JSON:
		return object(pairs(now, v))
	case p.o.Mode == Bar:
		return wrap(strings.TrimSuffix(plain(pairs(now, v)), "\n"), "  ", p.columns()-1, p.paint.width) + "\n"
	}
	return plain(pairs(now, v))
}

func (p *Progress) columns() int {
	if p.o.Width != nil {
		if w := p.o.Width(); w > 0 {
			return w
		}
	}
	return 80
}

// draw replaces the lines on the screen by the given ones, with the text above
// them, in one write.
func (p *Progress) draw(now time.Time, above string, lines ...string) {
	var next [2]string
	copy(next[:], lines)
	width := p.columns()
	if above == "" && next == p.drawn && width == p.width && p.rows > 0 {
		return
	}
	var b strings.Builder
	if up := p.height(width); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", up)
	}
	const clearRest = "\x1b[K\n"
	b.WriteString(strings.ReplaceAll(above, "\n", clearRest))
	for _, line := range lines {
		b.WriteString(line + clearRest)
	}
	b.WriteString("\x1b[J")
	p.write(now, b.String())
	p.drawn, p.rows, p.width = next, len(lines), width
}

// height is how many rows the lines on the screen take. A terminal that became
// narrower has wrapped them.
func (p *Progress) height(width int) int {
	if p.rows == 0 || width >= p.width {
		return p.rows
	}
	n := 0
	for _, line := range p.drawn[:p.rows] {
		n += max(1, (p.paint.width(stripStyles(line))+width-1)/width)
	}
	return n
}

// stripStyles removes the escape sequences that paint wrote.
func stripStyles(s string) string {
	var b strings.Builder
	for {
		text, rest, ok := strings.Cut(s, "\x1b[")
		b.WriteString(text)
		if !ok {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

func (p *Progress) write(now time.Time, text string) {
	if text == "" || p.failed {
		return
	}
	p.wrote = now
	_, err := io.WriteString(p.o.Out, text)
	p.failed = err != nil
}
