// Makes calls with Connect's own client for Go, and prints what came as JSON: check URL json|binary. The token is in MUSTER_TOKEN.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	musterv1 "muster.dev/api/muster/v1"
	"muster.dev/api/muster/v1/musterv1connect"
)

type failure struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

type seen struct {
	Job           string   `json:"job"`
	States        []string `json:"states"`
	Log           string   `json:"log"`
	Name          string   `json:"name"`
	Stored        uint32   `json:"stored"`
	Unknown       *failure `json:"unknown"`
	UnknownStream *failure `json:"unknownStream"`
	Late          *failure `json:"late"`
	Aborted       *failure `json:"aborted"`
	Forged        *failure `json:"forged"`
}

// Puts the token on each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") == "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(request)
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	told := &failure{Code: connect.CodeOf(err).String()}
	var known *connect.Error
	if errors.As(err, &known) {
		for _, detail := range known.Details() {
			value, err := detail.Value()
			if info, ok := value.(*errdetails.ErrorInfo); err == nil && ok {
				told.Reason = info.Reason
			}
		}
	}
	return told
}

func watch(ctx context.Context, jobs musterv1connect.JobsServiceClient, request *musterv1.WatchJobsRequest) ([]string, error) {
	var states []string
	stream, err := jobs.WatchJobs(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for stream.Receive() {
		for _, change := range stream.Msg().Changes {
			if change.Transition != nil {
				states = append(states, change.Transition.JobState.String())
			}
		}
	}
	return states, stream.Err()
}

func readLog(ctx context.Context, jobs musterv1connect.JobsServiceClient, job uint64) (string, error) {
	text := ""
	stream, err := jobs.ReadLog(ctx, connect.NewRequest(&musterv1.ReadLogRequest{JobId: job, Follow: true}))
	if err != nil {
		return "", err
	}
	defer stream.Close()
	for stream.Receive() {
		text += string(stream.Msg().Data)
	}
	return text, stream.Err()
}

func upload(ctx context.Context, files musterv1connect.FilesServiceClient, content []byte) (uint32, error) {
	sum := sha256.Sum256(content)
	head := &musterv1.FileHead{Sha256: hex.EncodeToString(sum[:]), SizeBytes: uint64(len(content))}
	stream := files.UploadFiles(ctx)
	for _, part := range []*musterv1.UploadFilesRequest{
		{Part: &musterv1.UploadFilesRequest_Head{Head: head}}, {Part: &musterv1.UploadFilesRequest_Chunk{Chunk: content}}} {
		if err := stream.Send(part); err != nil {
			return 0, err
		}
	}
	answer, err := stream.CloseAndReceive()
	if err != nil {
		return 0, err
	}
	return answer.Msg.StoredFiles, nil
}

// Fills in what must succeed.
func follow(ctx context.Context, jobs musterv1connect.JobsServiceClient, told *seen) error {
	submitted, err := jobs.SubmitJob(ctx, connect.NewRequest(&musterv1.SubmitJobRequest{Spec: &musterv1.JobSpec{
		Name:    "connect",
		Command: &musterv1.Command{Form: &musterv1.Command_Script{Script: "echo hello from $MUSTER_CLUSTER"}},
	}}))
	if err != nil {
		return err
	}
	job := submitted.Msg.JobId
	told.Job = strconv.FormatUint(job, 10)
	beginning := &musterv1.WatchJobsRequest_Beginning{Beginning: &musterv1.WatchFromBeginning{}}
	told.States, err = watch(ctx, jobs, &musterv1.WatchJobsRequest{JobIds: []uint64{job}, Start: beginning, UntilTerminal: true})
	if err != nil {
		return err
	}
	if told.Log, err = readLog(ctx, jobs, job); err != nil {
		return err
	}
	shown, err := jobs.GetJob(ctx, connect.NewRequest(&musterv1.GetJobRequest{JobId: job}))
	if err != nil {
		return err
	}
	told.Name = shown.Msg.Job.Spec.Name
	return nil
}

func run(url, form string) error {
	ctx := context.Background()
	client := &http.Client{Transport: bearer{os.Getenv("MUSTER_TOKEN")}}
	var options []connect.ClientOption
	if form == "json" {
		options = append(options, connect.WithProtoJSON())
	}
	jobs := musterv1connect.NewJobsServiceClient(client, url, options...)
	files := musterv1connect.NewFilesServiceClient(client, url, options...)
	told := seen{}
	if err := follow(ctx, jobs, &told); err != nil {
		return err
	}
	_, err := jobs.GetJob(ctx, connect.NewRequest(&musterv1.GetJobRequest{JobId: 99}))
	told.Unknown = failureOf(err)
	_, err = readLog(ctx, jobs, 99)
	told.UnknownStream = failureOf(err)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = watch(short, jobs, &musterv1.WatchJobsRequest{})
	told.Late = failureOf(err)
	ending, end := context.WithCancel(ctx)
	time.AfterFunc(200*time.Millisecond, end)
	_, err = watch(ending, jobs, &musterv1.WatchJobsRequest{})
	told.Aborted = failureOf(err)
	forged := connect.NewRequest(&musterv1.ListJobsRequest{})
	forged.Header().Set("Authorization", "Bearer no")
	_, err = jobs.ListJobs(ctx, forged)
	told.Forged = failureOf(err)
	if told.Stored, err = upload(ctx, files, []byte("from a client\n")); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
