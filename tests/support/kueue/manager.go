package main

import (
	"context"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta1"
	kueuealpha "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs/job" // The integration registers itself.
	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

// leftOut are Kueue's features that need other parts than those that are here: several clusters, and the topology of
// nodes.
var leftOut = []featuregate.Feature{features.MultiKueue, features.TopologyAwareScheduling}

// newManager sets up what Kueue's own command does (cmd/kueue/main.go), without what is left out.
func newManager(ctx context.Context, config *rest.Config, hooks *envtest.WebhookInstallOptions) (ctrl.Manager, error) {
	for _, feature := range leftOut {
		if err := features.SetEnable(feature, false); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kueue.AddToScheme, kueuealpha.AddToScheme, configapi.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	settings := configapi.Configuration{}
	scheme.Default(&settings)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"}, // none
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	if err != nil {
		return nil, err
	}
	metrics.Register()
	if err := addParts(ctx, manager, &settings); err != nil {
		return nil, err
	}
	return manager, nil
}

func addParts(ctx context.Context, manager ctrl.Manager, settings *configapi.Configuration) error {
	cache := schdcache.New(manager.GetClient())
	queues := qcache.NewManager(manager.GetClient(), cache)
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	frameworks := jobframework.WithEnabledFrameworks(settings.Integrations.Frameworks)
	if err := indexer.Setup(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	if err := jobframework.SetupIndexes(ctx, manager.GetFieldIndexer(), frameworks); err != nil {
		return err
	}
	version, err := fetchVersion(manager)
	if err != nil {
		return err
	}
	if failed, err := core.SetupControllers(manager, queues, cache, settings); err != nil {
		return fmt.Errorf("controller %s: %w", failed, err)
	}
	if failed, err := webhooks.Setup(manager, ""); err != nil {
		return fmt.Errorf("webhook %s: %w", failed, err)
	}
	namespaces, err := meta.LabelSelectorAsSelector(settings.ManagedJobsNamespaceSelector)
	if err != nil {
		return err
	}
	if err := jobframework.SetupControllers(ctx, manager, ctrl.Log.WithName("setup"), frameworks,
		jobframework.WithKubeServerVersion(version), jobframework.WithManagerName(constants.KueueName),
		jobframework.WithManagedJobsNamespaceSelector(namespaces), jobframework.WithCache(cache),
		jobframework.WithQueues(queues)); err != nil {
		return err
	}
	return manager.Add(scheduler.New(queues, cache, manager.GetClient(), manager.GetEventRecorderFor(constants.AdmissionName)))
}

func fetchVersion(manager ctrl.Manager) (*kubeversion.ServerVersionFetcher, error) {
	client, err := discovery.NewDiscoveryClientForConfig(manager.GetConfig())
	if err != nil {
		return nil, err
	}
	fetcher := kubeversion.NewServerVersionFetcher(client)
	if err := fetcher.FetchServerVersion(); err != nil {
		return nil, err
	}
	return fetcher, manager.Add(fetcher)
}
