package muster

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	musterv1 "muster.dev/api/muster/v1"
)

const (
	defaultCallTimeout    = 30 * time.Second
	defaultStreamPatience = 10 * time.Minute
	// Pages are as large as possible, so that listing everything takes fewer calls.
	pageSize = 1000
	// Limits of the API.
	maxJobsPerChange = 1000
	maxJobsPerSubmit = 10_000
	// A change by filter gives up after this many answers that changed no job, because the jobs keep changing themselves.
	maxAnswersWithoutJobs = 100
)

// Options says how to find the broker and for how long to try. Without options the client finds it as the command `muster`
// does.
type Options struct {
	// Broker is unix:PATH, HOST:PORT, tls:HOST:PORT, http://HOST:PORT or https://HOST:PORT. Default: Context, MUSTER_BROKER, a
	// context, the configuration file, the socket of the user's own broker.
	Broker string
	// Context is the name of a context of `muster context`.
	Context string
	// Token and TokenFile override MUSTER_TOKEN, MUSTER_TOKEN_FILE, the context's token file and `muster login`.
	Token     string
	TokenFile string
	// CAFile has the CA by which the client knows the broker. Default: MUSTER_CA_FILE, the context's.
	CAFile string
	// CallTimeout is the time for one call, all its attempts together. Default: 30 s.
	CallTimeout time.Duration
	// StreamPatience is the time for which a stream that broke off is resumed. Default: 10 min.
	StreamPatience time.Duration
	// OnInterruption is called at the first failure of a call that will be tried again, with the time for which it will be.
	OnInterruption func(err error, patience time.Duration)
}

// Client is a broker, as its user sees it. Any number of goroutines may use one; it connects at its first call.
type Client struct {
	config    *config
	patience  *patience
	transport *http.Transport
	services  services
}

// NewClient finds the broker. Its errors are ErrConfiguration.
func NewClient(options Options) (*Client, error) {
	found, err := load(options, os.Getenv)
	if err != nil {
		return nil, err
	}
	made := &Client{config: found, patience: &patience{call: defaultCallTimeout, stream: defaultStreamPatience,
		onInterruption: options.OnInterruption, address: fmt.Sprintf("%s (%s)", found.address.text, found.origin)}}
	if options.CallTimeout > 0 {
		made.patience.call = options.CallTimeout
	}
	if options.StreamPatience > 0 {
		made.patience.stream = options.StreamPatience
	}
	made.transport, made.services, err = open(found)
	return made, err
}

// Broker is its address.
func (c *Client) Broker() string { return c.config.address.text }

// Close ends idle connections. Calls and streams that go on end with their contexts.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Job returns a job by its number. It asks the broker only when you ask something of the job.
func (c *Client) Job(id uint64) *JobHandle { return &JobHandle{ID: id, client: c} }

// ListOptions says which jobs are listed.
type ListOptions struct {
	Filter  string // of docs/cli.md: `state = RUNNING AND label.team = vision`; empty: all
	OrderBy string // default: "id desc"
	Limit   int    // 0: all
	Spec    bool   // with the spec of each
}

// List gives jobs page by page, the newest first.
func (c *Client) List(ctx context.Context, options ListOptions) iter.Seq2[*JobHandle, error] {
	return func(yield func(*JobHandle, error) bool) {
		request := &musterv1.ListJobsRequest{Filter: options.Filter, OrderBy: options.OrderBy, IncludeSpec: options.Spec}
		for left := options.Limit; options.Limit == 0 || left > 0; {
			request.PageSize = pageSize
			if options.Limit > 0 {
				request.PageSize = int32(min(left, pageSize))
			}
			page, err := call(ctx, c, c.services.jobs.ListJobs, request, c.patience.call)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, message := range page.GetJobs() {
				if !yield(c.known(message), nil) {
					return
				}
			}
			left -= len(page.GetJobs())
			request.PageToken = page.GetNextPageToken()
			if request.PageToken == "" {
				return
			}
		}
	}
}

func (c *Client) known(message *musterv1.Job) *JobHandle {
	return &JobHandle{ID: message.GetId(), client: c, message: message}
}

// Count counts the jobs that a filter takes.
func (c *Client) Count(ctx context.Context, filter string) (uint64, error) {
	answer, err := call(ctx, c, c.services.jobs.CountJobs, &musterv1.CountJobsRequest{Filter: filter}, c.patience.call)
	return answer.GetTotal(), err
}

// CountBy counts them in groups, the largest first: by "state", "cluster", "user", "project" or "label=KEY".
func (c *Client) CountBy(ctx context.Context, filter string, by ...string) ([]*musterv1.JobCount, error) {
	request := &musterv1.CountJobsRequest{Filter: filter}
	for _, group := range by {
		name, label, _ := strings.Cut(group, "=")
		number := musterv1.JobGrouping_value["JOB_GROUPING_"+strings.ToUpper(name)]
		if number == 0 || (name == "label") != (label != "") {
			return nil, refused(ErrBadRequest, fmt.Sprintf("CountBy has %q; groups are state, cluster, user, project and label=KEY", group))
		}
		request.GroupBy = append(request.GroupBy, musterv1.JobGrouping(number))
		if label != "" {
			request.Label = label
		}
	}
	answer, err := call(ctx, c, c.services.jobs.CountJobs, request, c.patience.call)
	return answer.GetCounts(), err
}

