package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// disk is a file on a disk that has so much room, writes at most so much at a
// time, and can be stopped.
type disk struct {
	mu      sync.Mutex
	data    bytes.Buffer
	room    int // bytes; negative: no end
	chunk   int // 0: no limit
	gate    chan struct{}
	syncErr error
	writes  int
	syncs   int
}

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil {
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.chunk > 0 && len(p) > d.chunk {
		p = p[:d.chunk]
	}
	var err error
	if d.room >= 0 && len(p) > d.room {
		p, err = p[:d.room], syscall.ENOSPC
	}
	if d.room >= 0 {
		d.room -= len(p)
	}
	d.data.Write(p)
	return len(p), err
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	return d.syncErr
}

func (d *disk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.data.Truncate(int(size))
	return nil
}

func (d *disk) Close() error { return nil }

func (d *disk) state() (content string, writes, syncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.data.String(), d.writes, d.syncs
}

func numbered(from, to int) (lines []string) {
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf("{\"id\":%d}\n", i))
	}
	return lines
}

func appendAll(t *testing.T, w *writer, lines []string) (last *Batch) {
	t.Helper()
	for _, line := range lines {
		var err error
		if last, err = w.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// While one write is under way, all that comes in goes into the next.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1, gate: make(chan struct{})}
		w := newWriter(d, Never, 0)
		lines := numbered(0, 100)
		appendAll(t, w, lines[:1])
		synctest.Wait()
		last := appendAll(t, w, lines[1:])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := last.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not written, and Wait says %v", err)
		}
		close(d.gate)
		if err := last.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if got, writes, _ := d.state(); got != strings.Join(lines, "") || writes != 2 {
			t.Errorf("%d writes of %q", writes, got)
		}
	})
}

func TestFsync(t *testing.T) {
	for _, tt := range []struct {
		policy                            Fsync
		written, second, thousand, closed int // calls of Sync by then
	}{
		{EverySecond, 0, 1, 2, 3}, {Always, 1, 1, 2, 3}, {Never, 0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{room: -1}
			w := newWriter(d, tt.policy, 0)
			check := func(when string, want int) {
				t.Helper()
				if _, _, syncs := d.state(); syncs != want {
					t.Errorf("%s, %s: %d syncs, want %d", tt.policy, when, syncs, want)
				}
			}
			if err := appendAll(t, w, numbered(0, 1)).Wait(t.Context()); err != nil {
				t.Error(err)
			}
			check("written", tt.written)
			time.Sleep(syncEvery + time.Millisecond)
			synctest.Wait()
			check("after a second", tt.second)
			w.mu.Lock() // so that they are one batch
			w.next.buf = append(w.next.buf, strings.Join(numbered(0, syncRecords), "")...)
			w.next.records = syncRecords
			w.work.Signal()
			w.mu.Unlock()
			synctest.Wait()
			check("after 1,000 records", tt.thousand)
			if err := w.close(); err != nil {
				t.Error(err)
			}
			check("closed", tt.closed)
		})
	}
}

// A full disk loses nothing while the process lives, and the file never holds
// half a record in its middle.
func TestDiskFull(t *testing.T) {
	for _, chunk := range []int{0, 1, 7} {
		for room := range 60 {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{room: room, chunk: chunk}
				w := newWriter(d, EverySecond, 0)
				lines := numbered(0, 10) // 9 bytes each
				appendAll(t, w, lines[:4])
				synctest.Wait()
				last := appendAll(t, w, lines[4:])
				<-w.Trouble()
				if !errors.Is(w.Err(), syscall.ENOSPC) {
					t.Fatalf("Err: %v", w.Err())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if err := w.Flush(ctx); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("Flush on a full disk: %v", err)
				}
				if w.Pending() == 0 {
					t.Fatal("nothing pending")
				}
				go func() {
					time.Sleep(time.Second)
					d.mu.Lock()
					d.room = -1
					d.mu.Unlock()
				}()
				if err := w.Flush(t.Context()); err != nil {
					t.Fatalf("Flush with room: %v", err)
				}
				if err := last.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if w.Err() == nil {
					t.Fatal("the error is forgotten")
				}
				if err := w.close(); err != nil {
					t.Fatal(err)
				}
				if got, _, _ := d.state(); got != strings.Join(lines, "") {
					t.Fatalf("room %d, chunk %d: %q", room, chunk, got)
				}
			})
		}
	}
}

// If the disk stays full, Close says how many records are lost and leaves whole
// lines behind.
func TestGiveUp(t *testing.T) {
	for room := range 60 {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{room: room}
			w := newWriter(d, EverySecond, 0)
			lines := numbered(0, 10)
			appendAll(t, w, lines[:3])
			synctest.Wait()
			last := appendAll(t, w, lines[3:])
			synctest.Wait()
			err := w.close()
			unwritten, ok := errors.AsType[*UnwrittenError](err)
			if !ok || !errors.Is(err, syscall.ENOSPC) || unwritten.Records != 10-room/9 {
				t.Fatalf("room %d: %v", room, err)
			}
			if werr := last.Wait(t.Context()); !errors.Is(werr, syscall.ENOSPC) {
				t.Fatalf("Wait: %v", werr)
			}
			if got, _, _ := d.state(); got != strings.Join(lines[:room/9], "") {
				t.Fatalf("room %d: %q", room, got)
			}
			if w.close() != err {
				t.Fatal("the second Close says something else")
			}
		})
	}
}

func TestSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1, syncErr: syscall.EIO}
		w := newWriter(d, EverySecond, 0)
		if err := appendAll(t, w, numbered(0, 1)).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		<-w.Trouble()
		for _, err := range []error{w.Err(), w.Flush(t.Context()), w.close()} {
			if !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(&disk{room: -1, syncErr: syscall.EIO}, Always, 0)
		if err := appendAll(t, w, numbered(0, 1)).Wait(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Error("a record that may not be on the disk counts as written:", err)
		}
		w.close()
	})
}

// Flush has the disk's word for everything before it.
func TestFlushSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1}
		w := newWriter(d, EverySecond, 0)
		start := time.Now()
		for range 5 {
			appendAll(t, w, numbered(0, 3))
			if err := w.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			w.mu.Lock()
			if w.synced != w.written || w.pending() != 0 {
				t.Errorf("%d of %d synced", w.synced, w.written)
			}
			w.mu.Unlock()
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v", d)
		}
		w.close()
	})
}

// A slow disk holds callers back instead of filling the memory.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{room: -1, gate: make(chan struct{})}
		w := newWriter(d, Never, 0)
		w.limit = 16 << 10
		line := append(bytes.Repeat([]byte{'x'}, 1<<10-1), '\n')
		appended := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 40 {
				if _, err := w.Append(line); err != nil {
					t.Error(err)
				}
				w.mu.Lock()
				appended++
				w.mu.Unlock()
			}
		}()
		synctest.Wait()
		w.mu.Lock()
		if n := appended; n < 16 || n > 32 {
			t.Errorf("%d KiB are waiting", n)
		}
		w.mu.Unlock()
		close(d.gate)
		<-done
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if got, _, _ := d.state(); len(got) != 40*len(line) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func TestManyWriters(t *testing.T) {
	d := &disk{room: -1}
	w := newWriter(d, EverySecond, 0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for _, line := range numbered(g*1000, g*1000+200) {
				b, err := w.Append([]byte(line))
				if err == nil {
					err = b.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got, _, _ := d.state(); !strings.Contains(got, line) {
					t.Errorf("%q counts as written and is not", line)
				}
			}
		})
	}
	wg.Wait()
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if got, _, _ := d.state(); strings.Count(got, "\n") != 1600 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}
