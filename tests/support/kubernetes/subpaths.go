package main

import (
	"os"
	"path/filepath"

	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
)

// subPaths are the parts of volumes that containers mount. A real kubelet mounts each of them for itself, so that nobody
// can swap it for a link meanwhile; here the path is taken as it is, so that no mount outlives the cluster.
type subPaths struct{}

func (subPaths) PrepareSafeSubpath(part subpath.Subpath) (string, func(), error) {
	return part.Path, nil, nil
}

func (subPaths) CleanSubPaths(podDir, volumeName string) error { return nil }

func (subPaths) SafeMakeDir(part, base string, mode os.FileMode) error {
	return os.MkdirAll(filepath.Join(base, part), mode)
}

// machineFiles are what a kubelet asks its machine of paths.
type machineFiles struct {
	*hostutil.HostUtil
}

// A kubelet makes its directory a mount of its own, which would outlive the cluster, too.
func (machineFiles) MakeRShared(path string) error { return nil }
