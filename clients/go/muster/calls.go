package muster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

const (
	// The most bytes of one request: the default limit of a gRPC server, less some room for framing.
	maxRequestBytes = 4<<20 - 64<<10
	// A person waits for the answer of a call, but not for a stream.
	maxCallBackoff   = time.Second
	maxStreamBackoff = 5 * time.Second
	firstBackoff     = 100 * time.Millisecond
	// A call that a cluster's agent answers may take longer.
	questionTimeout = 2 * time.Minute
	// Nobody listens on the socket, and no broker has answered this client yet.
	absentPatience = 2 * time.Second
	// The broker's timer of a deadline may be earlier than ours by this much.
	maxDeadlineSkew = time.Second
)

// The time for which this client tries.
type patience struct {
	call           time.Duration // one call, all its attempts together
	stream         time.Duration // a broken stream or upload, without any success
	wasAnswered    atomic.Bool
	address        string // of the broker, for errors, with who named it
	onInterruption func(err error, patience time.Duration)
}

// of returns the part of `most` for which it is worth trying again.
func (p *patience) of(err *Error, most time.Duration) time.Duration {
	if p.wasAnswered.Load() || !err.isTransport() {
		return most
	}
	return min(most, absentPatience)
}

// explain makes a failure of the transport one with the address and the remedy; an answer of the broker stays as it is.
func (p *patience) explain(err *Error) *Error {
	if !err.isTransport() {
		return err
	}
	if err.Code == "DEADLINE_EXCEEDED" {
		return &Error{Message: "the broker at " + p.address + " did not answer in time", Code: err.Code, kind: ErrCallTimeout}
	}
	cause := err.Message[strings.LastIndex(err.Message, ": ")+1:]
	return &Error{Message: fmt.Sprintf("cannot reach the broker at %s: %s. Is it running there? Another one is named by Options.Broker "+
		"or MUSTER_BROKER", p.address, strings.TrimSpace(cause)), Code: err.Code, kind: ErrBrokerUnavailable}
}

func (p *patience) tell(err *Error, most time.Duration) {
	if p.onInterruption != nil && most > 0 {
		p.onInterruption(err, most)
	}
}

// Pauses double, with jitter, so that many clients do not come back at the same time.
type backoff struct{ next, most time.Duration }

func newBackoff(most time.Duration) *backoff { return &backoff{firstBackoff, most} }

func (b *backoff) pause(least time.Duration) time.Duration {
	step := b.next
	b.next = min(b.next*2, b.most)
	pause := time.Duration(float64(step) * (0.5 + rand.Float64()/2))
	if least <= pause {
		return pause
	}
	return time.Duration(float64(least) * (1 + rand.Float64()/2))
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// The client refuses a request that no broker would take, so that it is not repeated in vain.
func checkRequest(message any) error {
	data, err := proto.Marshal(message.(proto.Message))
	if err != nil {
		return &Error{Message: "the request cannot be sent: " + err.Error(), Code: "INVALID_ARGUMENT", kind: ErrBadRequest}
	}
	if len(data) > maxRequestBytes {
		return &Error{Message: fmt.Sprintf("the request has %d bytes and the broker takes %d: keep large scripts and data in files, "+
			"e.g. Job.Workdir", len(data), maxRequestBytes), Code: "INVALID_ARGUMENT", kind: ErrBadRequest}
	}
	return nil
}

// call makes a call, and repeats it while that helps. Each repeat does no harm: those that submit have a request id.
func call[Q, A any](ctx context.Context, c *Client, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error),
	request *Q, timeout time.Duration) (*A, error) {
	if err := checkRequest(request); err != nil {
		return nil, err
	}
	start := time.Now()
	pauses := newBackoff(maxCallBackoff)
	for first := true; ; first = false {
		answer, err := attempt(ctx, c, method, request, start.Add(timeout))
		if err == nil {
			c.patience.wasAnswered.Store(true)
			return answer, nil
		}
		if ended := endOf(ctx, err); ended != nil {
			return nil, ended
		}
		failure := fromConnect(err)
		if failure.kind == ErrConfiguration {
			return nil, failure
		}
		if !failure.isTransport() {
			c.patience.wasAnswered.Store(true)
		}
		most := c.patience.of(failure, timeout)
		pause := pauses.pause(failure.RetryAfter)
		if !failure.mayPass() || time.Since(start)+pause >= most {
			return nil, c.patience.explain(failure)
		}
		if first {
			c.patience.tell(failure, most)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// endOf returns the context's own error if a call ended because of it. The broker knows the deadline, and may say a moment earlier
// that it has passed.
func endOf(ctx context.Context, err error) error {
	deadline, has := ctx.Deadline()
	if has && connect.CodeOf(err) == connect.CodeDeadlineExceeded && time.Until(deadline) < maxDeadlineSkew {
		<-ctx.Done()
	}
	return ctx.Err()
}

func attempt[Q, A any](ctx context.Context, c *Client, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error),
	request *Q, deadline time.Time) (*A, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	outgoing, err := outgoing(c, request)
	if err != nil {
		return nil, err
	}
	answer, err := method(ctx, outgoing)
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

func outgoing[Q any](c *Client, request *Q) (*connect.Request[Q], error) {
	made := connect.NewRequest(request)
	authorization, err := c.config.authorization()
	if authorization != "" {
		made.Header().Set("Authorization", authorization)
	}
	return made, err
}
