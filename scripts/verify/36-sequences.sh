#!/bin/sh
# Every sequence of eight operations of three callers, in every setting of
# permits, limits, lanes, caps and reserves: the queue does at every instant
# what its model does. go test tries seven where eight would take too long.
set -eu
out=$(METE_SEQUENCES=8 go test -count=1 -timeout 30m -run '^TestAllSequences$' -v .) || { echo "$out" | tail -20; exit 1; }
echo "$out" | sed -n 's/^.*_test.go:[0-9]*: //p'
