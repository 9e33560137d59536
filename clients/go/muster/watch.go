package muster

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	musterv1 "muster.dev/api/muster/v1"
)

// WatchOptions says which changes are watched: from now on by default.
type WatchOptions struct {
	IDs           []uint64 // up to 1000
	Filter        string   // not together with IDs; both empty: all jobs
	After         uint64   // goes on behind a change's sequence
	FromBeginning bool
	UntilEnded    bool // stops when all have ended; only with IDs
}

func (o WatchOptions) request() *musterv1.WatchJobsRequest {
	request := &musterv1.WatchJobsRequest{JobIds: o.IDs, Filter: o.Filter, UntilTerminal: o.UntilEnded}
	switch {
	case o.After > 0:
		request.Start = &musterv1.WatchJobsRequest_After{After: o.After}
	case o.FromBeginning:
		request.Start = &musterv1.WatchJobsRequest_Beginning{Beginning: &musterv1.WatchFromBeginning{}}
	default:
		request.Start = &musterv1.WatchJobsRequest_Now{Now: &musterv1.WatchFromNow{}}
	}
	return request
}

// Watch gives every change of the jobs, once and in order, across restarts of the broker.
func (c *Client) Watch(ctx context.Context, options WatchOptions) iter.Seq2[*musterv1.JobChange, error] {
	return func(yield func(*musterv1.JobChange, error) bool) {
		at := &watchPlace{options.request()}
		stopped := false
		err := follow(ctx, c, c.services.jobs.WatchJobs, at, func(message *musterv1.WatchJobsResponse) bool {
			stopped = !at.take(message, func(change *musterv1.JobChange) bool { return yield(change, nil) })
			return !stopped
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// Wait waits until all have ended, in whichever way.
func (c *Client) Wait(ctx context.Context, jobs ...*JobHandle) error {
	for _, err := range c.AsCompleted(ctx, jobs...) {
		if err != nil {
			return err
		}
	}
	return nil
}

// AsCompleted gives the jobs as they end, each once.
func (c *Client) AsCompleted(ctx context.Context, jobs ...*JobHandle) iter.Seq2[*JobHandle, error] {
	return func(yield func(*JobHandle, error) bool) {
		left := map[uint64]*JobHandle{}
		for _, job := range jobs {
			if _, twice := left[job.ID]; !twice {
				left[job.ID] = job
			}
		}
		if len(left) == 0 {
			return
		}
		var err error
		give := func(message *musterv1.Job) bool { return giveEnded(left, message, yield) }
		if len(left) <= maxJobsPerChange {
			ids := slices.Sorted(maps.Keys(left))
			for change, failure := range c.Watch(ctx, WatchOptions{IDs: ids, FromBeginning: true, UntilEnded: true}) {
				if err = failure; err != nil || !give(change.GetJob()) {
					break
				}
			}
		} else {
			err = c.awaitMany(ctx, left, give)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// giveEnded gives an awaited job that has ended. It returns false if there is nothing more to wait for.
func giveEnded(left map[uint64]*JobHandle, message *musterv1.Job, yield func(*JobHandle, error) bool) bool {
	job, is := left[message.GetId()]
	if !is || !hasEnded(message) {
		return true
	}
	delete(left, job.ID)
	job.set(message)
	return yield(job, nil) && len(left) > 0
}

// awaitMany waits for more jobs than a watch takes by number: it watches all jobs of the range, and picks out ours.
func (c *Client) awaitMany(ctx context.Context, left map[uint64]*JobHandle, give func(*musterv1.Job) bool) error {
	ids := slices.Sorted(maps.Keys(left))
	filter := fmt.Sprintf("id >= %d AND id <= %d", ids[0], ids[len(ids)-1])
	ended := ListOptions{Filter: "(" + filter + ") AND (state = SUCCEEDED OR state = FAILED OR state = CANCELED)", OrderBy: "id"}
	at := &watchPlace{WatchOptions{Filter: filter}.request()}
	began, failed := false, error(nil)
	err := follow(ctx, c, c.services.jobs.WatchJobs, at, func(message *musterv1.WatchJobsResponse) bool {
		goesOn := at.take(message, func(change *musterv1.JobChange) bool { return give(change.GetJob()) })
		if began || !goesOn {
			return goesOn
		}
		// The watch sees each change from here on, so jobs that ended before can be looked up now.
		began = true
		for job, err := range c.List(ctx, ended) {
			if failed = err; failed != nil || !give(job.Message()) {
				return false
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}
