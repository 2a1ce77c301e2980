package mete

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete/internal/meter"
)

// saveEvery is how often the durable state is written while calls start. What
// was started since the last writing is not known after a crash, so that much
// counts as spent.
const saveEvery = time.Second

// StateInUseError says that another process on this machine uses the durable
// state of the same provider, so that together they may pass its limits. New
// returns no gate with it: a Config without State gives one that keeps nothing.
type StateInUseError struct {
	Provider string
	File     string
	PID      int // 0 if it is not known
}

// Error implements error.
func (e *StateInUseError) Error() string {
	return fmt.Sprintf("mete: process %d also calls %s: each keeps to the limits on its own, together they may pass them (%s)", e.PID, e.Provider, e.File)
}

// saved is the durable state of a gate: what is in force of its limits, and
// its pause.
type saved struct {
	Version int          `json:"version"`
	PID     int          `json:"pid"`
	At      time.Time    `json:"at"`
	Clean   bool         `json:"clean"`
	Paused  time.Time    `json:"paused_until,omitzero"`
	Limits  []savedLimit `json:"limits,omitempty"`
}

type savedLimit struct {
	Bound string        `json:"limit"`
	Unit  string        `json:"unit"`
	Spent []meter.Spent `json:"spent,omitempty"`
	Peak  int64         `json:"peak,omitempty"` // most units between two writings
}

// keeper writes the state of a gate to a locked file. It has no goroutine: a
// timer runs while calls start, and stops when none do.
type keeper struct {
	gate *Gate
	path string
	lock *os.File

	mu    sync.Mutex // for the writing; never taken with the gate's lock held
	armed bool       // under the gate's lock
	timer *time.Timer
	clean bool // the last writing was done: nothing is written after it
	dirty bool
	err   error
}

// stateFile is the file of a provider in a folder.
func stateFile(dir, provider string) string {
	return filepath.Join(dir, url.PathEscape(provider)+".json")
}

func openKeeper(dir string, g *Gate) (*keeper, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mete: state of %s: %w", g.name, err)
	}
	k := &keeper{gate: g, path: stateFile(dir, g.name)}
	lock, err := os.OpenFile(k.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mete: state of %s: %w", g.name, err)
	}
	if err := lockFile(lock); err != nil {
		defer lock.Close()
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("mete: state of %s: %w", g.name, err)
		}
		text, _ := io.ReadAll(io.LimitReader(lock, 32))
		var pid int
		_, _ = fmt.Sscan(string(text), &pid)
		return nil, &StateInUseError{Provider: g.name, File: k.path, PID: pid}
	}
	k.lock = lock
	var pid, busy int64
	_, _ = fmt.Fscan(io.LimitReader(lock, 64), &pid, &busy)
	_ = lock.Truncate(0)
	k.stamp(time.Unix(0, busy))
	if err := k.load(time.Unix(0, busy)); err != nil {
		lock.Close()
		return nil, err
	}
	// From here on the file says that a process is at work.
	if err := k.save(false); err != nil {
		lock.Close()
		return nil, err
	}
	return k, nil
}

// load books what was in force when the state was written; busy is when calls
// began to start after that, or before. An unreadable file counts as everything
// spent now.
func (k *keeper) load(busy time.Time) error {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the very first start: the limits are clear
	}
	if err != nil {
		return fmt.Errorf("mete: state of %s: %w", k.gate.name, err)
	}
	var s saved
	wall := time.Now()
	if json.Unmarshal(data, &s) != nil || s.Version != 1 {
		s = saved{At: wall}
	}
	g := k.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	// The clock may have been set back: then no time counts as gone by.
	gone := max(wall.Round(0).Sub(s.At), 0)
	ended := gone
	if !s.Clean {
		// It went on for an unknown part of the interval after this writing,
		// or after the first start since, and longer if the disk was slow.
		ended = max(min(gone, wall.Round(0).Sub(busy))-2*saveEvery, 0)
	}
	was := make([][]meter.Spent, len(g.q.limits))
	for i := range g.q.limits {
		l := &g.q.limits[i]
		for _, old := range s.Limits {
			if old.Bound == l.bound() && old.Unit == l.unit() {
				was[i], l.peak = old.Spent, old.Peak
			}
		}
	}
	for i := range g.q.limits {
		l := &g.q.limits[i]
		spent := was[i]
		if len(s.Limits) == 0 && !s.Clean && l.Calendar == "" {
			spent = []meter.Spent{{Units: l.meter.Capacity()}}
		}
		unwritten := int64(0)
		if !s.Clean {
			unwritten = g.q.unwritten(i, was)
		}
		l.restore(now, spent, gone, ended, unwritten)
	}
	if d := min(s.Paused.Sub(wall.Round(0)), s.Paused.Sub(s.At)); d > 0 {
		g.q.closeUntil(now, now+d, 0)
	}
	return nil
}

