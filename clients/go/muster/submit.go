package muster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.dev/api/muster/v1"
)

const (
	jobFileTimeout = 15 * time.Minute
	// The tag and the length of one request within a message of several.
	requestFraming = 8
)

// SubmitOption changes how jobs are submitted.
type SubmitOption func(*submitOptions)

type submitOptions struct {
	held       bool
	requestIDs []string
}

// Held submits a job that starts only after it is released.
func Held() SubmitOption { return func(options *submitOptions) { options.held = true } }

// RequestID chooses the request id of each job: a later submit with the same id gets the same job. By default each call makes a
// new id, and reuses it for its repeats after a broken connection. An empty id counts as none.
func RequestID(ids ...string) SubmitOption {
	return func(options *submitOptions) { options.requestIDs = ids }
}

func submitOptionsOf(options []SubmitOption) *submitOptions {
	made := &submitOptions{}
	for _, option := range options {
		option(made)
	}
	return made
}

func (o *submitOptions) requestID(at int) string {
	if at < len(o.requestIDs) && o.requestIDs[at] != "" {
		return o.requestIDs[at]
	}
	return newRequestID()
}

func newRequestID() string {
	var data [16]byte
	_, _ = rand.Read(data[:])
	return hex.EncodeToString(data[:])
}

// Submit submits a job, exactly once. Its errors are ErrCannotBePlaced, ErrBadRequest and others.
func (c *Client) Submit(ctx context.Context, job Job, options ...SubmitOption) (*JobHandle, error) {
	made, err := c.SubmitMany(ctx, []Job{job}, options...)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// SubmitMany submits jobs: all or none, as long as they fit into one message of 4 MiB and 10000 jobs; more go in several. If one of
// these fails, the jobs of those before it come with the error: they are submitted, and are the first of `jobs`.
func (c *Client) SubmitMany(ctx context.Context, jobs []Job, options ...SubmitOption) ([]*JobHandle, error) {
	chosen := submitOptionsOf(options)
	prepared, err := c.prepare(ctx, jobs)
	if err != nil {
		return nil, err
	}
	answers, err := c.submitSpecs(ctx, prepared, chosen, false)
	made := make([]*JobHandle, len(answers))
	for at, answer := range answers {
		made[at] = c.Job(answer.GetJobId())
		made[at].Warnings = answer.GetWarnings()
	}
	return made, err
}

// Validate checks a job as Submit would, and submits nothing. It returns the spec, with the digests of the files that go along.
func (c *Client) Validate(ctx context.Context, job Job) (*musterv1.JobSpec, error) {
	prepared, err := c.prepare(ctx, []Job{job})
	if err != nil {
		return nil, err
	}
	_, err = c.submitSpecs(ctx, prepared, &submitOptions{}, true)
	return prepared[0].spec, err
}

// Plan tells what the job would become on each cluster that could take it, and when it would start. The best one comes first.
func (c *Client) Plan(ctx context.Context, job Job) ([]*musterv1.JobPlan, error) {
	prepared, err := c.prepare(ctx, []Job{job})
	if err != nil {
		return nil, err
	}
	if err := c.sendTrees(ctx, prepared, true); err != nil {
		return nil, err
	}
	answer, err := call(ctx, c, c.services.jobs.PlanJob, &musterv1.PlanJobRequest{Spec: prepared[0].spec}, questionTimeout)
	return answer.GetPlans(), err
}

// submitSpecs sends files, then jobs. Files go after the broker has said that the jobs are good, so that nothing is sent for a job
// that no cluster can take.
func (c *Client) submitSpecs(ctx context.Context, jobs []planned, options *submitOptions, validateOnly bool) (
	[]*musterv1.SubmitJobResponse, error) {
	if len(options.requestIDs) > 0 && len(options.requestIDs) != len(jobs) {
		return nil, refused(ErrBadRequest, fmt.Sprintf("RequestID has %d names for %d jobs", len(options.requestIDs), len(jobs)))
	}
	requests := make([]*musterv1.SubmitJobRequest, len(jobs))
	for at, job := range jobs {
		requests[at] = &musterv1.SubmitJobRequest{Spec: job.spec, RequestId: options.requestID(at), Held: options.held}
	}
	if slices.ContainsFunc(jobs, func(job planned) bool { return len(job.trees) > 0 }) {
		// The broker needs the trees themselves to judge the job, and checks that it has them.
		if err := c.sendTrees(ctx, jobs, true); err != nil {
			return nil, err
		}
		answers, err := c.sendJobs(ctx, requests, true)
		if err != nil {
			return nil, err
		}
		if validateOnly {
			return answers, nil
		}
		if err := c.sendTrees(ctx, jobs, false); err != nil {
			return nil, err
		}
	}
	return c.sendJobs(ctx, requests, validateOnly)
}

// sendJobs returns the answers that it got before an error, too.
func (c *Client) sendJobs(ctx context.Context, requests []*musterv1.SubmitJobRequest, validateOnly bool) (
	[]*musterv1.SubmitJobResponse, error) {
	for _, request := range requests {
		request.ValidateOnly = validateOnly
	}
	if len(requests) == 1 {
		answer, err := call(ctx, c, c.services.jobs.SubmitJob, requests[0], c.patience.call)
		if err != nil {
			return nil, err
		}
		return []*musterv1.SubmitJobResponse{answer}, nil
	}
	var answers []*musterv1.SubmitJobResponse
	for len(requests) > 0 {
		count, size := 0, 0
		for count < min(len(requests), maxJobsPerSubmit) {
			size += proto.Size(requests[count]) + requestFraming
			if count > 0 && size > maxRequestBytes {
				break
			}
			count++
		}
		answer, err := call(ctx, c, c.services.jobs.SubmitJobs, &musterv1.SubmitJobsRequest{Requests: requests[:count]}, c.patience.call)
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer.GetResponses()...)
		requests = requests[count:]
	}
	return answers, nil
}

