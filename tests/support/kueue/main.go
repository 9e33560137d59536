// Command kueue runs Kueue on a cluster of this machine, for tests: Kueue's own scheduler, controllers and webhooks, with
// the one of its integrations that batch/v1 Jobs need. It first makes what Kueue needs in the cluster: the kinds of
// its objects, and webhooks by the address where it serves them.
//
//	kueue KUBECONFIG
//
// The file is that of the cluster's administrator. It prints "ready" once its webhooks are asked, and stops at SIGTERM or
// SIGINT, or when its standard input is a pipe that closes (so that a test that dies takes it along). Its settings are
// Kueue's defaults. Flavors and queues are the caller's to make.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// startPatience is for each step of the start, on a machine that does much else.
const startPatience = 5 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kueue KUBECONFIG")
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(false)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	stopWithCaller(stop)
	if err := run(ctx, os.Args[1]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
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
	kinds, err := readKinds()
	if err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: kinds, MaxTime: startPatience}); err != nil {
		return fmt.Errorf("make Kueue's kinds of objects: %w", err)
	}
	hooks, err := readWebhooks()
	if err != nil {
		return err
	}
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return fmt.Errorf("make the webhooks' certificate: %w", err)
	}
	defer hooks.Cleanup()
	manager, err := newManager(ctx, config, hooks)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(ctx) }()
	if err := announce(ctx, config, manager, hooks, failed); err != nil {
		return err
	}
	return <-failed
}

// announce has the API server ask the webhooks once they are served, and says so.
func announce(ctx context.Context, config *rest.Config, manager ctrl.Manager, hooks *envtest.WebhookInstallOptions, failed chan error) error {
	isServed := manager.GetWebhookServer().StartedChecker()
	for end := time.Now().Add(startPatience); isServed(nil) != nil; {
		if time.Now().After(end) {
			return errors.New("the webhooks are not served")
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := hooks.Install(config); err != nil {
		return fmt.Errorf("announce the webhooks: %w", err)
	}
	fmt.Println("ready")
	return nil
}
