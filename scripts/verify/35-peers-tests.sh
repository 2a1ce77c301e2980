#!/bin/sh
# The tests of golang.org/x/sync/semaphore and golang.org/x/time/rate, from the
# module cache, against mete; what is left out is listed with its reason.
exec go run ./internal/peertest
