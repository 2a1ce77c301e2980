package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	maxPending  = 32 << 20 // bytes in a batch, of which two may wait for a slow disk
	syncEvery   = time.Second
	syncRecords = 1000
	maxSpare    = 1 << 20 // larger buffers are not used again
	retryEvery  = 200 * time.Millisecond
)

// file is what a writer needs of *os.File.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// UnwrittenError says that Close had to give up finished records.
type UnwrittenError struct {
	Records int
	Err     error // why
}

func (e *UnwrittenError) Error() string {
	return fmt.Sprintf("%d finished records could not be written: %v", e.Records, e.Err)
}

func (e *UnwrittenError) Unwrap() error { return e.Err }

// Batch is a group of records that are written together.
type Batch struct {
	buf     []byte
	records int
	done    chan struct{}
	err     error // valid once done is closed
}

// Wait blocks until the records are written (on the disk, with Always), and
// returns nil then. Otherwise it returns the error of ctx, after which the
// record may still be written, or the one for which the record was given up.
func (b *Batch) Wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	default:
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writer appends records to a file, by one goroutine that writes, with one
// write(2), whatever came in while it wrote the batch before (group commit:
// DeWitt et al., "Implementation techniques for main memory database systems",
// 1984). A second goroutine forces them to disk, so that a slow disk does not
// hold up rows, whose permits wait for write(2) only.
type writer struct {
	f      file
	policy Fsync
	limit  int // bytes in a batch, unless it is one record

	mu      sync.Mutex
	work    sync.Cond // for the writing goroutine
	space   sync.Cond // for Append
	next    *Batch    // being filled
	active  *Batch    // being written, nil if idle
	pos     int       // bytes of active that are written
	size    int64     // of the file
	written int64     // records
	synced  int64     // of these
	retry   bool      // a failed write is to be tried again
	failing bool      // the last write failed
	gone    bool      // the reader has, nothing can be retried
	closing bool
	err     error         // first error, kept
	syncErr error         // first error of Sync
	spare   []byte        // buffer for the batch after next
	trouble chan struct{} // closed with it
	round   chan struct{} // closed after the attempt to write or sync; nil if nobody waits

	dirty    chan struct{} // something to sync
	urge     chan struct{} // sync at once
	stopSync chan struct{}
	ended    sync.WaitGroup
	once     sync.Once
	closeErr error
}

func newWriter(f file, policy Fsync, size int64) *writer {
	w := &writer{
		f: f, policy: policy, limit: maxPending, size: size,
		next:     newBatch(nil),
		trouble:  make(chan struct{}),
		dirty:    make(chan struct{}, 1),
		urge:     make(chan struct{}, 1),
		stopSync: make(chan struct{}),
	}
	w.work.L = &w.mu
	w.space.L = &w.mu
	w.ended.Go(w.writeLoop)
	if policy == EverySecond {
		w.ended.Go(w.syncLoop)
	}
	return w
}

func newBatch(buf []byte) *Batch { return &Batch{buf: buf[:0], done: make(chan struct{})} }

