// Judges jobs by the facts that a cluster's agent publishes beside capacity.
//
// The agent uses the same words and rules for plans and launches, with what it sees at that moment;
// the broker uses published facts (v1::AdmissionFacts), so that a submit asks no agent. Neither
// covers what only the API server can tell. Pure; any thread.
#ifndef MUSTER_PROTO_CONTRACT_ADMISSION_H_
#define MUSTER_PROTO_CONTRACT_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Published facts have a bound: inventories are kept for each cluster and sent with each list.
inline constexpr size_t kMaxAdmissionBytes = size_t{64} << 10;
// A cluster has at most this many node profiles: with more, a judgement costs more than a plan.
inline constexpr int kMaxNodeProfiles = 256;
// A label has at most this many values on a cluster's nodes; a key that has more is not published.
inline constexpr size_t kMaxLabelValues = 32;
// Every cluster that takes archives at all takes one of this size for what a job brings along. The
// size is not judged, so that jobs with different trees are alike.
inline constexpr uint64_t kSmallArchiveBytes = uint64_t{1} << 20;
// This many parts of a path tell storage roots apart: "/lustre/sets/cats".
inline constexpr int kKeptPathParts = 3;
// A place lists at most this many names of one kind; if it has more, it lists none.
inline constexpr int kMaxListedNames = 500;

// The places of Muster's own files, and of shared memory, in containers on Kubernetes.
inline constexpr std::string_view kMusterDirectory = "/muster";
inline constexpr std::string_view kSharedMemory = "/dev/shm";

// A text of the spec that may be a place of a cluster.
struct PlaceText {
  std::string field;
  std::string text;
};

// The part of a job that admission facts judge. Shared by jobs that are alike.
struct AdmissionNeeds {
  uint32_t pods = 1;
  uint64_t cpu_millis = 0;    // of each pod; 0: left open
  uint64_t memory_bytes = 0;  // likewise
  std::string gpu_type;       // as the job says it; empty: any
  uint64_t gpus = 0;          // of each pod
  // The options without labels, annotations and the like, which are never judged.
  v1::KubernetesOptions kubernetes;
  std::string pool;               // placement.pool
  std::vector<PlaceText> places;  // inputs, results, and URIs among variables and arguments
  std::vector<v1::Mount> mounts;
  std::string working_directory;
  bool is_directory_implied = false;  // see IsDirectoryImplied
  bool status_json = false;
  // The directory of its results as the job names it, if status_json counts; empty means the
  // cluster's default.
  std::string results;
  // Options of Slurm's plug-ins, as the field and the option's name.
  std::vector<PlaceText> spank_options;
  // The highest index of the array that it is a task of; 0 if it is none, or the index is 0.
  uint32_t last_array_index = 0;
  // The archive of what it brings along; 0 if nothing, or not known.
  uint64_t archive_bytes = 0;
  // True: only the first parts of places, and of the sources of mounts, are here (see RefusableOf).
  // A place is then refused only if it is in no storage root, whatever follows.
  bool are_places_cut = false;
};

// Returns nothing if the job asks for nothing that admission facts tell of.
std::optional<AdmissionNeeds> AdmissionNeedsOf(const v1::JobSpec& spec);
// Returns the needs that a cluster may refuse, without those that only cause a warning; nothing: no
// cluster can refuse any. Paths keep their first kKeptPathParts, so that jobs with data below the
// same directories are alike.
std::optional<AdmissionNeeds> RefusableOf(AdmissionNeeds needs);
// Returns the same for jobs that are judged alike, of any length.
std::string BytesOf(const AdmissionNeeds& needs);

struct Admission {
  // Needs that the cluster cannot meet or does not allow, each with its field and a sentence.
  std::vector<v1::Shortage> refusals;
  // Warnings of a submit. The cluster is not set.
  std::vector<v1::SubmitWarning> warnings;
};
// `cluster` is its name, for the sentences.
Admission JudgeAdmission(const AdmissionNeeds& needs, const v1::AdmissionFacts& facts,
                         std::string_view cluster);
// Returns the sentences of the first three refusals as one text; empty if there are none.
std::string RefusalText(const std::vector<v1::Shortage>& refusals);

// ---- parts of the judgement, for agents

// Finds a field that the cluster's operator does not allow, with a sentence. Nothing: all is
// allowed.
std::optional<v1::Shortage> FindForbidden(const v1::KubernetesOptions& options,
                                          const v1::KubernetesFacts& facts,
                                          std::string_view cluster);

// '"nosuch": there is none in namespace lab; it has "a", "b"'. `where`: " in namespace lab" or "".
std::string NoneOfThatName(std::string_view name, std::string_view where,
                           std::vector<std::string> names);
// Returns the reason that a cluster with these API groups lacks the queue's or the gang's
// scheduler. Nothing: it has it.
std::optional<v1::Shortage> FindMissingScheduler(const v1::KubernetesOptions& options,
                                                 const std::vector<std::string>& groups);
// A namespace has no queue of that name. `others`: "it has a, b".
std::string NoSuchQueue(std::string_view queue, std::string_view name_space,
                        std::string_view others);
// A path is in no directory of shared data.
std::string InNoStorageRoot(std::string_view path, std::string_view cluster, bool has_roots);
// Returns the operator's credentials for images, of which jobs have the use and not the password.
std::string OperatorsSecret(std::string_view name, std::string_view cluster);
std::string HostPathForbidden(std::string_view path, std::string_view cluster);
// Returns the reason that nothing may be mounted at the path of a container; empty: something may.
std::string BadMountPlace(std::string_view path);
// Returns the reason that /dev/shm of so many bytes is too large for a pod with that memory; empty
// if it is not.
std::string SharedMemoryTooLarge(uint64_t shm_bytes, uint64_t memory_bytes);
// An archive of so many bytes is more than may be brought along; empty if it is not.
std::string ArchiveTooLarge(uint64_t bytes, uint64_t max_bytes);

// Returns the reason that status.json cannot be read: there is no results directory for it.
std::string NoPlaceForStatus(std::string_view cluster);
// The agent of a Kubernetes cluster does not see the results directory.
std::string StatusNotReadable(std::string_view results, std::string_view cluster);

// Returns the check of a plan that warns that the image may lack the working directory.
v1::ClusterCheck UnknownDirectory(std::string_view directory, bool is_implied);

// Returns the reason that the published nodes can never hold the pods; nothing: they may.
std::optional<v1::Shortage> FindNodeShortage(const AdmissionNeeds& needs,
                                             const v1::KubernetesFacts& facts);
// Returns the limit of the run's namespace that the run breaks even if nothing else counts in it.
// Nothing: it breaks none of those that are published.
std::optional<v1::Shortage> FindLimitShortage(const AdmissionNeeds& needs,
                                              const v1::KubernetesFacts& facts);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_ADMISSION_H_
