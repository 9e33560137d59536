package muster

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// proxyOf starts what answers each request with that status and that header, and says so in HTML.
func proxyOf(t *testing.T, status int, header, value string) (client *Client, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer.Header().Set("Content-Type", "text/html")
		answer.Header().Set(header, value)
		answer.WriteHeader(status)
		_, _ = fmt.Fprintf(answer, "<html>%d</html>", status)
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(Options{Broker: server.URL, Token: tokenOf("a"), CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, asked
}

func TestNoRedirectionIsFollowedWithTheToken(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var heard atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { heard.Add(1) }))
		client, asked := proxyOf(t, status, "Location", elsewhere.URL)
		_, err := client.Submit(t.Context(), Job{Script: "true"})
		_, count := client.Count(t.Context(), "")
		if !errors.Is(err, ErrConfiguration) || !errors.Is(count, ErrConfiguration) || !strings.Contains(err.Error(), elsewhere.URL) {
			t.Error(status, err, count)
		}
		if heard.Load() != 0 || asked.Load() != 2 {
			t.Error(status, heard.Load(), asked.Load())
		}
		elsewhere.Close()
	}
}

func TestWhatAProxyRefusesIsNotRepeated(t *testing.T) {
	for status, kind := range map[int]error{
		400: ErrConfiguration, 405: ErrConfiguration, 411: ErrConfiguration, 413: ErrTooMuch, 414: ErrConfiguration, 431: ErrConfiguration,
		401: ErrNotLoggedIn, 403: ErrNotAllowed, 404: ErrNotHonoured,
	} {
		client, asked := proxyOf(t, status, "Server", "proxy")
		_, err := client.Submit(t.Context(), Job{Script: "true"})
		watched := client.Job(7).Wait(t.Context())
		if !errors.Is(err, kind) || !errors.Is(watched, kind) || asked.Load() != 2 {
			t.Error(status, err, watched, asked.Load())
		}
	}
}

func TestAProxyWhoseBrokerIsAwayIsAskedAgain(t *testing.T) {
	for _, status := range []int{429, 502, 503, 504} {
		client, asked := proxyOf(t, status, "Server", "proxy")
		client.patience.call = 500 * time.Millisecond
		_, err := client.Submit(t.Context(), Job{Script: "true"})
		if !errors.Is(err, ErrBrokerUnavailable) || asked.Load() < 2 {
			t.Error(status, err, asked.Load())
		}
	}
}

func TestWhatCannotBeSentIsNotRepeated(t *testing.T) {
	it := &brokenBroker{}
	client := it.client(t, Options{})
	_, count := client.Count(t.Context(), "\xff")
	var watch error
	for _, err := range client.Watch(t.Context(), WatchOptions{Filter: "\xff"}) {
		watch = err
	}
	_, rerun := client.Rerun(t.Context(), Which{IDs: []uint64{7}, Reason: "mine"})
	if !errors.Is(rerun, ErrBadRequest) || !errors.Is(count, ErrBadRequest) || !errors.Is(watch, ErrBadRequest) || it.asked() != 0 {
		t.Fatal(rerun, count, watch)
	}
}
