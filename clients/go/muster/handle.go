package muster

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	musterv1 "muster.dev/api/muster/v1"
)

// JobHandle is a job by its number, with what the broker said of it last. State and the like ask nothing; Refresh does. Any number of
// goroutines may use one.
type JobHandle struct {
	ID       uint64
	Warnings []*musterv1.SubmitWarning // of the submit

	client  *Client
	mutex   sync.Mutex
	message *musterv1.Job // guarded by mutex; nil: nothing is known yet
}

func hasEnded(job *musterv1.Job) bool {
	switch job.GetState() {
	case musterv1.JobState_JOB_STATE_SUCCEEDED, musterv1.JobState_JOB_STATE_FAILED, musterv1.JobState_JOB_STATE_CANCELED:
		return true
	}
	return false
}

// Message is the whole job as last known, or nil if nothing is known yet.
func (j *JobHandle) Message() *musterv1.Job {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.message
}

func (j *JobHandle) set(message *musterv1.Job) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.message = message
}

// Refresh asks the broker for the whole job again, with the spec and all runs.
func (j *JobHandle) Refresh(ctx context.Context) (*musterv1.Job, error) {
	answer, err := call(ctx, j.client, j.client.services.jobs.GetJob, &musterv1.GetJobRequest{JobId: j.ID}, j.client.patience.call)
	if err != nil {
		return nil, err
	}
	j.set(answer.GetJob())
	return answer.GetJob(), nil
}

// State is the last one known: QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED; empty: nothing is known yet.
func (j *JobHandle) State() string {
	message := j.Message()
	if message == nil {
		return ""
	}
	return stateName(message)
}

func stateName(job *musterv1.Job) string {
	return strings.TrimPrefix(job.GetState().String(), "JOB_STATE_")
}

// Cluster is that of its latest run; empty: it has none, or nothing is known yet.
func (j *JobHandle) Cluster() string { return j.Message().GetCluster() }

// ExitCode is the command's; false: it has not ended, or a signal or something else ended it.
func (j *JobHandle) ExitCode() (int, bool) {
	exit := j.Message().GetExit()
	if exit == nil || exit.GetSignal() != 0 {
		return 0, false
	}
	return int(exit.GetCode()), true
}

// String is the job on one line.
func (j *JobHandle) String() string {
	message := j.Message()
	if message == nil {
		return fmt.Sprintf("Job %d", j.ID)
	}
	line := fmt.Sprintf("Job %d %s: %s", j.ID, message.GetName(), stateName(message))
	if message.GetCluster() != "" {
		line += ", on " + message.GetCluster()
	}
	if why := whyOf(message); why.Code != "" {
		line += " - " + why.Message
	}
	return strings.Join(strings.Fields(line), " ")
}

// A Why is the reason why a job waits or did not succeed.
type Why struct {
	Code    string // "WAITS_FOR_RESOURCES", "OUT_OF_MEMORY": docs/concepts.md; empty: there is nothing to explain
	Message string
	Remedy  string
	Quotes  []string // lines of logs and events that led to the verdict
}

// String is the sentence with its remedy and its quotes.
func (w Why) String() string {
	parts := []string{w.Message}
	if w.Remedy != "" {
		parts = append(parts, w.Remedy)
	}
	for _, quote := range w.Quotes {
		parts = append(parts, "> "+quote)
	}
	return strings.Join(parts, "\n")
}

// Why asks why it waits, or did not succeed.
func (j *JobHandle) Why(ctx context.Context) (Why, error) {
	message, err := j.Refresh(ctx)
	if err != nil {
		return Why{}, err
	}
	return whyOf(message), nil
}

func whyOf(job *musterv1.Job) Why {
	if failure := job.GetFailure(); failure != nil && job.GetState() == musterv1.JobState_JOB_STATE_FAILED {
		why := Why{Code: strings.TrimPrefix(failure.GetCode().String(), "FAILURE_CODE_"), Message: failure.GetMessage(),
			Remedy: failure.GetRemedy()}
		for _, quote := range failure.GetQuotes() {
			why.Quotes = append(why.Quotes, quote.GetText())
		}
		return why
	}
	if reason := job.GetStateReason(); reason != nil {
		return Why{Code: strings.TrimPrefix(reason.GetCode().String(), "STATE_REASON_CODE_"), Message: reason.GetMessage(),
			Remedy: reason.GetRemedy()}
	}
	return Why{Message: fmt.Sprintf("job %d is %s", job.GetId(), stateName(job))}
}

// Wait waits until it has ended, in whichever way.
func (j *JobHandle) Wait(ctx context.Context) error {
	if hasEnded(j.Message()) {
		return nil
	}
	return j.client.Wait(ctx, j)
}

