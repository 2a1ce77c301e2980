#!/bin/sh
# mete beside its peers: a line for each comparison, with its target. A target
# that is missed does not fail the proof; bench/RESULTS.md says why it is.
exec make --no-print-directory bench
