package main

import (
	_ "embed"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// podGroups is the kind's definition in the release that go.mod names. build.sh puts it here.
//
//go:embed podgroups.yaml
var podGroups []byte

// schedulerName is what pods name to be placed by this scheduler; it is that of the release's own Helm chart.
const schedulerName = "scheduler-plugins-scheduler"

// installPodGroups returns once the API server serves the kind.
func installPodGroups(config *rest.Config) error {
	kind := &apiextensions.CustomResourceDefinition{}
	if err := yaml.Unmarshal(podGroups, kind); err != nil {
		return err
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		CRDs: []*apiextensions.CustomResourceDefinition{kind}, MaxTime: startPatience,
	})
	return err
}

// writeSettings are those of the release's example (manifests/coscheduling), with the plug-in's defaults, and without
// waits between tries and limits of calls, so that tests are soon through.
func writeSettings(path, kubeconfig string) error {
	settings := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"leaderElection":       map[string]any{"leaderElect": false},
		"clientConnection":     map[string]any{"kubeconfig": kubeconfig, "qps": 1000, "burst": 1000},
		"podMaxBackoffSeconds": 1,
		"profiles": []any{map[string]any{
			"schedulerName": schedulerName,
			"plugins": map[string]any{
				"multiPoint": map[string]any{"enabled": []any{map[string]any{"name": "Coscheduling"}}},
				// There can be only one order of the queue.
				"queueSort": map[string]any{
					"enabled":  []any{map[string]any{"name": "Coscheduling"}},
					"disabled": []any{map[string]any{"name": "*"}},
				},
			},
		}},
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
