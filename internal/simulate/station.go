package simulate

// station serves calls: a fixed number at a time, first come first served, or
// all at once at a common pace.
type station struct {
	busy    int
	waiting line[int32]
	shared  shared
}

// load is how many calls are being served or wait to be.
func (s *station) load() int { return s.busy + s.waiting.len() + len(s.shared.work.heap) }

// enter reports whether there was room for the call.
func (s *station) enter(w *world, n int32) bool {
	p := &w.provider
	switch {
	case p.Servers == 0:
		s.shared.add(w, n)
	case s.busy < p.Servers:
		s.serve(w, n)
	case s.waiting.len() < p.Room:
		s.waiting.push(n)
	default:
		return false
	}
	return true
}

func (s *station) serve(w *world, n int32) {
	s.busy++
	w.schedule(w.now+w.provider.Service(w.service, w.now), event{kind: served, call: n})
}

func (s *station) served(w *world, e event) {
	if w.provider.Servers == 0 {
		s.shared.served(w, e)
		return
	}
	s.busy--
	s.leave(w, e.call)
	for s.waiting.len() > 0 && s.busy < w.provider.Servers {
		s.serve(w, s.waiting.pop())
	}
}

func (s *station) leave(w *world, n int32) {
	o := success
	if w.provider.Errors > 0 && w.luck.Float64() < w.provider.Errors {
		o = failed
	}
	w.answer(n, o, w.provider.Network/2)
}
