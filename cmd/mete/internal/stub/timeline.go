package stub

// timeline is a sorted record of times. It grows and shrinks by whole chunks,
// so that no operation copies the record. The zero value is empty.
type timeline struct {
	chunks []*[chunk]int64
	n      int
}

const chunk = 4096

func (l *timeline) at(i int) int64 { return l.chunks[i/chunk][i%chunk] }

// insert adds t behind all that are not later and returns its index. The cost
// is proportional to how many are later: none, but for scheduling.
func (l *timeline) insert(t int64) int {
	if l.n == len(l.chunks)*chunk {
		l.chunks = append(l.chunks, new([chunk]int64))
	}
	i := l.n
	l.n++
	for ; i > 0 && l.at(i-1) > t; i-- {
		l.chunks[i/chunk][i%chunk] = l.at(i - 1)
	}
	l.chunks[i/chunk][i%chunk] = t
	return i
}

// after returns the index of the first time later than t.
func (l *timeline) after(t int64) int {
	lo, hi := 0, l.n
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if l.at(mid) > t {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// forget drops times before t, a full chunk at a time.
func (l *timeline) forget(t int64) {
	for l.n > chunk && l.chunks[0][chunk-1] < t {
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		l.n -= chunk
	}
}
