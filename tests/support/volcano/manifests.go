package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// kinds are the definitions of Volcano's release. build.sh puts them here.
//
//go:embed crd
var kinds embed.FS

// schedulerSettings are those of the release's Helm chart, likewise.
//
//go:embed scheduler.conf
var schedulerSettings []byte

// installKinds returns once the API server serves them.
func installKinds(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	paths, err := fs.Glob(kinds, "crd/*.yaml")
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := installKind(ctx, client, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func installKind(ctx context.Context, client *clientset.Clientset, path string) error {
	text, err := kinds.ReadFile(path)
	if err != nil {
		return err
	}
	kind := &apiextensions.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, kind); err != nil {
		return err
	}
	all := client.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := all.Create(ctx, kind, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startPatience, true, func(ctx context.Context) (bool, error) {
		made, err := all.Get(ctx, kind.Name, meta.GetOptions{})
		return err == nil && isServed(made), nil
	})
}

func isServed(kind *apiextensions.CustomResourceDefinition) bool {
	for _, condition := range kind.Status.Conditions {
		if condition.Type == apiextensions.Established {
			return condition.Status == apiextensions.ConditionTrue
		}
	}
	return false
}