// Result waits, and returns the job as it ended. The error is a *JobError if it has not succeeded.
func (j *JobHandle) Result(ctx context.Context) (*musterv1.Job, error) {
	if err := j.Wait(ctx); err != nil {
		return nil, err
	}
	message := j.Message()
	switch message.GetState() {
	case musterv1.JobState_JOB_STATE_FAILED:
		return message, &JobError{message, fmt.Sprintf("job %d has failed: %s", j.ID, whyOf(message))}
	case musterv1.JobState_JOB_STATE_CANCELED:
		return message, &JobError{message, fmt.Sprintf("job %d was canceled", j.ID)}
	}
	return message, nil
}

// LogOptions says which part of a log is read.
type LogOptions struct {
	Follow bool   // goes on until the log is complete
	Tail   int    // begins with the last so many lines, 1 to 100000; 0: with the first
	Stream string // "both", "stdout" or "stderr"; default: both
	Rank   uint32
	Run    uint32 // 0: the latest
}

// Logs gives the lines of a rank's output, without their ends, each once, across restarts of the broker.
func (j *JobHandle) Logs(ctx context.Context, options LogOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		give := func(line string) bool { return yield(line, nil) }
		made := &lines{}
		goesOn := true
		for piece, err := range j.LogPieces(ctx, options) {
			if err != nil {
				yield("", err)
				return
			}
			if goesOn = made.take(piece, give); !goesOn {
				return
			}
		}
		made.rest(give)
	}
}

// LogPieces gives the bytes of a rank's output, each once and in order.
func (j *JobHandle) LogPieces(ctx context.Context, options LogOptions) iter.Seq2[LogPiece, error] {
	return func(yield func(LogPiece, error) bool) {
		at, err := newLogPlace(j.ID, options)
		if err != nil {
			yield(LogPiece{}, err)
			return
		}
		stopped := false
		err = follow(ctx, j.client, j.client.services.jobs.ReadLog, at, func(piece *musterv1.ReadLogResponse) bool {
			stopped = !at.take(piece, func(one LogPiece) bool { return yield(one, nil) })
			return !stopped
		})
		if err != nil && !stopped {
			yield(LogPiece{}, err)
		}
	}
}

// Log is all that the broker has of the output, as one text.
func (j *JobHandle) Log(ctx context.Context, options LogOptions) (string, error) {
	var all []byte
	for piece, err := range j.LogPieces(ctx, options) {
		if err != nil {
			return text(all), err
		}
		all = append(all, piece.Data...)
	}
	return text(all), nil
}

// Events gives its history, the oldest step first; with follow on to its end, across restarts of the broker.
func (j *JobHandle) Events(ctx context.Context, follow bool) iter.Seq2[*musterv1.Transition, error] {
	if !follow {
		return j.history(ctx)
	}
	return func(yield func(*musterv1.Transition, error) bool) {
		for change, err := range j.client.Watch(ctx, WatchOptions{IDs: []uint64{j.ID}, FromBeginning: true, UntilEnded: true}) {
			if err != nil {
				yield(nil, err)
				return
			}
			j.set(change.GetJob())
			if step := change.GetTransition(); step != nil && !yield(step, nil) {
				return
			}
		}
	}
}

func (j *JobHandle) history(ctx context.Context) iter.Seq2[*musterv1.Transition, error] {
	return func(yield func(*musterv1.Transition, error) bool) {
		request := &musterv1.ListTransitionsRequest{JobId: j.ID, PageSize: pageSize}
		for {
			page, err := call(ctx, j.client, j.client.services.jobs.ListTransitions, request, j.client.patience.call)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, step := range page.GetTransitions() {
				if !yield(step, nil) {
					return
				}
			}
			request.PageToken = page.GetNextPageToken()
			if request.PageToken == "" {
				return
			}
		}
	}
}

// Fetch copies a file or a directory of a run to this machine. The result names the files that the cluster does not send, such as
// sockets: these are no error.
func (j *JobHandle) Fetch(ctx context.Context, options FetchOptions) (FetchResult, error) {
	return j.client.Fetch(ctx, j.ID, options)
}

// Cancel asks that the job end; it ends when its cluster has ended it.
func (j *JobHandle) Cancel(ctx context.Context, reason string) error {
	return j.now(j.client.Cancel(ctx, Which{IDs: []uint64{j.ID}, Reason: reason}))
}

// Hold keeps the job from starting before it is released. The error is ErrNotPossible if it runs or has ended.
func (j *JobHandle) Hold(ctx context.Context, reason string) error {
	return j.now(j.client.Hold(ctx, Which{IDs: []uint64{j.ID}, Reason: reason}))
}

// Release releases the job, so that it may start.
func (j *JobHandle) Release(ctx context.Context, reason string) error {
	return j.now(j.client.Release(ctx, Which{IDs: []uint64{j.ID}, Reason: reason}))
}

func (j *JobHandle) now(changed []*musterv1.Job, err error) error {
	if err == nil && len(changed) > 0 {
		j.set(changed[0])
	}
	return err
}

// Rerun submits the job again, and returns the new job. The error is ErrNotPossible if it has not ended.
func (j *JobHandle) Rerun(ctx context.Context, options ...SubmitOption) (*JobHandle, error) {
	made, err := j.client.Rerun(ctx, Which{IDs: []uint64{j.ID}}, options...)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}