// Append queues one record, a line with its line feed, and copies it. It blocks
// only while more than 64 MiB wait for a disk that is slow. If the disk fails,
// records are kept in memory instead: they are bounded by the rows in flight,
// as long as each holds its permit until its Batch is done.
func (w *writer) Append(line []byte) (*Batch, error) {
	if i := bytes.IndexByte(line, '\n'); i != len(line)-1 || i <= 0 {
		return nil, errors.New("a record must be one line")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next.records > 0 && len(w.next.buf)+len(line) > w.limit && !w.failing && !w.closing {
		w.space.Wait()
	}
	switch {
	case w.gone:
		return nil, ErrReaderGone
	case w.closing:
		return nil, ErrClosed
	}
	b := w.next
	b.buf = append(b.buf, line...)
	b.records++
	if b.records == 1 {
		w.work.Signal()
	}
	return b, nil
}

// Err returns the first error that met the output, nil if all is well. Later
// success does not clear it: after it, admit no more rows.
func (w *writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Trouble is closed when Err becomes other than nil.
func (w *writer) Trouble() <-chan struct{} { return w.trouble }

// Pending returns how many records are not written yet.
func (w *writer) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending()
}

func (w *writer) pending() int {
	n := w.next.records
	if w.active != nil {
		n += w.active.records
	}
	return n
}

// Flush returns when all records are written and, unless Never, on the disk. A
// write that fails is tried again five times a second until ctx ends; then
// Flush returns the reason of the failure, or that of ctx. Nothing is given up.
func (w *writer) Flush(ctx context.Context) error {
	for {
		w.mu.Lock()
		switch {
		case w.gone:
			w.mu.Unlock()
			return ErrReaderGone
		case w.pending() == 0 && (w.policy != EverySecond || w.synced == w.written):
			err := w.syncErr
			w.mu.Unlock()
			return err
		case w.closing:
			w.mu.Unlock()
			return ErrClosed
		}
		w.retry = true
		if w.round == nil {
			w.round = make(chan struct{})
		}
		round := w.round
		w.work.Signal()
		if w.policy == EverySecond && w.pending() == 0 {
			signal(w.urge)
		}
		w.mu.Unlock()
		select {
		case <-round:
		case <-ctx.Done():
			return w.reason(ctx)
		}
		w.mu.Lock()
		failing := w.failing
		w.mu.Unlock()
		if !failing {
			continue
		}
		timer := time.NewTimer(retryEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return w.reason(ctx)
		}
	}
}

func (w *writer) reason(ctx context.Context) error {
	if err := w.Err(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// writeLoop is the one goroutine that writes.
func (w *writer) writeLoop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for !w.closing && (w.pending() == 0 || w.failing && !w.retry) {
			w.work.Wait()
		}
		if w.pending() == 0 {
			return // closing
		}
		if w.active == nil {
			// Rows that are about to finish join the batch: fewer writes.
			w.mu.Unlock()
			runtime.Gosched()
			w.mu.Lock()
			w.active, w.next, w.pos = w.next, newBatch(w.spare), 0
			w.spare = nil
			w.space.Broadcast()
		}
		w.retry = false
		w.attempt()
		if w.active == nil {
			continue
		}
		if w.closing || w.gone {
			w.giveUp()
		}
	}
}

// attempt tries to write the rest of the active batch. It is called, and
// returns, with the lock held.
func (w *writer) attempt() {
	b := w.active
	w.mu.Unlock()
	n, err := writeAll(w.f, b.buf[w.pos:])
	var syncErr error
	if err == nil && w.policy == Always {
		syncErr = w.f.Sync()
	}
	w.mu.Lock()
	w.pos += n
	w.size += int64(n)
	w.failing = err != nil
	if err != nil {
		w.fail(err)
	} else {
		w.written += int64(b.records)
		w.active = nil
		if cap(b.buf) <= maxSpare {
			w.spare = b.buf
		}
		b.buf = nil
		if syncErr != nil {
			w.failSync(syncErr)
			b.err = syncErr
		}
		close(b.done)
		if w.policy == EverySecond {
			signal(w.dirty)
			if w.written-w.synced >= syncRecords {
				signal(w.urge)
			}
		}
	}
	w.endRound()
}

func writeAll(f file, b []byte) (n int, err error) {
	for n < len(b) {
		k, err := f.Write(b[n:])
		n += k
		if err != nil {
			return n, err
		}
		if k == 0 {
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}

// fail notes an error; the first one is kept.
func (w *writer) fail(err error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		w.gone = true
		err = ErrReaderGone
	}
	if w.err == nil {
		w.err = err
		close(w.trouble)
	}
	w.space.Broadcast()
}

// failSync notes that written records may not outlive a power cut. Trying again
// would prove nothing: after an error the kernel may take the pages for clean,
// as PostgreSQL found out in 2018.
func (w *writer) failSync(err error) {
	if w.syncErr == nil {
		w.syncErr = fmt.Errorf("the last records may not survive a power cut: %w", err)
	}
	w.fail(w.syncErr)
}

func (w *writer) endRound() {
	if w.round != nil {
		close(w.round)
		w.round = nil
	}
}

// giveUp ends all batches with the error. What was written of the one that got
// stuck is cut back to whole records; truncating works on a full disk too.
func (w *writer) giveUp() {
	lost := 0
	if w.active != nil {
		whole := bytes.LastIndexByte(w.active.buf[:w.pos], '\n') + 1
		if whole < w.pos {
			if err := w.f.Truncate(w.size - int64(w.pos-whole)); err != nil {
				w.fail(err)
			} else {
				w.size -= int64(w.pos - whole)
			}
		}
		lost = w.active.records - bytes.Count(w.active.buf[:whole], []byte{'\n'})
	}
	lost += w.next.records
	err := w.err
	if !w.gone {
		err = &UnwrittenError{Records: lost, Err: w.err}
	}
	w.closeErr = err
	for _, b := range []*Batch{w.active, w.next} {
		if b != nil {
			b.err = err
			close(b.done)
		}
	}
	w.active, w.next, w.pos, w.failing = nil, newBatch(nil), 0, false
	w.space.Broadcast()
}

// syncLoop forces written records to disk a second after the first of them, or
// when there are many.
func (w *writer) syncLoop() {
	for {
		select {
		case <-w.dirty:
		case <-w.stopSync:
			return
		}
		timer := time.NewTimer(syncEvery)
		select {
		case <-timer.C:
		case <-w.urge:
		case <-w.stopSync:
		}
		timer.Stop()
		w.mu.Lock()
		upTo := w.written
		w.mu.Unlock()
		err := w.f.Sync()
		w.mu.Lock()
		if err != nil {
			w.failSync(err)
		}
		w.synced = upTo
		w.endRound()
		w.mu.Unlock()
	}
}

func (w *writer) close() error {
	w.once.Do(func() {
		w.mu.Lock()
		w.closing = true
		w.retry = true
		w.work.Signal()
		w.space.Broadcast()
		w.mu.Unlock()
		close(w.stopSync)
		w.ended.Wait()
		var err error
		if w.policy != Never {
			err = w.f.Sync()
		}
		err = errors.Join(err, w.f.Close())
		if w.closeErr == nil {
			w.closeErr = w.syncErr
		}
		if w.closeErr == nil {
			w.closeErr = err
		}
	})
	return w.closeErr
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
