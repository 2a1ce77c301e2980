#!/bin/sh
# At many rates no window above the limit and hardly any of it unused; also with
# a busy core, and after mete was stopped for two seconds.
exec go run ./cmd/mete/internal/verify/proof rates
