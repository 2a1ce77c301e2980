#!/bin/sh
# The published figures, measured.
exec make --no-print-directory headline
