#!/bin/sh
# Every fuzz target of the workspace, and what reads the headers of strangers
# for QUOTA_FUZZTIME (10m).
make --no-print-directory fuzz || exit 1
exec go test ./quota -run '^$' -fuzz '^FuzzParse$' -fuzztime "${QUOTA_FUZZTIME:-10m}" -parallel 1
