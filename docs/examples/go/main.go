// Submits a job, follows it to its end and prints its log: go run . ADDRESS
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	musterv1 "muster.dev/api/muster/v1"
)

func run(ctx context.Context, address, requestID string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	jobs := musterv1.NewJobsServiceClient(connection)

	spec := &musterv1.JobSpec{
		Name:    "hello",
		Nodes:   1,
		Command: &musterv1.Command{Form: &musterv1.Command_Script{Script: "echo hello from $MUSTER_CLUSTER"}},
	}
	// A repeat with the same request id gets the same job, so a broken connection never makes a second one.
	submitted, err := jobs.SubmitJob(ctx, &musterv1.SubmitJobRequest{Spec: spec, RequestId: requestID})
	if err != nil {
		return err
	}
	fmt.Println("job", submitted.JobId)

	steps, err := jobs.WatchJobs(ctx, &musterv1.WatchJobsRequest{
		JobIds:        []uint64{submitted.JobId},
		Start:         &musterv1.WatchJobsRequest_Beginning{Beginning: &musterv1.WatchFromBeginning{}},
		UntilTerminal: true,
	})
	if err != nil {
		return err
	}
	for {
		message, err := steps.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, change := range message.GetChanges() { // none: a heartbeat
			if transition := change.GetTransition(); transition != nil { // else a change of no state
				fmt.Println(transition.JobState)
			}
		}
	}

	pieces, err := jobs.ReadLog(ctx, &musterv1.ReadLogRequest{JobId: submitted.JobId, Follow: true})
	if err != nil {
		return err
	}
	for {
		piece, err := pieces.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		os.Stdout.Write(piece.Data)
	}
}

func main() {
	if err := run(context.Background(), os.Args[1], fmt.Sprintf("quickstart-%d", os.Getpid())); err != nil {
		log.Fatal(err)
	}
}
