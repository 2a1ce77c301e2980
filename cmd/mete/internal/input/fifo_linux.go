package input

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// openFile opens a file for reading. Opening a FIFO does not wait for a writer
// in open(2), which nothing could end: the first read waits, and Close ends it.
func openFile(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &fifo{File: f}, nil
}

type fifo struct {
	*os.File
	met bool // a writer has been there
}

func (f *fifo) Read(b []byte) (int, error) {
	if !f.met {
		if err := f.wait(); err != nil {
			return 0, err
		}
		f.met = true
	}
	return f.File.Read(b)
}

// wait blocks until a writer has written or come and gone. A read before that
// would return 0, which means the end of the input (fifo(7)); poll(2) tells the
// two apart.
func (f *fifo) wait() error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 0)
		if err != nil && err != unix.EINTR {
			failed = err
			return true
		}
		return n > 0
	})
	if err == nil {
		err = failed
	}
	return err
}
