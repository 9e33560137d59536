package muster

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	musterv1 "muster.dev/api/muster/v1"
)

// The longest tail of a log, in lines.
const maxTailLines = 100_000

// A resume decides whether and when a broken stream is opened again.
type resume struct {
	patience *patience
	pauses   *backoff
	since    time.Time // of the first failure without any success since; zero: there is none
}

func (r *resume) gotMessage() {
	r.patience.wasAnswered.Store(true)
	r.since = time.Time{}
	r.pauses.next = firstBackoff
}

// pause returns the wait before the stream is opened again, or the error if that does not help.
func (r *resume) pause(err error) (time.Duration, error) {
	failure := fromConnect(err)
	interrupted := failure.Code == "UNAVAILABLE" || failure.Code == "ABORTED" || failure.Code == "RESOURCE_EXHAUSTED" && failure.RetryAfter > 0
	if !interrupted {
		return 0, failure
	}
	if !failure.isTransport() {
		r.patience.wasAnswered.Store(true)
	}
	most := r.patience.of(failure, r.patience.stream)
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
		r.patience.tell(failure, most)
	}
	pause := r.pauses.pause(failure.RetryAfter)
	if now.Add(pause).After(r.since.Add(most)) {
		return 0, r.patience.explain(failure)
	}
	return pause, nil
}

// The place at which a stream goes on after its connection broke: the request for the rest.
type place[Q any] interface {
	request() *Q
	isOver() bool
}