// restore books what was spent of one limit: gone ago it was written, ended
// ago the last start may have been, and unwritten of it may have followed the
// writing.
func (l *limit) restore(now time.Duration, spent []meter.Spent, gone, ended time.Duration, unwritten int64) {
	switch {
	case l.Calendar != "":
		l.meter.Restore(now, spent)
		if unwritten > 0 {
			l.meter.Take(now, unwritten, true)
		}
	case l.Bucket || l.Per >= time.Minute:
		spent = slices.Clone(spent)
		for i := range spent {
			if spent[i].Age > 0 {
				spent[i].Age += gone
			} else { // granted, and perhaps sent after the writing
				spent[i].Age = ended
			}
		}
		if unwritten > 0 {
			spent = append(spent, meter.Spent{Age: ended, Units: unwritten})
		}
		l.meter.Restore(now, spent)
	case ended < l.Per+time.Second:
		// Too short to be worth keeping: it begins when the last run's starts
		// have left the window.
		l.meter.Restore(now, []meter.Spent{{Age: ended, Units: l.N}})
	}
}

// unwritten is the most of limit i that can have started in the interval after
// the last writing: what the windows of its unit let through, or where there
// is none, the most that was seen.
func (q *queue) unwritten(i int, was [][]meter.Spent) int64 {
	most := 2*q.limits[i].peak + 1
	bounded := false
	for j := range q.limits {
		o := &q.limits[j]
		if o.unit() != q.limits[i].unit() || o.Calendar != "" || o.Per <= 0 {
			continue
		}
		n := int64(float64(o.N)/float64(o.Per)*float64(2*saveEvery)) + max(o.Burst, 1)
		switch {
		case o.Bucket:
		case o.Per < 2*saveEvery:
			n += o.N
		default: // no more than was free, or came free
			free := o.N
			for _, s := range was[j] {
				if s.Age < o.Per-2*saveEvery {
					free -= s.Units
				}
			}
			n = min(n, max(free, 0))
		}
		if !bounded || n < most {
			most, bounded = n, true
		}
	}
	return min(most, max(q.limits[i].meter.Capacity(), 1))
}

// touch arms the writing after a start. The caller holds the gate's lock.
func (k *keeper) touch() {
	k.dirty = true
	if k.armed {
		return
	}
	k.armed = true
	k.stamp(time.Now())
	if k.timer == nil {
		k.timer = time.AfterFunc(saveEvery, k.tick)
	} else {
		k.timer.Reset(saveEvery)
	}
}

// stamp notes in the locked file that calls start from now on. It is written at
// once, since a crash before the next writing would leave a state that is older
// than the quiet time before them. The file is written in place, by a process of
// which it knows: some microseconds, once a second at most.
func (k *keeper) stamp(busy time.Time) {
	_, _ = k.lock.WriteAt(fmt.Appendf(nil, "%d %-20d\n", os.Getpid(), max(busy.UnixNano(), 0)), 0)
}

func (k *keeper) tick() {
	err := k.save(false)
	g := k.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	k.err = err
	k.armed = false
	if k.dirty && g.keep == k {
		k.touch()
	}
	k.dirty = false
}

// save writes the state to a new file and renames it. Nothing is synced to
// the disk: a crash of the machine takes longer than any window that matters,
// and what it loses is caught by Clean.
func (k *keeper) save(clean bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lock == nil || k.clean {
		return nil
	}
	k.clean = clean
	data, err := json.Marshal(k.gate.snapshot(clean))
	if err != nil {
		return err
	}
	temp := k.path + ".tmp"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("mete: state of %s: %w", k.gate.name, err)
	}
	if err := os.Rename(temp, k.path); err != nil {
		return fmt.Errorf("mete: state of %s: %w", k.gate.name, err)
	}
	return nil
}

func (g *Gate) snapshot(clean bool) saved {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, wall := g.now(), time.Now().Round(0)
	s := saved{Version: 1, PID: os.Getpid(), At: wall, Clean: clean}
	if d := g.q.pause.until - now; d > 0 {
		s.Paused = wall.Add(d)
	}
	for i := range g.q.limits {
		l := &g.q.limits[i]
		if l.removed || l.learned {
			continue
		}
		l.peak, l.taken = max(l.peak, l.taken), 0
		s.Limits = append(s.Limits, savedLimit{Bound: l.bound(), Unit: l.unit(), Spent: l.meter.Spent(now), Peak: l.peak})
	}
	return s
}

// close writes the last state and lets go of the file.
func (k *keeper) close() error {
	if k.timer != nil {
		k.timer.Stop()
	}
	err := k.save(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lock == nil {
		return err
	}
	closing := k.lock.Close()
	k.lock = nil
	return errors.Join(err, closing)
}
