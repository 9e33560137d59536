package muster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.dev/api/muster/v1"
)

func info(reason string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Domain: "muster", Reason: reason, Metadata: map[string]string{"request": "0"}}
}

func retryIn(pause time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(pause)}
}

type submitAnswer = func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error)

func submitRefused(err error) submitAnswer {
	return func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error) { return nil, err }
}

func TestASubmitIsRepeatedUnderTheSameRequestID(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		it := &brokenBroker{submits: []submitAnswer{
			submitRefused(refuse(connect.CodeUnavailable, "the connection broke")),
			submitRefused(refuse(connect.CodeResourceExhausted, "later", info("TOO_MANY_WAIT"), retryIn(10*time.Millisecond))),
			func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error) {
				return &musterv1.SubmitJobResponse{JobId: 7}, nil
			},
		}}
		var told []string
		options := Options{OnInterruption: func(err error, _ time.Duration) { told = append(told, err.(*Error).Code) }}
		at := map[string]string{"unix": filepath.Join(t.TempDir(), "b.sock"), "tcp": "127.0.0.1:0"}[network]
		job, err := it.listen(t, network, at, options).Submit(t.Context(), Job{Script: "true"})
		if err != nil || job.ID != 7 || len(it.requests) != 3 || !slices.Equal(told, []string{"UNAVAILABLE"}) {
			t.Fatal(network, err, it.requests, told)
		}
		ids := map[string]bool{}
		for _, request := range it.requests {
			ids[request.(*musterv1.SubmitJobRequest).GetRequestId()] = true
		}
		if len(ids) != 1 || ids[""] {
			t.Fatal(network, ids)
		}
	}
}

func TestAnEmptyRequestIDIsNone(t *testing.T) {
	accept := func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error) {
		return &musterv1.SubmitJobResponse{JobId: 7}, nil
	}
	it := &brokenBroker{submits: []submitAnswer{submitRefused(refuse(connect.CodeUnavailable, "the connection broke")), accept, accept}}
	client := it.client(t, Options{})
	for range 2 {
		if _, err := client.Submit(t.Context(), Job{Script: "true"}, RequestID("")); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, request := range it.requests {
		ids = append(ids, request.(*musterv1.SubmitJobRequest).GetRequestId())
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] == ids[2] {
		t.Fatal(ids)
	}
}

func TestTheJobsOfTheMessagesBeforeAFailureComeWithTheError(t *testing.T) {
	it := &brokenBroker{batches: []func(*musterv1.SubmitJobsRequest) (*musterv1.SubmitJobsResponse, error){
		func(*musterv1.SubmitJobsRequest) (*musterv1.SubmitJobsResponse, error) {
			return &musterv1.SubmitJobsResponse{Responses: []*musterv1.SubmitJobResponse{{JobId: 7}, {JobId: 8}}}, nil
		},
		func(*musterv1.SubmitJobsRequest) (*musterv1.SubmitJobsResponse, error) {
			return nil, refuse(connect.CodeResourceExhausted, "too many wait", info("TOO_MANY_WAIT"))
		},
	}}
	large := Job{Script: strings.Repeat("#", 1_500_000)}
	made, err := it.client(t, Options{}).SubmitMany(t.Context(), []Job{large, large, large})
	if !errors.Is(err, ErrTooMuch) || len(made) != 2 || made[0].ID != 7 || made[1].ID != 8 {
		t.Fatal(err, made)
	}
}

// A connection that breaks after the broker has accepted the job, and before its answer has come.
func TestALostAnswerIsAskedForAgainWithTheSameRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	it := &brokenBroker{submits: []submitAnswer{func(*musterv1.SubmitJobRequest) (*musterv1.SubmitJobResponse, error) {
		return &musterv1.SubmitJobResponse{JobId: 7}, nil
	}}}
	behind := it.client(t, Options{})
	go func() {
		for cut := true; ; cut = false {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("unix", behind.config.address.target)
			if err != nil {
				return
			}
			go relay(front, back, func() bool { return cut && it.asked() > 0 })
		}
	}()
	it.submits = append(it.submits, it.submits[0])
	client, err := NewClient(Options{Broker: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	job, err := client.Submit(t.Context(), Job{Script: "true"})
	if err != nil || job.ID != 7 || len(it.requests) != 2 || !proto.Equal(it.requests[0], it.requests[1]) {
		t.Fatal(err, it.requests)
	}
}

// relay passes on what comes, until the connection is to be cut: what the broker says then is lost.
func relay(front, back net.Conn, cut func() bool) {
	defer front.Close()
	defer back.Close()
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			count, err := front.Read(buffer)
			if err != nil {
				_ = back.Close()
				return
			}
			_, _ = back.Write(buffer[:count])
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		count, err := back.Read(buffer)
		if err != nil || cut() {
			return
		}
		if _, err := front.Write(buffer[:count]); err != nil {
			return
		}
	}
}

