#!/bin/sh
# 200 times kill -9, and every row once.
exec go run ./cmd/mete/internal/verify/proof kill
