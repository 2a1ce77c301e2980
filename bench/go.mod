module github.com/metehq/mete/bench

go 1.26.0

require (
	github.com/metehq/mete v0.0.0-00010101000000-000000000000
	golang.org/x/sync v0.24.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/metehq/mete => ..
