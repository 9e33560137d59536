package muster

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	musterv1 "muster.dev/api/muster/v1"
)

// The kinds of errors, for errors.Is. The kind tells what a program can do about an error; Error.Reason says exactly what
// happened, by the words that docs/troubleshooting.md of Muster explains.
var (
	// ErrConfiguration: the address, the token, the CA or a file of the user is missing or wrong, or the address is not a
	// broker's. Nothing was submitted.
	ErrConfiguration = errors.New("configuration")
	// ErrBadRequest: a value is wrong; Error.Fields names each one.
	ErrBadRequest = errors.New("bad request")
	// ErrNotHonoured: the broker does not know a field or a call, or no cluster honours it yet.
	ErrNotHonoured = errors.New("not honoured")
	// ErrNotFound: there is no such job, run, rank, path or cluster.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: the request id belongs to another spec.
	ErrAlreadyExists = errors.New("already exists")
	// ErrNotAllowed: the user's rights do not include this (PERMISSION_DENIED).
	ErrNotAllowed = errors.New("not allowed")
	// ErrNotLoggedIn: the token or the login is missing, unknown or expired (UNAUTHENTICATED).
	ErrNotLoggedIn = errors.New("not logged in")
	// ErrNotPossible: the state of the job, the run or the cluster does not allow it (FAILED_PRECONDITION).
	ErrNotPossible = errors.New("not possible")
	// ErrCannotBePlaced: no known cluster can ever run the job; Error.Why has what each of them lacks. Such an error is an
	// ErrNotPossible, too.
	ErrCannotBePlaced = errors.New("cannot be placed")
	// ErrTooMuch: a limit is reached, such as waiting jobs, a quota or the broker's disk (RESOURCE_EXHAUSTED).
	ErrTooMuch = errors.New("too much")
	// ErrBrokerUnavailable: nobody answered, for as long as this client tries.
	ErrBrokerUnavailable = errors.New("broker unavailable")
	// ErrCallTimeout: the broker did not answer in time.
	ErrCallTimeout = errors.New("call timeout")
	// ErrConflict: something changed during the call (ABORTED): try again.
	ErrConflict = errors.New("conflict")
	// ErrJobFailed: a job has failed; the error is a *JobError.
	ErrJobFailed = errors.New("job failed")
	// ErrJobCanceled: someone canceled a job; the error is a *JobError.
	ErrJobCanceled = errors.New("job canceled")
	// ErrJobFile: the command muster refused a job file, or is not in PATH.
	ErrJobFile = errors.New("job file")
)

// Error is an error of this package: a sentence that says what is wrong and what to do, and facts for programs.
type Error struct {
	// Message is the sentence.
	Message string
	// Code is gRPC's status, for example "NOT_FOUND". Empty: the error is not the broker's.
	Code string
	// Reason is that of google.rpc.ErrorInfo, for example "CANNOT_BE_PLACED". Empty: it has none.
	Reason string
	// Metadata is that of google.rpc.ErrorInfo, for example the place of the bad request in a batch.
	Metadata map[string]string
	// Remedy is the remedy, if the broker sends it apart from the message. It is empty if the message contains it.
	Remedy string
	// Fields has, with bad input, each field, and what is wrong with it.
	Fields map[string]string
	// RetryAfter is the time after which the broker asks the client to try again; 0 if it does not say.
	RetryAfter time.Duration
	// Why has, with ErrCannotBePlaced, what each cluster lacks.
	Why *musterv1.StateReason

	kind error
}

func (e *Error) Error() string { return e.Message }

// Is returns whether the error is of that kind.
func (e *Error) Is(target error) bool {
	return e.kind != nil && (target == e.kind || target == ErrNotPossible && e.kind == ErrCannotBePlaced)
}

// JobError says that a job has not succeeded.
type JobError struct {
	// Job is the job as it ended.
	Job *musterv1.Job

	message string
}

func (e *JobError) Error() string { return e.message }

// Failure says what happened (its code) and where the cause lies (its class). It is empty if the job was canceled.
func (e *JobError) Failure() *musterv1.Failure {
	if failure := e.Job.GetFailure(); failure != nil {
		return failure
	}
	return &musterv1.Failure{}
}

// Is returns whether the error is ErrJobFailed or ErrJobCanceled.
func (e *JobError) Is(target error) bool {
	return target == ErrJobFailed && e.Job.GetState() == musterv1.JobState_JOB_STATE_FAILED ||
		target == ErrJobCanceled && e.Job.GetState() == musterv1.JobState_JOB_STATE_CANCELED
}

