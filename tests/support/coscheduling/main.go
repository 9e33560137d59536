// Command coscheduling runs the scheduler of the scheduler-plugins on a cluster of this machine, for tests: a
// kube-scheduler with the plug-in Coscheduling, beside the cluster's own, for pods that name it. It first makes the kind
// PodGroup in the cluster.
//
//	coscheduling KUBECONFIG
//
// The file is that of the cluster's administrator. It prints "ready" once the scheduler takes pods, and stops at
// SIGTERM or SIGINT, or when its standard input is a pipe that closes (so that a test that dies takes it along).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme" // The plug-in's settings register themselves.
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

// startPatience is for each step of the start, on a machine that does much else.
const startPatience = 5 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: coscheduling KUBECONFIG")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	stopWithCaller(stop)
	if err := run(ctx, os.Args[1]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "coscheduling:", err)
		os.Exit(1)
	}
}

// stopWithCaller stops when whoever holds the other end of standard input is gone.
func stopWithCaller(stop func()) {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	go func() {
		buf := make([]byte, 1)
		for {
			if _, err := os.Stdin.Read(buf); err != nil {
				stop()
				return
			}
		}
	}()
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if err := installPodGroups(config); err != nil {
		return fmt.Errorf("make the kind PodGroup: %w", err)
	}
	complete, sched, err := setup(ctx, kubeconfig)
	if err != nil {
		return fmt.Errorf("set up the scheduler: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- app.Run(ctx, complete, sched) }()
	if err := announce(ctx, sched, failed); err != nil {
		return err
	}
	return <-failed
}

// setup has the scheduler read its settings from a file, as its own command does: it takes them from nowhere else.
func setup(ctx context.Context, kubeconfig string) (*schedulerconfig.CompletedConfig, *scheduler.Scheduler, error) {
	dir, err := os.MkdirTemp("", "coscheduling-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	opts := options.NewOptions()
	opts.ConfigFile = filepath.Join(dir, "settings.yaml")
	if err := writeSettings(opts.ConfigFile, kubeconfig); err != nil {
		return nil, nil, err
	}
	opts.SecureServing.BindPort = 0 // It serves nothing.
	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, nil, err
	}
	return app.Setup(ctx, opts, app.WithPlugin(coscheduling.Name, coscheduling.New))
}

// announce says so once the scheduler knows the nodes and pods that there are.
func announce(ctx context.Context, sched *scheduler.Scheduler, failed chan error) error {
	patience, stop := context.WithTimeout(ctx, startPatience)
	defer stop()
	synced := make(chan error, 1)
	go func() { synced <- sched.WaitForHandlersSync(patience) }()
	select {
	case err := <-failed:
		return err
	case err := <-synced:
		if err != nil {
			return fmt.Errorf("read what is in the cluster: %w", err)
		}
	}
	fmt.Println("ready")
	return nil
}
