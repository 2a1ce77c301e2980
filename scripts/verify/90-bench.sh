#!/bin/sh
# What an operation costs, in time and allocations.
exec make --no-print-directory bench
