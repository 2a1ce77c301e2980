package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// forever is for how long a provider stays away that was given up.
const forever = 1000 * 24 * time.Hour

// traffic is what was told of where a provider's rows go.
type traffic struct {
	mu     sync.Mutex
	until  time.Time // rows are known to go elsewhere
	away   bool
	failed []string // where rows went that failed here
}

// moved tells once that rows of a provider go to the next one.
func (r *run) moved(w *route, why string, e *mete.Rejected) {
	from := w.list[w.at]
	to := ""
	for i, p := range w.list {
		if !w.asked[i] && !r.parkedAlone(p) {
			to = p.name
			break
		}
	}
	if to == "" {
		return
	}
	t := &from.traffic
	t.mu.Lock()
	now := time.Now()
	news := false
	switch {
	case e != nil && e.RetryAfter > 0:
		news = now.After(t.until)
		t.until, t.away = now.Add(e.RetryAfter), true
		if why == "" {
			why = refusalText(from, e)
		}
	case !slices.Contains(t.failed, to):
		news = true
		t.failed = append(t.failed, to)
	}
	t.mu.Unlock()
	if news {
		r.o.Note(fmt.Sprintf("rows of %s go to %s: %s", from.name, to, why))
	}
}

// returned tells once that a provider takes its rows again.
func (r *run) returned(w *route, x *exchanged) {
	if len(w.list) == 1 || w.at > 0 || x.verdict.kind != "" {
		return
	}
	p := w.list[0]
	t := &p.traffic
	t.mu.Lock()
	news := t.away && time.Now().After(t.until)
	if news {
		t.away = false
	}
	t.mu.Unlock()
	if news {
		r.o.Note("rows of " + p.name + " go to it again")
	}
}

// refusalText says why a provider does not take rows, and until when.
func refusalText(p *provider, e *mete.Rejected) string {
	opens := time.Now().Add(e.RetryAfter)
	at := opens.UTC().Format("2006-01-02 15:04:05 UTC")
	switch e.Reason {
	case mete.Budget:
		what := strings.TrimPrefix(e.Bound, "limit:")
		if b := p.budget(e); b != nil {
			return fmt.Sprintf("the budget %s of %s is spent; it opens again at %s", what, p.name, at)
		}
		return fmt.Sprintf("the limit %s of %s is used up; it opens again at %s", what, p.name, at)
	case mete.Breaker:
		return fmt.Sprintf("the breaker of %s is open", p.name)
	}
	return fmt.Sprintf("%s asks to stay away for %v", p.name, e.RetryAfter.Round(time.Second))
}

// budget is the budget of a provider that refused a call; nil if it was
// something else.
func (p *provider) budget(e *mete.Rejected) *mete.Limit {
	if e == nil || e.Reason != mete.Budget {
		return nil
	}
	for i := range p.spec.Gate.Limits {
		l := &p.spec.Gate.Limits[i]
		name := l.Name
		if name == "" {
			name = l.String()
		}
		if l.Budget && e.Bound == "limit:"+name {
			return l
		}
	}
	return nil
}

// spent gives up a provider that refuses calls for longer than a run waits.
func (r *run) spent(p *provider, e *mete.Rejected) {
	why := refusalText(p, e)
	switch {
	case e.Reason == mete.Paused:
		why = fmt.Sprintf("%s asks to stay away for %v, more than max_pause %v", p.name, e.RetryAfter.Round(time.Second), p.spec.MaxPause)
	case e.Reason == mete.Breaker:
		return
	}
	if p.budget(e) != nil {
		r.giveUpOn(p, why, &r.spentBudgets)
		return
	}
	r.parkProvider(p, why)
}