func TestWhatNoRepeatMendsComesAtOnceWithItsFacts(t *testing.T) {
	reason := &musterv1.StateReason{Message: "no", Remedy: "Ask for less."}
	it := &brokenBroker{submits: []submitAnswer{submitRefused(refuse(connect.CodeFailedPrecondition, "no cluster", info("CANNOT_BE_PLACED"), reason))}}
	_, err := it.client(t, Options{}).Submit(t.Context(), Job{Script: "true"})
	var refused *Error
	if !errors.As(err, &refused) || !errors.Is(err, ErrCannotBePlaced) || !errors.Is(err, ErrNotPossible) || errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if refused.Code != "FAILED_PRECONDITION" || refused.Reason != "CANNOT_BE_PLACED" || refused.Metadata["request"] != "0" ||
		refused.Remedy != "Ask for less." || !proto.Equal(refused.Why, reason) || refused.Error() != "no cluster" {
		t.Fatalf("%+v", refused)
	}
}

func TestEachStatusHasItsKind(t *testing.T) {
	for code, kind := range map[connect.Code]error{
		connect.CodeInvalidArgument: ErrBadRequest, connect.CodeNotFound: ErrNotFound, connect.CodeAlreadyExists: ErrAlreadyExists,
		connect.CodePermissionDenied: ErrNotAllowed, connect.CodeUnauthenticated: ErrNotLoggedIn,
		connect.CodeUnimplemented: ErrNotHonoured, connect.CodeResourceExhausted: ErrTooMuch, connect.CodeAborted: ErrConflict,
	} {
		it := &brokenBroker{counts: []func() (*musterv1.CountJobsResponse, error){func() (*musterv1.CountJobsResponse, error) {
			return nil, refuse(code, "so it is", info("SOME_REASON"))
		}}}
		_, err := it.client(t, Options{}).Count(t.Context(), "")
		var refused *Error
		if !errors.Is(err, kind) || !errors.As(err, &refused) || refused.Reason != "SOME_REASON" || refused.Error() != "so it is" {
			t.Error(code, err)
		}
	}
}

func TestPatienceForRetryInfoIsBounded(t *testing.T) {
	later := func() (*musterv1.CountJobsResponse, error) {
		return nil, refuse(connect.CodeResourceExhausted, "later", info("BUSY"), retryIn(900*time.Millisecond))
	}
	it := &brokenBroker{counts: []func() (*musterv1.CountJobsResponse, error){later, later, later}}
	_, err := it.client(t, Options{CallTimeout: 1500 * time.Millisecond}).Count(t.Context(), "")
	var refused *Error
	if !errors.Is(err, ErrTooMuch) || !errors.As(err, &refused) || refused.RetryAfter != 900*time.Millisecond || len(it.requests) != 2 {
		t.Fatal(err, len(it.requests))
	}
}

func TestNobodyThereIsToldSoonWithTheAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.sock")
	client, err := NewClient(Options{Broker: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Count(t.Context(), "")
	if !errors.Is(err, ErrBrokerUnavailable) || !strings.Contains(err.Error(), path+" (given as Options.Broker): no such file") {
		t.Fatal(err)
	}
}

func changeOf(sequence uint64, state musterv1.JobState) *musterv1.JobChange {
	return &musterv1.JobChange{Sequence: sequence, Job: &musterv1.Job{Id: 7, State: state}}
}

const running = musterv1.JobState_JOB_STATE_RUNNING

func TestAWatchGoesOnBehindTheLastChange(t *testing.T) {
	it := &brokenBroker{watches: []func(context.Context, *connect.ServerStream[musterv1.WatchJobsResponse]) error{
		func(_ context.Context, stream *connect.ServerStream[musterv1.WatchJobsResponse]) error {
			_ = stream.Send(&musterv1.WatchJobsResponse{Changes: []*musterv1.JobChange{changeOf(1, running), changeOf(2, running)}})
			_ = stream.Send(&musterv1.WatchJobsResponse{Heartbeat: &musterv1.WatchHeartbeat{Sequence: 5}})
			panic(http.ErrAbortHandler) // the connection breaks
		},
		func(_ context.Context, stream *connect.ServerStream[musterv1.WatchJobsResponse]) error {
			return stream.Send(&musterv1.WatchJobsResponse{Changes: []*musterv1.JobChange{changeOf(5, running), changeOf(6, running)}})
		},
	}}
	var seen []uint64
	for change, err := range it.client(t, Options{}).Watch(t.Context(), WatchOptions{IDs: []uint64{7}, FromBeginning: true}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, change.GetSequence())
	}
	second := it.requests[1].(*musterv1.WatchJobsRequest)
	if !slices.Equal(seen, []uint64{1, 2, 6}) || second.GetAfter() != 5 {
		t.Fatal(seen, second)
	}
}

