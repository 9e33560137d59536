// Package muster submits jobs to Slurm, Kubernetes and machines through a Muster broker, follows and changes them.
//
//	client, err := muster.NewClient(muster.Options{})
//	job, err := client.Submit(ctx, muster.Job{Script: "echo hello", CPUs: 2})
//	for line, err := range job.Logs(ctx, muster.LogOptions{Follow: true}) {
//		fmt.Println(line)
//	}
//	_, err = job.Result(ctx)
//
// docs/go.md of Muster describes it. muster.dev/api/muster/v1 has the messages of the API.
package muster
