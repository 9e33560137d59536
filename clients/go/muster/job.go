package muster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.dev/api/muster/v1"
)

// The most runs of a job beside its first one.
const maxRetries = 99

// Job is a program, its place and its resources. Every field but the program has a default; the broker checks all of them.
type Job struct {
	Script  string        // a shell script; not together with Args
	Args    []string      // a program with its arguments, which no shell reads
	Name    string        // default: the first word of the command
	Project string        // default: "default"
	Nodes   uint32        // 1 to 10000; the command starts once on each. Default: 1
	CPUs    float64       // of each node; 0: the cluster's default
	Memory  string        // of each node: bytes, or "16Gi"; empty: the cluster's default
	GPUs    string        // of each node: "8", "H100", "H100:8", "H100:0.5"; "0": none
	Time    time.Duration // the longest that it may run; 0: the cluster's default
	Image   string        // a container image
	Env     map[string]string
	Labels  map[string]string
	// Priority is -1000 to 1000, higher first.
	Priority int32
	Clusters []string // the only ones that may take it; default: any
	Pool     string   // Slurm: the partition; Kubernetes: the namespace
	Setup    string   // a shell script that runs once on each node before the command
	// Workdir is a directory of this machine whose copy the command starts in.
	Workdir string
	// Files are files and directories of this machine that go along: place in the run's directory, path here.
	Files            map[string]string
	WorkingDirectory string       // a directory of the cluster, absolute; not together with Workdir and Files
	ResultsDirectory string       // of the cluster, e.g. "lustre:///lustre/ada/run7"
	After            []*JobHandle // jobs that have to succeed first
	AfterEnded       []*JobHandle // jobs that have to end first, in any way
	AfterFailed      []*JobHandle // jobs that have to fail or to be canceled first
	Secrets          map[string]string
	// Retries is the number of further runs that may follow one that its cluster failed. Default, nil: 10. See Times.
	Retries *uint32
	// Spec has everything else. The fields above win over it, where they are set.
	Spec *musterv1.JobSpec
}

// Times is for Job.Retries: Times(0) lets no further run follow.
func Times(retries uint32) *uint32 { return &retries }

// Message is the message for the broker, without the files that go along.
func (j Job) Message() (*musterv1.JobSpec, error) {
	spec := &musterv1.JobSpec{}
	if j.Spec != nil {
		spec = proto.Clone(j.Spec).(*musterv1.JobSpec)
	}
	for _, one := range []struct {
		from string
		to   *string
	}{{j.Name, &spec.Name}, {j.Project, &spec.Project}, {j.Image, &spec.Image}, {j.Setup, &spec.Setup},
		{j.WorkingDirectory, &spec.WorkingDirectory}, {j.ResultsDirectory, &spec.ResultsDirectory}} {
		if one.from != "" {
			*one.to = one.from
		}
	}
	if j.Nodes != 0 || spec.Nodes == 0 {
		spec.Nodes = max(1, j.Nodes)
	}
	if j.Priority != 0 {
		spec.Priority = j.Priority
	}
	spec.Env, spec.Labels = merged(spec.Env, j.Env), merged(spec.Labels, j.Labels)
	for _, set := range []func(*musterv1.JobSpec) error{j.setCommand, j.setResources, j.setPlacement, j.setRetries} {
		if err := set(spec); err != nil {
			return nil, err
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(j.Secrets)) {
		spec.Secrets = append(spec.Secrets, &musterv1.SecretUse{Variable: variable, Name: j.Secrets[variable]})
	}
	addDependencies(spec, j.After, musterv1.JobOutcome_JOB_OUTCOME_SUCCEEDED)
	addDependencies(spec, j.AfterEnded, musterv1.JobOutcome_JOB_OUTCOME_ENDED)
	addDependencies(spec, j.AfterFailed, musterv1.JobOutcome_JOB_OUTCOME_FAILED)
	return spec, nil
}

func addDependencies(spec *musterv1.JobSpec, jobs []*JobHandle, outcome musterv1.JobOutcome) {
	for _, job := range jobs {
		spec.DependsOn = append(spec.DependsOn, &musterv1.JobDependency{JobId: job.ID, Outcome: outcome})
	}
}

func merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	made := map[string]string{}
	maps.Copy(made, base)
	maps.Copy(made, over)
	return made
}

func (j Job) setCommand(spec *musterv1.JobSpec) error {
	switch {
	case j.Script != "" && len(j.Args) > 0:
		return refused(ErrBadRequest, "Job has Script and Args; it has one of them")
	case j.Script != "":
		spec.Command = &musterv1.Command{Form: &musterv1.Command_Script{Script: j.Script}}
	case len(j.Args) > 0:
		spec.Command = &musterv1.Command{Form: &musterv1.Command_Argv{Argv: &musterv1.Argv{Args: j.Args}}}
	case spec.Command == nil && len(spec.Roles) == 0:
		return refused(ErrBadRequest, "Job has no command: set Script, for a shell, or Args, a program and its arguments")
	}
	return nil
}

func (j Job) setResources(spec *musterv1.JobSpec) (err error) {
	if j.CPUs == 0 && j.Memory == "" && j.GPUs == "" && j.Time == 0 {
		return nil
	}
	if spec.Resources == nil {
		spec.Resources = &musterv1.Resources{}
	}
	if j.CPUs != 0 {
		if spec.Resources.CpuMillis, err = millis(j.CPUs, maxCPUMillis, "CPUs"); err != nil {
			return err
		}
	}
	if j.Memory != "" {
		if spec.Resources.MemoryBytes, err = size(j.Memory, "Memory"); err != nil {
			return err
		}
	}
	if j.GPUs != "" {
		request, err := gpus(j.GPUs)
		if err != nil {
			return err
		}
		spec.Resources.Gpus = []*musterv1.GpuRequest{request}
	}
	if j.Time != 0 {
		spec.TimeLimit, err = timeLimit(j.Time)
	}
	return err
}

func (j Job) setPlacement(spec *musterv1.JobSpec) error {
	if len(j.Clusters) == 0 && j.Pool == "" {
		return nil
	}
	if spec.Placement == nil {
		spec.Placement = &musterv1.Placement{}
	}
	spec.Placement.Clusters = append(spec.Placement.Clusters, j.Clusters...)
	if j.Pool != "" {
		spec.Placement.Pool = j.Pool
	}
	return nil
}

func (j Job) setRetries(spec *musterv1.JobSpec) error {
	if j.Retries == nil {
		return nil
	}
	if *j.Retries > maxRetries {
		return refused(ErrBadRequest, fmt.Sprintf("Retries is %d; it is 0 to %d", *j.Retries, maxRetries))
	}
	if spec.Retry == nil {
		spec.Retry = &musterv1.RetryPolicy{}
	}
	spec.Retry.MaxRuns = *j.Retries + 1
	return nil
}

// A file or a directory that goes along with a job.
type wanted struct {
	path  string // here
	place string // in the run's directory; empty: the directory itself
}

func (j Job) uploads() []wanted {
	var found []wanted
	if j.Workdir != "" {
		found = append(found, wanted{expandHome(j.Workdir), ""})
	}
	for _, place := range slices.Sorted(maps.Keys(j.Files)) {
		found = append(found, wanted{expandHome(j.Files[place]), place})
	}
	return found
}

func expandHome(path string) string {
	if home, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(home, path[1:])
	}
	return path
}
