#!/bin/sh
# Every fuzz target of the workspace.
exec make --no-print-directory fuzz
