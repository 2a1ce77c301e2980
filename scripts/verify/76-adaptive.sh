#!/bin/sh
# -c auto beside fixed numbers at a provider with a knee at 32: as much as the
# best of them and a short queue; within five seconds at a new knee; back after
# an outage; and unmoved where a rate sets the pace.
exec go run ./cmd/mete/internal/verify/proof adaptive
