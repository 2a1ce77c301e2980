#!/bin/sh
# Eight situations in real runs, from a limit that sets the pace to a leaked
# permit: each is told within five seconds, with what to do about it.
exec go run ./cmd/mete/internal/verify/proof diagnosis
