package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// manifests are those of Kueue's release: crd/*.yaml and webhooks.yaml. build.sh puts them here.
//
//go:embed manifests
var manifests embed.FS

// readKinds reads Kueue's kinds of objects.
func readKinds() ([]*apiextensions.CustomResourceDefinition, error) {
	paths, err := fs.Glob(manifests, "manifests/crd/*.yaml")
	if err != nil {
		return nil, err
	}
	var kinds []*apiextensions.CustomResourceDefinition
	for _, path := range paths {
		kind := &apiextensions.CustomResourceDefinition{}
		if err := read(path, kind); err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func read(path string, into any) error {
	text, err := manifests.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readWebhooks reads Kueue's webhooks of Jobs and of its own objects: nobody here serves the others.
func readWebhooks() (*envtest.WebhookInstallOptions, error) {
	text, err := manifests.ReadFile("manifests/webhooks.yaml")
	if err != nil {
		return nil, err
	}
	hooks := &envtest.WebhookInstallOptions{MaxTime: startPatience}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		kind := meta.TypeMeta{}
		mutating, validating := &admission.MutatingWebhookConfiguration{}, &admission.ValidatingWebhookConfiguration{}
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "MutatingWebhookConfiguration":
			if err := yaml.Unmarshal(document, mutating); err != nil {
				return nil, err
			}
			mutating.Webhooks = served(mutating.Webhooks, func(hook admission.MutatingWebhook) string { return *hook.ClientConfig.Service.Path })
			hooks.MutatingWebhooks = append(hooks.MutatingWebhooks, mutating)
		case "ValidatingWebhookConfiguration":
			if err := yaml.Unmarshal(document, validating); err != nil {
				return nil, err
			}
			validating.Webhooks = served(validating.Webhooks, func(hook admission.ValidatingWebhook) string { return *hook.ClientConfig.Service.Path })
			hooks.ValidatingWebhooks = append(hooks.ValidatingWebhooks, validating)
		}
	}
	return hooks, nil
}

func served[Hook any](hooks []Hook, pathOf func(Hook) string) []Hook {
	var kept []Hook
	for _, hook := range hooks {
		path := pathOf(hook)
		if strings.HasSuffix(path, "-batch-v1-job") || strings.Contains(path, "-kueue-x-k8s-io-") {
			kept = append(kept, hook)
		}
	}
	return kept
}
