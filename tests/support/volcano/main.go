// Command volcano runs Volcano on a cluster of this machine, for tests: its scheduler, for pods that name "volcano", and
// those of its controllers that look after PodGroups and queues. It first makes the kinds of its objects in the cluster.
//
//	volcano KUBECONFIG
//
// The file is that of the cluster's administrator. It prints "ready" once the scheduler takes pods and its queue "default"
// is open, and stops at SIGTERM or SIGINT, or when its standard input is a pipe that closes (so that a test that dies takes
// it along). The scheduler's settings are those of the release's own Helm chart.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// startPatience is for each step of the start, on a machine that does much else.
const startPatience = 5 * time.Minute

func main() {
	klog.InitFlags(nil) // The scheduler asks for its level of logs there.
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: volcano KUBECONFIG")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	stopWithCaller(stop)
	if err := run(ctx, flag.Arg(0)); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "volcano:", err)
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
	config.QPS = -1 // no limit
	if err := installKinds(ctx, rest.CopyConfig(config)); err != nil {
		return fmt.Errorf("make Volcano's kinds of objects: %w", err)
	}
	dir, err := os.MkdirTemp("", "volcano-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := startScheduler(ctx, config, dir); err != nil {
		return fmt.Errorf("start the scheduler: %w", err)
	}
	if err := startControllers(ctx, config); err != nil {
		return fmt.Errorf("start the controllers: %w", err)
	}
	if err := awaitQueue(ctx, config); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