func refused(kind error, message string) *Error { return &Error{Message: message, kind: kind} }

type status struct {
	name string
	kind error
}

var statuses = map[connect.Code]status{
	connect.CodeCanceled:           {"CANCELLED", nil},
	connect.CodeUnknown:            {"UNKNOWN", nil},
	connect.CodeInvalidArgument:    {"INVALID_ARGUMENT", ErrBadRequest},
	connect.CodeDeadlineExceeded:   {"DEADLINE_EXCEEDED", ErrCallTimeout},
	connect.CodeNotFound:           {"NOT_FOUND", ErrNotFound},
	connect.CodeAlreadyExists:      {"ALREADY_EXISTS", ErrAlreadyExists},
	connect.CodePermissionDenied:   {"PERMISSION_DENIED", ErrNotAllowed},
	connect.CodeResourceExhausted:  {"RESOURCE_EXHAUSTED", ErrTooMuch},
	connect.CodeFailedPrecondition: {"FAILED_PRECONDITION", ErrNotPossible},
	connect.CodeAborted:            {"ABORTED", ErrConflict},
	connect.CodeOutOfRange:         {"OUT_OF_RANGE", ErrBadRequest},
	connect.CodeUnimplemented:      {"UNIMPLEMENTED", ErrNotHonoured},
	connect.CodeInternal:           {"INTERNAL", nil},
	connect.CodeUnavailable:        {"UNAVAILABLE", ErrBrokerUnavailable},
	connect.CodeDataLoss:           {"DATA_LOSS", nil},
	connect.CodeUnauthenticated:    {"UNAUTHENTICATED", ErrNotLoggedIn},
}

// fromConnect turns the error of a call into one of ours. A broken connection has several codes in this library, but is
// UNAVAILABLE here, as for every other client of Muster. A broker that stops cuts calls off, so that counts as UNAVAILABLE,
// too.
func fromConnect(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Message: err.Error(), Code: "DEADLINE_EXCEEDED", kind: ErrCallTimeout}
	}
	var from *connect.Error
	if !errors.As(err, &from) {
		return &Error{Message: err.Error(), Code: "UNAVAILABLE", kind: ErrBrokerUnavailable}
	}
	its := statuses[from.Code()]
	made := &Error{Message: from.Message(), Code: its.name, kind: its.kind}
	if made.Message == "" {
		made.Message = its.name
	}
	made.take(from.Details())
	cut := from.Code() == connect.CodeCanceled && made.Reason == ""
	if cut || !connect.IsWireError(err) && isOfTransport(from.Code()) {
		made.Code, made.kind = "UNAVAILABLE", ErrBrokerUnavailable
	}
	if cut {
		made.Message = "the broker cut the call off"
	}
	if made.Reason == "CANNOT_BE_PLACED" {
		made.kind = ErrCannotBePlaced
	}
	return made
}

// isOfTransport tells whether the library gives this code to what it met on the way, if no broker sent it.
func isOfTransport(code connect.Code) bool {
	switch code {
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeInvalidArgument, connect.CodeAborted, connect.CodeDataLoss,
		connect.CodeCanceled:
		return true
	}
	return false
}

func (e *Error) take(details []*connect.ErrorDetail) {
	for _, packed := range details {
		value, err := packed.Value()
		if err != nil {
			continue // of a newer broker
		}
		switch detail := value.(type) {
		case *errdetails.ErrorInfo:
			e.Reason, e.Metadata = detail.GetReason(), detail.GetMetadata()
		case *errdetails.RetryInfo:
			e.RetryAfter = max(detail.GetRetryDelay().AsDuration(), time.Nanosecond)
		case *errdetails.BadRequest:
			e.Fields = map[string]string{}
			for _, violation := range detail.GetFieldViolations() {
				e.Fields[violation.GetField()] = violation.GetDescription()
			}
		case *musterv1.StateReason:
			e.Why, e.Remedy = detail, detail.GetRemedy()
		}
	}
}

// isTransport returns whether the transport failed, rather than the broker, whose answers have a reason.
func (e *Error) isTransport() bool {
	return (e.Code == "UNAVAILABLE" || e.Code == "DEADLINE_EXCEEDED") && e.Reason == ""
}

// mayPass returns whether the same call may succeed later.
func (e *Error) mayPass() bool {
	return e.Code == "UNAVAILABLE" && e.isTransport() || e.RetryAfter > 0
}
