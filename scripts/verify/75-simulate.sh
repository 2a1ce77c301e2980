#!/bin/sh
# Limiters of concurrency in 18 simulated scenarios: ours reaches its figures and
# has at least twice the goodput of each other one in its worst scenario; without
# any of its parts it does not.
exec go run ./internal/simulate/cmd -check
