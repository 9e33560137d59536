package muster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"muster.dev/api/muster/v1/musterv1connect"
)

const (
	// A peer that vanished without a word is noticed by pings, which the broker takes every 15 s at most.
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
	client := &http.Client{Transport: transport}
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