type logAnswer = func(*connect.ServerStream[musterv1.ReadLogResponse]) error

const (
	out      = musterv1.LogStream_LOG_STREAM_STDOUT
	oops     = musterv1.LogStream_LOG_STREAM_STDERR
	complete = musterv1.LogEnd_LOG_END_COMPLETE
)

func piece(stream musterv1.LogStream, offset uint64, data string, end musterv1.LogEnd) *musterv1.ReadLogResponse {
	return &musterv1.ReadLogResponse{Stream: stream, Offset: offset, Data: []byte(data), End: end}
}

func pieces(err error, all ...*musterv1.ReadLogResponse) logAnswer {
	return func(stream *connect.ServerStream[musterv1.ReadLogResponse]) error {
		for _, one := range all {
			if failed := stream.Send(one); failed != nil {
				return failed
			}
		}
		return err
	}
}

func readLines(t *testing.T, client *Client, options LogOptions) []string {
	t.Helper()
	var seen []string
	for line, err := range client.Job(7).Logs(t.Context(), options) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, line)
	}
	return seen
}

func TestALogGoesOnBehindTheLastByteOfEachOutput(t *testing.T) {
	broke := refuse(connect.CodeUnavailable, "the connection broke")
	it := &brokenBroker{logs: []logAnswer{
		pieces(broke, piece(out, 0, "one\ntw", 0), piece(oops, 0, "err\n", complete)),
		pieces(nil, piece(oops, 0, "", complete), piece(out, 2, "e\ntwo\nlast", 0), piece(out, 12, "", complete)),
	}}
	if seen := readLines(t, it.client(t, Options{}), LogOptions{Follow: true}); !slices.Equal(seen, []string{"one", "err", "two", "last"}) {
		t.Fatal(seen)
	}
}

func TestATailIsAskedForAgainUntilItsBeginIsKnown(t *testing.T) {
	broke := refuse(connect.CodeUnavailable, "the connection broke")
	it := &brokenBroker{logs: []logAnswer{
		pieces(broke, piece(out, 100, "", 0)),
		pieces(broke, piece(out, 100, "", 0), piece(oops, 50, "", 0), piece(out, 100, "a\n", 0)),
		pieces(nil, piece(out, 102, "b\n", complete), piece(oops, 50, "c\n", complete)),
	}}
	if seen := readLines(t, it.client(t, Options{}), LogOptions{Follow: true, Tail: 2}); !slices.Equal(seen, []string{"a", "b", "c"}) {
		t.Fatal(seen)
	}
	last := it.requests[2].(*musterv1.ReadLogRequest)
	if it.requests[1].(*musterv1.ReadLogRequest).GetTailLines() != 2 || last.GetTailLines() != 0 || len(last.GetPositions()) != 2 {
		t.Fatal(it.requests)
	}
}

func TestALogCanBeLeftInTheMiddle(t *testing.T) {
	it := &brokenBroker{logs: []logAnswer{pieces(nil, piece(out, 0, "one\ntwo\nthree\n", 0), piece(out, 14, "", complete))}}
	for line, err := range it.client(t, Options{}).Job(7).Logs(t.Context(), LogOptions{Stream: "stdout"}) {
		if line != "one" || err != nil {
			t.Fatal(line, err)
		}
		break
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	it := &brokenBroker{watches: []func(context.Context, *connect.ServerStream[musterv1.WatchJobsResponse]) error{
		func(ctx context.Context, stream *connect.ServerStream[musterv1.WatchJobsResponse]) error {
			_ = stream.Send(&musterv1.WatchJobsResponse{Heartbeat: &musterv1.WatchHeartbeat{Sequence: 1}})
			<-ctx.Done()
			return ctx.Err()
		},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := it.client(t, Options{}).Job(7).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestADeadlineIsTheContextsOwnThoughTheBrokerSaysItFirst(t *testing.T) {
	over := refuse(connect.CodeDeadlineExceeded, "the deadline has passed")
	it := &brokenBroker{
		watches: []func(context.Context, *connect.ServerStream[musterv1.WatchJobsResponse]) error{
			func(context.Context, *connect.ServerStream[musterv1.WatchJobsResponse]) error { return over },
		},
		submits: []submitAnswer{submitRefused(over)},
		fetches: []fetchAnswer{func(*connect.ServerStream[musterv1.FetchFilesResponse]) error { return over }},
	}
	client := it.client(t, Options{})
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { return client.Job(7).Wait(ctx) },
		func(ctx context.Context) error {
			_, err := client.Submit(ctx, Job{Script: "true"})
			return err
		},
		func(ctx context.Context) error {
			_, err := client.Fetch(ctx, 7, FetchOptions{To: t.TempDir()})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
}
