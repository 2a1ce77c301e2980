package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals turns what the user and the system send into two contexts: admit ends
// at the first request to stop, hard at the second.
type signals struct {
	admit, hard context.Context
	c           chan os.Signal
	done        chan struct{}

	mu     sync.Mutex
	first  syscall.Signal
	status func()
}

// watchSignals takes over SIGINT, SIGTERM, SIGHUP (unless it is ignored, as
// under nohup) and SIGUSR1. A write to a closed pipe is an error, not a signal.
func watchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 8), done: make(chan struct{})}
	var stopAdmit, stopHard context.CancelFunc
	s.admit, stopAdmit = context.WithCancel(context.Background())
	s.hard, stopHard = context.WithCancel(context.Background())
	signal.Ignore(syscall.SIGPIPE)
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	signal.Notify(s.c, list...)
	go func() {
		for {
			select {
			case <-s.done:
				return
			case sig := <-s.c:
				s.take(sig.(syscall.Signal), stopAdmit, stopHard)
			}
		}
	}()
	return s
}

func (s *signals) take(sig syscall.Signal, stopAdmit, stopHard context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sig == syscall.SIGUSR1:
		if s.status != nil {
			s.status()
		}
	case s.first == 0:
		s.first = sig
		stopAdmit()
	default:
		stopHard()
		signal.Reset() // a third one is the system's
	}
}

// onStatus says what SIGUSR1 does.
func (s *signals) onStatus(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = f
}

// code is the exit code that the first signal asks for; 0 if there was none.
func (s *signals) code() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == 0 {
		return 0
	}
	return 128 + int(s.first)
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.done)
}