// follow opens a stream again where it broke off, until it ends, or take says no.
func follow[Q, M any](ctx context.Context, c *Client,
	method func(context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[M], error), at place[Q], take func(*M) bool) error {
	again := &resume{patience: c.patience, pauses: newBackoff(maxStreamBackoff)}
	for !at.isOver() {
		err := receive(ctx, c, method, at.request(), func(message *M) bool {
			again.gotMessage()
			return take(message)
		})
		if err == nil {
			return nil
		}
		if ended := endOf(ctx, err); ended != nil {
			return ended
		}
		pause, err := again.pause(err)
		if err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// receive reads one stream. It returns nil at its end, and when take has said no.
func receive[Q, M any](ctx context.Context, c *Client,
	method func(context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[M], error), request *Q, take func(*M) bool) error {
	if err := checkRequest(request); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outgoing, err := outgoing(c, request)
	if err != nil {
		return err
	}
	stream, err := method(ctx, outgoing)
	if err != nil {
		return err
	}
	for stream.Receive() {
		if !take(stream.Msg()) {
			cancel()
			_ = stream.Close()
			return nil
		}
	}
	err = stream.Err()
	_ = stream.Close()
	return err
}

// The place of a watch.
type watchPlace struct{ next *musterv1.WatchJobsRequest }

func (w *watchPlace) request() *musterv1.WatchJobsRequest { return w.next }
func (w *watchPlace) isOver() bool                        { return false }

// take returns the changes of a message that are new, each after it is noted that it came.
func (w *watchPlace) take(message *musterv1.WatchJobsResponse, give func(*musterv1.JobChange) bool) bool {
	if heartbeat := message.GetHeartbeat(); heartbeat != nil {
		w.goOnAfter(max(w.next.GetAfter(), heartbeat.GetSequence()))
	}
	for _, change := range message.GetChanges() {
		if w.startsAfter() && change.GetSequence() <= w.next.GetAfter() {
			continue
		}
		w.goOnAfter(change.GetSequence())
		if !give(change) {
			return false
		}
	}
	return true
}

func (w *watchPlace) startsAfter() bool {
	_, is := w.next.GetStart().(*musterv1.WatchJobsRequest_After)
	return is
}

func (w *watchPlace) goOnAfter(sequence uint64) {
	w.next.Start = &musterv1.WatchJobsRequest_After{After: sequence}
}

// LogPiece is bytes of one output of a rank.
type LogPiece struct {
	Stream string // "stdout" or "stderr"
	Offset uint64 // of the first byte in that output
	Data   []byte
	End    string // the end of the output behind the piece, e.g. "COMPLETE" or "TRUNCATED"; empty: not here
}

// The place of a log.
type logPlace struct {
	next       *musterv1.ReadLogRequest
	goingOn    map[musterv1.LogStream]bool
	tailBegins map[musterv1.LogStream]uint64
}

func newLogPlace(job uint64, options LogOptions) (*logPlace, error) {
	streams := map[string]musterv1.LogStream{"": 0, "both": 0, "stdout": musterv1.LogStream_LOG_STREAM_STDOUT,
		"stderr": musterv1.LogStream_LOG_STREAM_STDERR}
	stream, known := streams[options.Stream]
	if !known {
		return nil, refused(ErrBadRequest, fmt.Sprintf(`LogOptions.Stream is %q; it is "both", "stdout" or "stderr"`, options.Stream))
	}
	if options.Tail < 0 || options.Tail > maxTailLines {
		return nil, refused(ErrBadRequest, fmt.Sprintf("LogOptions.Tail is %d; it is 1 to %d lines, or 0 for the whole log", options.Tail,
			maxTailLines))
	}
	made := &logPlace{
		next: &musterv1.ReadLogRequest{JobId: job, Run: options.Run, Rank: options.Rank, Stream: stream, Follow: options.Follow,
			TailLines: uint32(options.Tail)},
		goingOn:    map[musterv1.LogStream]bool{stream: true},
		tailBegins: map[musterv1.LogStream]uint64{},
	}
	if stream == 0 {
		made.goingOn = map[musterv1.LogStream]bool{musterv1.LogStream_LOG_STREAM_STDOUT: true, musterv1.LogStream_LOG_STREAM_STDERR: true}
	}
	return made, nil
}

func (l *logPlace) request() *musterv1.ReadLogRequest { return l.next }
func (l *logPlace) isOver() bool                      { return len(l.goingOn) == 0 }

// take gives the part of the piece that is new.
func (l *logPlace) take(piece *musterv1.ReadLogResponse, give func(LogPiece) bool) bool {
	if !l.goingOn[piece.GetStream()] || l.notesTail(piece) {
		return true
	}
	at := l.position(piece.GetStream())
	data, offset := piece.GetData(), piece.GetOffset()
	// A piece may begin before what was asked for, if the archive's own pieces do.
	if offset < at.GetOffset() {
		data = data[min(at.GetOffset()-offset, uint64(len(data))):]
		offset = at.GetOffset()
	}
	at.Offset = offset + uint64(len(data))
	end := ""
	if piece.GetEnd() != 0 {
		delete(l.goingOn, piece.GetStream())
		end = strings.TrimPrefix(piece.GetEnd().String(), "LOG_END_")
	}
	if len(data) == 0 && end == "" {
		return true
	}
	return give(LogPiece{strings.ToLower(strings.TrimPrefix(piece.GetStream().String(), "LOG_STREAM_")), offset, data, end})
}

func (l *logPlace) position(stream musterv1.LogStream) *musterv1.LogPosition {
	for _, at := range l.next.GetPositions() {
		if at.GetStream() == stream {
			return at
		}
	}
	added := &musterv1.LogPosition{Stream: stream}
	l.next.Positions = append(l.next.Positions, added)
	return added
}

// notesTail takes the first messages, which say where the last lines begin; until each output has, a new stream asks for them
// again.
func (l *logPlace) notesTail(piece *musterv1.ReadLogResponse) bool {
	if l.next.GetTailLines() == 0 || piece.GetEnd() != 0 {
		return false
	}
	l.tailBegins[piece.GetStream()] = piece.GetOffset()
	if len(l.tailBegins) < len(l.goingOn) {
		return true
	}
	l.next.TailLines = 0
	for stream, offset := range l.tailBegins {
		l.position(stream).Offset = offset
	}
	return true
}

// Pieces as lines of text: each output's own, without their ends, undecodable bytes replaced.
type lines struct {
	rests map[string][]byte
	order []string
}

func (l *lines) take(piece LogPiece, give func(string) bool) bool {
	if l.rests == nil {
		l.rests = map[string][]byte{}
	}
	if _, known := l.rests[piece.Stream]; !known {
		l.order = append(l.order, piece.Stream)
	}
	data := append(l.rests[piece.Stream], piece.Data...)
	for {
		at := bytes.IndexByte(data, '\n')
		if at < 0 {
			break
		}
		if !give(text(data[:at])) {
			return false
		}
		data = data[at+1:]
	}
	l.rests[piece.Stream] = bytes.Clone(data)
	if piece.End != "" && len(data) > 0 {
		l.rests[piece.Stream] = nil
		return give(text(data))
	}
	return true
}

func (l *lines) rest(give func(string) bool) bool {
	for _, stream := range l.order {
		if rest := l.rests[stream]; len(rest) > 0 && !give(text(rest)) {
			return false
		}
	}
	return true
}

func text(data []byte) string { return strings.ToValidUTF8(string(data), "\uFFFD") }
