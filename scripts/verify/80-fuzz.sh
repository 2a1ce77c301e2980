#!/bin/sh
# Every fuzz target of the workspace, and what reads the headers of strangers
# for QUOTA_FUZZTIME (10m).
make --no-print-directory fuzz || exit 1
exec scripts/fuzz ./quota FuzzParse "${QUOTA_FUZZTIME:-10m}" -parallel 1
