#!/bin/sh
# What a provider says of its limits is heeded, by the stub's own record: one 429
# stops all calls for as long as it asks and they come back step by step; quota
# headers keep the rate; a quota that is spent ends the provider.
exec go run ./cmd/mete/internal/verify/proof learn
