#!/bin/sh
# Ten million generated rows through batch.Map with a call that does nothing:
# the peak resident set stays under 64 MiB and within 8 MiB of that at 100,000.
set -eu
bin=$(mktemp)
trap 'rm -f "$bin"' EXIT
go build -o "$bin" ./batch/internal/flat
for options in '' -ordered; do
	echo "batch.Map, 20 workers $options"
	# shellcheck disable=SC2086 # none or one option
	"$bin" -n 10000000 -workers 20 -max-mib 64 -growth-mib 8 $options
done