// SubmitFile submits the jobs of a job file, all or none. The command `muster` has to be in PATH: it reads the file.
func (c *Client) SubmitFile(ctx context.Context, path string, options ...SubmitOption) ([]*JobHandle, error) {
	program, err := exec.LookPath("muster")
	if err != nil {
		return nil, refused(ErrJobFile, path+": job files are read by the command muster, and it is not in PATH; install it, or describe "+
			"the job by muster.Job")
	}
	chosen := submitOptionsOf(options)
	arguments := []string{"--broker", c.config.address.text}
	if c.config.context != "" {
		arguments = []string{"--context", c.config.context}
	}
	if c.config.address.connect {
		return nil, refused(ErrJobFile, path+": the command muster, which reads job files, does not speak with "+c.config.address.text+
			"; name the broker by unix:PATH, HOST:PORT or tls:HOST:PORT")
	}
	if c.config.caFile != "" {
		arguments = append(arguments, "--ca-file", c.config.caFile)
	}
	arguments = append(arguments, "submit", fileArgument(path), "-o", "name", "--request-id", chosen.requestID(0))
	if chosen.held {
		arguments = append(arguments, "--hold")
	}
	ctx, cancel := context.WithTimeout(ctx, jobFileTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = os.Environ()
	if token, err := c.config.token(); err == nil && strings.HasPrefix(token, tokenPrefix) {
		command.Env = append(command.Env, "MUSTER_TOKEN="+token)
	}
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return nil, jobFileError(path, said.String(), err)
	}
	var made []*JobHandle
	for _, word := range strings.Fields(string(output)) {
		id, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return nil, refused(ErrJobFile, fmt.Sprintf("muster submit %s printed %q, which is no number of a job", path, word))
		}
		made = append(made, c.Job(id))
	}
	return made, nil
}

// fileArgument is the path as an argument that is neither a flag nor standard input.
func fileArgument(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

func jobFileError(path, said string, err error) error {
	said = strings.TrimSpace(said)
	var ended *exec.ExitError
	if said == "" || !errors.As(err, &ended) {
		said = strings.TrimSpace(fmt.Sprintf("muster submit %s: %v %s", path, err, said))
	}
	return refused(ErrJobFile, said)
}
