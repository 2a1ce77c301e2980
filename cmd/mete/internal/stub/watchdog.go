package stub

import (
	"sync/atomic"
	"time"
)

// watchdog measures how late this process runs: it sleeps a millisecond at a
// time and keeps the longest delay beyond that.
type watchdog struct {
	worst   atomic.Int64
	quit    chan struct{}
	stopped chan struct{}
}

func (w *watchdog) start() {
	w.quit, w.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(w.stopped)
		t := time.NewTimer(time.Millisecond)
		defer t.Stop()
		for {
			due := time.Now().Add(time.Millisecond)
			t.Reset(time.Millisecond)
			select {
			case <-w.quit:
				return
			case <-t.C:
			}
			if late := int64(time.Since(due)); late > w.worst.Load() {
				w.worst.Store(late)
			}
		}
	}()
}

// stop ends the watchdog and waits for it.
func (w *watchdog) stop() {
	if w.quit != nil {
		close(w.quit)
		<-w.stopped
	}
}
