#!/bin/sh
# Nginx's own limit_req refuses nothing, and hardly any time is lost.
exec go run ./cmd/mete/internal/verify/proof nginx
