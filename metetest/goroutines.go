package metetest

import (
	"regexp"
	"runtime"
	"strings"
	"testing/synctest"
)

// module is what the functions of this module begin with.
const module = "github.com/metehq/mete"

// NoGoroutines fails the test if a goroutine is still in a call of mete: one
// that was started by it, waits in it, or was called by it. Call it when
// everything has ended.
//
// In a testing/synctest bubble it waits until every other goroutine of the
// bubble is blocked, while time stands still, and judges only these. Elsewhere
// it waits for up to a second, and judges all that are in no bubble, so there
// no test that uses mete may run in parallel.
func NoGoroutines(t TB) {
	t.Helper()
	settle(func() bool { return len(leftover()) == 0 })
	left := leftover()
	if len(left) == 0 {
		return
	}
	t.Errorf("metetest: %s still in a call of mete\n"+
		"  look at: calls that nobody waits for, contexts that are never cancelled, loops over batch.Map in a goroutine; the first of them:\n    %s",
		count(len(left), "goroutine is", "goroutines are"), strings.ReplaceAll(left[0], "\n", "\n    "))
}

// leftover are the stacks of the goroutines of this bubble, or of none, with a
// function of this module in them; the caller's own is left out.
func leftover() []string {
	own, others, _ := strings.Cut(stacks(), "\n\n")
	var left []string
	for stack := range strings.SplitSeq(others, "\n\n") {
		if bubble(stack) == bubble(own) && ours(stack) {
			left = append(left, stack)
		}
	}
	return left
}

// stacks are those of all goroutines, the caller's first.
func stacks() string {
	buf := make([]byte, 1<<16)
	for {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return strings.TrimSpace(string(buf[:n]))
		}
		buf = make([]byte, 2*len(buf))
	}
}

var inBubble = regexp.MustCompile(`synctest bubble (\d+)`)

// bubble is the number of the bubble of a goroutine, empty if it is in none.
func bubble(stack string) string {
	head, _, _ := strings.Cut(stack, "\n")
	if m := inBubble.FindStringSubmatch(head); m != nil {
		return m[1]
	}
	return ""
}

// ours reports whether a function of this module is in the stack, which has two
// lines for each: the function and its place. The module's own tests are users.
func ours(stack string) bool {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		name, ok := strings.CutPrefix(strings.TrimPrefix(lines[i], "created by "), module)
		if ok && (name[0] == '.' || name[0] == '/') && !strings.Contains(lines[i+1], "_test.go:") {
			return true
		}
	}
	return false
}

// rest waits until every other goroutine of the bubble is blocked, and reports
// whether there is a bubble.
func rest() (ok bool) {
	// There is no other way to ask whether there is one.
	defer func() { ok = recover() == nil }()
	synctest.Wait()
	return true
}

// collect runs the garbage collector and the clean-ups that it leads to, which
// are outside any bubble, until done or for some rounds.
func collect(done func() bool) {
	for range 100 {
		runtime.GC()
		runtime.Gosched()
		if done() {
			return
		}
	}
}
