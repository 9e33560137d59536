package muster

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.dev/api/muster/v1"
	"muster.dev/api/muster/v1/musterv1connect"
)

// A broker that answers as a test tells it to: for what a real one seldom does. Each list has a function for one call after the
// other.
type brokenBroker struct {
	musterv1connect.UnimplementedJobsServiceHandler
	musterv1connect.UnimplementedFilesServiceHandler

	mutex    sync.Mutex
	requests []proto.Message
	submits  []func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error)
	batches  []func(*musterv1.SubmitJobsRequest) (*musterv1.SubmitJobsResponse, error)
	counts   []func() (*musterv1.CountJobsResponse, error)
	watches  []func(context.Context, *connect.ServerStream[musterv1.WatchJobsResponse]) error
	logs     []func(*connect.ServerStream[musterv1.ReadLogResponse]) error
	fetches  []func(*connect.ServerStream[musterv1.FetchFilesResponse]) error
}

// next takes the first of a list; a call too many panics, which is an INTERNAL error.
func next[T any](b *brokenBroker, list *[]T, request proto.Message) T {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.requests = append(b.requests, proto.Clone(request))
	one := (*list)[0]
	*list = (*list)[1:]
	return one
}

func (b *brokenBroker) asked() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.requests)
}

func (b *brokenBroker) SubmitJob(_ context.Context, request *connect.Request[musterv1.SubmitJobRequest]) (
	*connect.Response[musterv1.SubmitJobResponse], error) {
	return responseOf(next(b, &b.submits, request.Msg)(request.Msg))
}

func (b *brokenBroker) SubmitJobs(_ context.Context, request *connect.Request[musterv1.SubmitJobsRequest]) (
	*connect.Response[musterv1.SubmitJobsResponse], error) {
	return responseOf(next(b, &b.batches, request.Msg)(request.Msg))
}

func (b *brokenBroker) CountJobs(_ context.Context, request *connect.Request[musterv1.CountJobsRequest]) (
	*connect.Response[musterv1.CountJobsResponse], error) {
	return responseOf(next(b, &b.counts, request.Msg)())
}

func (b *brokenBroker) WatchJobs(ctx context.Context, request *connect.Request[musterv1.WatchJobsRequest],
	stream *connect.ServerStream[musterv1.WatchJobsResponse]) error {
	return next(b, &b.watches, request.Msg)(ctx, stream)
}

func (b *brokenBroker) ReadLog(_ context.Context, request *connect.Request[musterv1.ReadLogRequest],
	stream *connect.ServerStream[musterv1.ReadLogResponse]) error {
	return next(b, &b.logs, request.Msg)(stream)
}

func (b *brokenBroker) FetchFiles(_ context.Context, request *connect.Request[musterv1.FetchFilesRequest],
	stream *connect.ServerStream[musterv1.FetchFilesResponse]) error {
	return next(b, &b.fetches, request.Msg)(stream)
}

func responseOf[A any](answer *A, err error) (*connect.Response[A], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// client starts the broker on a socket, and returns a client of it.
func (b *brokenBroker) client(t *testing.T, options Options) *Client {
	t.Helper()
	return b.listen(t, "unix", filepath.Join(t.TempDir(), "b.sock"), options)
}

func (b *brokenBroker) listen(t *testing.T, network, at string, options Options) *Client {
	t.Helper()
	listener, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(musterv1connect.NewJobsServiceHandler(b))
	mux.Handle(musterv1connect.NewFilesServiceHandler(b))
	server := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	server.Protocols.SetHTTP1(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	options.Broker = "unix:" + at
	if network == "tcp" {
		options.Broker = "http://" + listener.Addr().String()
	}
	client, err := NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// refuse is an error of a broker, with details.
func refuse(code connect.Code, message string, details ...proto.Message) error {
	made := connect.NewError(code, errorText(message))
	for _, one := range details {
		detail, err := connect.NewErrorDetail(one)
		if err != nil {
			panic(err)
		}
		made.AddDetail(detail)
	}
	return made
}

type errorText string

func (e errorText) Error() string { return string(e) }
