#!/bin/sh
# A batch file under requests and tokens per minute together: neither is ever
# exceeded by the stub's own count, and the tokens are used.
exec go run ./cmd/mete/internal/verify/proof tokens
