package muster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"muster.dev/api/muster/v1/musterv1connect"
)

const (
	// Pings notice a peer that vanished silently; the broker accepts one every 15 s at most.
	pingInterval = 30 * time.Second
	pingTimeout  = 10 * time.Second
	// An idle connection ends before it has sent a second ping.
	idleTimeout    = 45 * time.Second
	connectTimeout = 20 * time.Second
)

// The services of a broker.
type services struct {
	jobs     musterv1connect.JobsServiceClient
	files    musterv1connect.FilesServiceClient
	clusters musterv1connect.ClustersServiceClient
	identity musterv1connect.IdentityServiceClient
}

// open makes a transport, which connects at the first call: gRPC over HTTP/2, or the Connect protocol for a web address.
func open(of *config) (*http.Transport, services, error) {
	dialer := &net.Dialer{Timeout: connectTimeout}
	transport := &http.Transport{
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: connectTimeout,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingTimeout},
		Protocols:           new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, of.address.network, of.address.target)
		},
	}
	transport.Protocols.SetHTTP2(of.address.tls)
	transport.Protocols.SetHTTP1(of.address.connect)
	transport.Protocols.SetUnencryptedHTTP2(!of.address.tls && !of.address.connect)
	if of.address.tls {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: of.address.host}
		if len(of.ca) > 0 {
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(of.ca) {
				return nil, services{}, refused(ErrConfiguration, "the CA's file has no certificate that can be read")
			}
			transport.TLSClientConfig.RootCAs = pool
		}
	}
	client := &http.Client{Transport: &gate{transport, of.address.text}}
	var options []connect.ClientOption
	if !of.address.connect {
		options = append(options, connect.WithGRPC())
	}
	return transport, services{
		jobs:     musterv1connect.NewJobsServiceClient(client, of.address.url, options...),
		files:    musterv1connect.NewFilesServiceClient(client, of.address.url, options...),
		clusters: musterv1connect.NewClustersServiceClient(client, of.address.url, options...),
		identity: musterv1connect.NewIdentityServiceClient(client, of.address.url, options...),
	}, nil
}

// A gate ends a call that something other than a broker answered, because a repeat would bring the same. It follows no
// redirection, because that would send the token elsewhere.
type gate struct {
	way    http.RoundTripper
	broker string // its address, as written
}

func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.way.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if fault := g.fault(response); fault != nil {
		_ = response.Body.Close()
		return nil, fault
	}
	return response, nil
}

func (g *gate) fault(response *http.Response) error {
	status := response.StatusCode
	if status >= 300 && status < 400 {
		return refused(ErrConfiguration, fmt.Sprintf("%s answers with a redirection (HTTP %d) to %q, which is not followed; name the broker's "+
			"own address", g.broker, status, response.Header.Get("Location")))
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return nil // the library has statuses of gRPC for these
	case http.StatusRequestEntityTooLarge:
		if !isOfBroker(response) {
			return refused(ErrTooMuch, fmt.Sprintf("a proxy at %s takes no request of this size (HTTP 413); raise its limit, or name the "+
				"broker's own address", g.broker))
		}
	}
	if status >= 400 && status < 500 && !isOfBroker(response) {
		return refused(ErrConfiguration, fmt.Sprintf("what answers at %s is no broker, or a proxy that refuses the request (HTTP %d)", g.broker,
			status))
	}
	return nil
}

// isOfBroker returns whether an error has the form of a broker's error.
func isOfBroker(response *http.Response) bool {
	kind := response.Header.Get("Content-Type")
	return strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "application/connect") ||
		strings.HasPrefix(kind, "application/grpc")
}

// authorization is the header's value for a call made now; empty: none.
func (c *config) authorization() (string, error) {
	token, err := c.token()
	if err != nil || token == "" {
		return "", err
	}
	if !c.address.tls && !c.address.staysHere {
		return "", refused(ErrConfiguration, "the token would travel to "+c.address.text+
			" in the clear; use tls:HOST:PORT or https://HOST:PORT")
	}
	return "Bearer " + token, nil
}