// Clusters are those that the broker knows, by name.
func (c *Client) Clusters(ctx context.Context) ([]*musterv1.Cluster, error) {
	var found []*musterv1.Cluster
	request := &musterv1.ListClustersRequest{}
	answer, err := call(ctx, c, c.services.clusters.ListClusters, request, c.patience.call)
	return append(found, answer.GetClusters()...), err
}

// WhoAmI says who this client's user is to the broker.
func (c *Client) WhoAmI(ctx context.Context) (*musterv1.WhoAmIResponse, error) {
	return call(ctx, c, c.services.identity.WhoAmI, &musterv1.WhoAmIRequest{}, c.patience.call)
}

// Which chooses jobs, by number or by filter, and says why they are changed.
type Which struct {
	IDs    []uint64
	Filter string // `id > 0` takes all jobs
	Reason string // of a change, for its history; Rerun takes none
}

// Cancel asks that jobs end: by number, in calls of 1000 jobs that are all or none, or all of a filter. It returns them as they
// are now.
func (c *Client) Cancel(ctx context.Context, which Which) ([]*musterv1.Job, error) {
	return change(ctx, c, which, c.services.jobs.CancelJobs, func(ids []uint64) *musterv1.CancelJobsRequest {
		return &musterv1.CancelJobsRequest{JobIds: ids, Filter: which.Filter, Reason: which.Reason}
	})
}

// Hold keeps jobs from starting before they are released.
func (c *Client) Hold(ctx context.Context, which Which) ([]*musterv1.Job, error) {
	return change(ctx, c, which, c.services.jobs.HoldJobs, func(ids []uint64) *musterv1.HoldJobsRequest {
		return &musterv1.HoldJobsRequest{JobIds: ids, Filter: which.Filter, Reason: which.Reason}
	})
}

// Release releases held jobs.
func (c *Client) Release(ctx context.Context, which Which) ([]*musterv1.Job, error) {
	return change(ctx, c, which, c.services.jobs.ReleaseJobs, func(ids []uint64) *musterv1.ReleaseJobsRequest {
		return &musterv1.ReleaseJobsRequest{JobIds: ids, Filter: which.Filter, Reason: which.Reason}
	})
}

// The answers to Cancel, Hold and Release have the same fields.
type changeAnswer interface {
	GetJobs() []*musterv1.Job
	GetMore() bool
}

func change[Q, A any](ctx context.Context, c *Client, which Which, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error),
	request func(ids []uint64) *Q) ([]*musterv1.Job, error) {
	if (len(which.IDs) > 0) == (strings.TrimSpace(which.Filter) != "") {
		return nil, refused(ErrBadRequest, "Which takes IDs or a Filter: name one of them; `id > 0` takes all jobs")
	}
	var changed []*musterv1.Job
	for at := 0; at < len(which.IDs); at += maxJobsPerChange {
		answer, err := call(ctx, c, method, request(which.IDs[at:min(at+maxJobsPerChange, len(which.IDs))]), c.patience.call)
		if err != nil {
			return changed, err
		}
		changed = append(changed, any(answer).(changeAnswer).GetJobs()...)
	}
	for without := 0; len(which.IDs) == 0 && without < maxAnswersWithoutJobs; {
		found, err := call(ctx, c, method, request(nil), c.patience.call)
		if err != nil {
			return changed, err
		}
		answer := any(found).(changeAnswer)
		changed = append(changed, answer.GetJobs()...)
		if !answer.GetMore() {
			break
		}
		without++
		if len(answer.GetJobs()) > 0 {
			without = 0
		}
	}
	return changed, nil
}

// Rerun submits ended jobs again, at most 1000, all or none, and returns the new jobs.
func (c *Client) Rerun(ctx context.Context, which Which, options ...SubmitOption) ([]*JobHandle, error) {
	if which.Reason != "" {
		return nil, refused(ErrBadRequest, fmt.Sprintf("Which.Reason is %q, and Rerun takes none: leave it empty", which.Reason))
	}
	chosen := submitOptionsOf(options)
	request := &musterv1.RerunJobsRequest{JobIds: which.IDs, Filter: which.Filter, Held: chosen.held, RequestId: chosen.requestID(0)}
	answer, err := call(ctx, c, c.services.jobs.RerunJobs, request, c.patience.call)
	if err != nil {
		return nil, err
	}
	made := make([]*JobHandle, len(answer.GetJobs()))
	for at, job := range answer.GetJobs() {
		made[at] = c.Job(job.GetJobId())
	}
	return made, nil
}
