#!/bin/sh
# At a cold start slow TLS handshakes bunch no requests.
exec go run ./cmd/mete/internal/verify/proof tls
