// Makes the files of a Secret that a run's container starts from: our scripts, which are the same
// for every run, and the user's words as data beside them. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_MANIFEST_RUN_SECRET_H_
#define MUSTER_AGENTS_KUBERNETES_MANIFEST_RUN_SECRET_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::kubernetes {

// The containers' directories of the files, and of the run itself.
inline constexpr char kRunFiles[] = "/muster/run";
inline constexpr char kWorkDirectory[] = "/muster/work";
inline constexpr char kStartFile[] = "start";
inline constexpr char kStorageFile[] = "storage";
inline constexpr char kStorageWordsFile[] = "storage.words";

// Limit of a Secret's values together. Source: MaxSecretSize in pkg/apis/core/types.go of
// Kubernetes.
inline constexpr size_t kMaxSecretBytes = size_t{1} << 20;

// start/start.sh and start/storage.sh.
std::string_view StartScript();
std::string_view StorageScript();

// Returns them by file name. `files` are in kRunFiles and the run's own directory in `work`, which
// is for tests. The assignment has paths of this cluster in place of URIs.
std::map<std::string, std::string> MakeRunFiles(const agent::v1::Assignment& assignment,
                                                std::string_view cluster,
                                                const std::string& files = kRunFiles,
                                                const std::string& work = kWorkDirectory);

// INVALID_ARGUMENT: all together are too large; names what has the most.
absl::Status CheckSecretSize(const v1::JobSpec& spec,
                             const std::map<std::string, std::string>& files);

// Returns the name by which the run's pods find the one of that index.
std::string HostOfPod(const std::string& run_key, uint32_t index);

// Returns the number of the run's pods: its nodes, or the ranks of its roles.
uint32_t PodCount(const v1::JobSpec& spec);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_MANIFEST_RUN_SECRET_H_
