# Bare `make` explains itself: every target with a "##" comment is listed.
.DEFAULT_GOAL := help
.PHONY: help build demo test lint verify headline bench simulate fuzz man completions clean

RELEASE  ?= $(shell git describe --tags --abbrev=0 2>/dev/null || echo dev)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
PROOFS   ?=

# -buildvcs=false: a checkout that belongs to another user must build as well.
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/mete, one static binary
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.release=$(RELEASE) -X main.commit=$(COMMIT)' -o bin/mete ./cmd/mete

demo: build ## see it work: a naive fan-out beside mete, no network, under a minute
	@bin/mete demo

test: ## vet and test every module with the race detector, under 8 minutes
	@scripts/test

lint: ## check format, mistakes, words and module files, one line per check
	@scripts/lint

verify: build ## run the long proofs and print every figure; PROOFS="nginx kill" runs some
	@scripts/verify/run $(PROOFS)

headline: ## measure the published figures, with the ratio ideal/actual
	@go run ./bench/headline

bench: ## measure mete beside its peers, and write bench/RESULTS.md
	@go run ./bench

simulate: ## see how limiters of concurrency fare in 18 simulated scenarios
	@go run ./internal/simulate/cmd

fuzz: ## run every fuzz target for FUZZTIME=30s
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

man: build ## write the man pages to dist/man; man -M dist/man mete-run
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} bin/mete docs man dist/man/man1

completions: build ## write completions for bash, zsh, fish and PowerShell to dist/completions
	@mkdir -p dist/completions
	@bin/mete completion bash > dist/completions/mete.bash
	@bin/mete completion zsh > dist/completions/_mete
	@bin/mete completion fish > dist/completions/mete.fish
	@bin/mete completion powershell > dist/completions/mete.ps1

clean: ## remove what was built
	@rm -rf bin dist
