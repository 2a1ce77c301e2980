package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/mete/internal/cache"
	"github.com/metehq/mete/cmd/mete/internal/runner"
)

// cacheFlags say which answers are kept, and for how long.
type cacheFlags struct {
	dir, ttl string
	only     bool
}

func (f *cacheFlags) register(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.dir, "cache", "", "keep good answers, up to 1 MiB, in `DIR`, and send no request that has one")
	s.StringVar(&f.ttl, "cache-ttl", "30d", "use answers up to `AGE`")
	s.BoolVar(&f.only, "cache-only", false, "send nothing: a row without a stored answer fails")
}

// apply opens the cache.
func (f *cacheFlags) apply(c *cobra.Command, o *runner.Options) error {
	if f.dir == "" {
		if f.only || c.Flags().Changed("cache-ttl") {
			return errors.New("--cache-ttl and --cache-only need --cache DIR")
		}
		return nil
	}
	if o.Bodies != runner.BodiesAuto {
		return fmt.Errorf("--cache keeps bodies, --body %s does not: choose one", o.Bodies)
	}
	text, factor := f.ttl, time.Duration(1)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			text, factor = strconv.FormatUint(n, 10)+"h", 24
		}
	}
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl <= 0 {
		return fmt.Errorf("--cache-ttl %s: write an age as in 30d, 12h or 90m", f.ttl)
	}
	if o.Cache, err = cache.Open(f.dir, ttl*factor); err != nil {
		return &exitError{exitIO, fmt.Errorf("--cache: %w", err)}
	}
	o.CacheOnly = f.only
	return nil
}
