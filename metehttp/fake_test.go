package metehttp

import (
	"net/http"
	"net/http/httptrace"

	"github.com/metehq/mete"
)

func fixed(g *mete.Gate) func(*http.Request) (*mete.Gate, error) {
	return func(*http.Request) (*mete.Gate, error) { return g, nil }
}

// traced calls the hooks of a request as net/http does for a new connection.
func traced(r *http.Request) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GetConn(r.URL.Host)
		trace.GotConn(httptrace.GotConnInfo{})
	}
}
