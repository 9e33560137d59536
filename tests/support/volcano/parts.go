package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	scheduling "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
	"volcano.sh/volcano/cmd/scheduler/app/options"
	"volcano.sh/volcano/pkg/controllers/framework"
	_ "volcano.sh/volcano/pkg/controllers/podgroup" // The controllers register themselves,
	_ "volcano.sh/volcano/pkg/controllers/queue"
	"volcano.sh/volcano/pkg/scheduler"
	_ "volcano.sh/volcano/pkg/scheduler/actions" // and so do the scheduler's actions and plug-ins.
	_ "volcano.sh/volcano/pkg/scheduler/plugins"
	volcanoutil "volcano.sh/volcano/pkg/util"
)

const (
	schedulerName = "volcano"
	defaultQueue  = "default"
	// schedulePeriod is a fifth of the default, so that tests are soon through.
	schedulePeriod = 200 * time.Millisecond
	// workers of each controller; the release's default.
	workers = 5
	// retries of a change that another writer overtook; the release's default. With none, a queue may stay closed for ever.
	retries = 15
)

// startScheduler returns once it knows what is in the cluster. Its settings and its socket are in the directory.
func startScheduler(ctx context.Context, config *rest.Config, dir string) error {
	settings := filepath.Join(dir, "settings", "scheduler.conf")
	if err := os.Mkdir(filepath.Dir(settings), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(settings, schedulerSettings, 0o600); err != nil {
		return err
	}
	if err := os.Setenv(volcanoutil.SocketDirEnvName, dir); err != nil {
		return err
	}
	chosen := options.NewServerOption()
	chosen.AddFlags(pflag.NewFlagSet(schedulerName, pflag.ContinueOnError)) // This sets the defaults.
	chosen.SchedulerConf, chosen.SchedulePeriod, chosen.EnableCacheDumper = settings, schedulePeriod, false
	chosen.RegisterOptions()
	made, err := scheduler.NewScheduler(config, chosen)
	if err != nil {
		return err
	}
	made.Run(ctx.Done())
	return nil
}

// startControllers starts all that have registered.
func startControllers(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	volcano, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return err
	}
	option := &framework.ControllerOption{
		KubeClient: client, VolcanoClient: volcano, Config: config,
		SharedInformerFactory:   informers.NewSharedInformerFactory(client, 0),
		VCSharedInformerFactory: volcanoinformers.NewSharedInformerFactory(volcano, 0),
		SchedulerNames:          []string{schedulerName}, InheritOwnerAnnotations: true,
		WorkerNum: workers, WorkerThreadsForPG: workers, MaxRequeueNum: retries,
	}
	failed := error(nil)
	framework.ForeachController(func(one framework.Controller) {
		if err := one.Initialize(option); err != nil {
			failed = fmt.Errorf("%s: %w", one.Name(), err)
			return
		}
		go one.Run(ctx.Done())
	})
	return failed
}

// awaitQueue returns once the scheduler's default queue, which it makes itself, has been opened by its controller.
func awaitQueue(ctx context.Context, config *rest.Config) error {
	client, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startPatience, true, func(ctx context.Context) (bool, error) {
		queue, err := client.SchedulingV1beta1().Queues().Get(ctx, defaultQueue, meta.GetOptions{})
		return err == nil && queue.Status.State == scheduling.QueueStateOpen, nil
	})
	if err != nil {
		return fmt.Errorf("the queue %s is not open: %w", defaultQueue, err)
	}
	return nil
}
