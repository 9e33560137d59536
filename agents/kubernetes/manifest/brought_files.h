// Brings a job's files into a pod: an archive in parts, each in a Secret, which the container that
// looks at the storage unpacks with the image's own tar.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_BROUGHT_FILES_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_BROUGHT_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/files/job_files.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/manifest/pod_volumes.h"

namespace muster::kubernetes {

// An archive has at most this many bytes: each run's has a copy in the API server's etcd, which
// holds 2 GiB by default, and in each node's memory. Code fits; data does not.
inline constexpr uint64_t kMaxArchiveBytes = uint64_t{8} << 20;
// Limit of a part in a Secret, which holds kMaxSecretBytes with all that is around it.
inline constexpr size_t kMaxPartBytes = size_t{900} << 10;

// This annotation of a Job has the bytes of its archive, in decimal digits.
inline constexpr char kArchiveAnnotation[] = "muster.dev/archive-bytes";
// Returns the number in that annotation; 0 if it has no archive.
uint64_t ArchiveBytesOf(const Json& job);

// INVALID_ARGUMENT: they are too many, with the remedy.
absl::Status CheckArchive(const v1::FileTree& tree);

// The only key of such a Secret.
inline constexpr char kPartFile[] = "part";
std::string NameOfPart(const std::string& run_key, size_t index);

// Returns the archive's parts. Errors as of CheckArchive; UNAVAILABLE: a cached file was damaged.
absl::StatusOr<std::vector<std::string>> PackFiles(const uploads::LocalFiles& files,
                                                   uploads::FileCache* cache);

// Returns blank parts, as long as those of an archive of so many bytes, for a plan without an
// archive.
std::vector<std::string> BlankParts(uint64_t archive_bytes);

// Shows the parts to the container that looks at the storage, and has it unpack them. Pure.
void AddBroughtFiles(const std::string& run_key, size_t parts, PodVolumes* volumes);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_BROUGHT_FILES_H_
