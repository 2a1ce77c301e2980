package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// fanOut is the program that mete is compared with, written as it usually is:
// so many workers, the standard client, and a retry that sleeps longer each
// time. It asks for every URL until it has an answer or ctx ends.
func fanOut(ctx context.Context, workers int, urls []string) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	todo := make(chan string)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for url := range todo {
				delay := firstDelay
				for !fetch(ctx, client, url) && ctx.Err() == nil {
					select {
					case <-time.After(delay):
					case <-ctx.Done():
					}
					delay = min(2*delay, longestDelay)
				}
			}
		})
	}
	for _, url := range urls {
		todo <- url
	}
	close(todo)
	wg.Wait()
	return nil
}

const (
	firstDelay   = 250 * time.Millisecond
	longestDelay = 2 * time.Second
)

// fetch reports whether url was answered.
func fetch(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}
