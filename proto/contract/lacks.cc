#include "contract/lacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "absl/time/time.h"
#include "contract/counted.h"
#include "contract/gpu_types.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::contract {
namespace {

constexpr uint64_t kThousandths = 1000;
constexpr size_t kMostListedTypes = 8;  // keeps the sentence readable
constexpr size_t kMostListedPools = 8;  // likewise

// " (it has A, B)": the types of GPUs there are; empty: there are none.
std::string GpuTypesText(const v1::Pool& pool) {
  const std::set<std::string> types = GpuTypesOf(pool);
  if (types.empty()) return "";
  return fmt::format(" (it has {})", ListedUpTo(kMostListedTypes, {types.begin(), types.end()}));
}

std::string GpusText(const Lack& lack) {
  return lack.gpu_type.empty() ? std::string("GPUs")
                               : fmt::format("GPUs of type {}", lack.gpu_type);
}

std::string NoGpuType(const Lack& lack) {
  const std::string types = GpuTypesText(*lack.pool);
  const std::string remedy =
      types.empty()
          ? "choose another pool or cluster, or leave out the GPUs "
            "(resources.gpus)"
          : HowToAskForGpus(*GpuTypesOf(*lack.pool).begin(), lack.requested / kThousandths);
  return fmt::format("pool \"{}\" has no {}{}; {}", lack.pool->name(), GpusText(lack), types,
                     remedy);
}

std::string UnclearGpuType(const Lack& lack) {
  std::set<std::string> labels = GpuTypesOf(*lack.pool);
  std::erase_if(labels, [](const std::string& type) { return type.find('/') != type.npos; });
  return fmt::format("pool \"{}\": {}", lack.pool->name(),
                     WhichGpuType(lack.gpu_type, FindGpuTypes(lack.gpu_type, labels),
                                  lack.requested / kThousandths));
}

std::string NoSuchPool(const Lack& lack) {
  const auto& pools = lack.inventory->pools();
  std::vector<std::string> known;
  for (const v1::Pool& pool : pools) known.push_back(fmt::format("\"{}\"", pool.name()));
  return fmt::format(
      "{} \"{}\" (it has {})",
      lack.code == LackCode::kNamespace ? "kubernetes.namespace: its agent works in no namespace"
                                        : "it has no pool",
      lack.asked, known.empty() ? "none" : ListedUpTo(kMostListedPools, std::move(known)));
}

std::string PartsOfGpus(const Lack& lack) {
  v1::GpuRequest gpus;
  gpus.set_type(std::string(lack.asked));
  gpus.set_count_millis(lack.requested);
  return fmt::format(
      "it is of kind {}, which gives GPUs whole, and the job asks for {} (resources.gpus); ask for "
      "whole GPUs, or choose a cluster of kind machines",
      Name(lack.kind), FormatGpus(gpus));
}

std::string NoContainers(const Lack& lack) {
  if (lack.kind != v1::CLUSTER_KIND_MACHINES)
    return "it runs no containers, and the job has an image";
  return "it is of kind machines and runs no containers, and the job has an image; have the "
         "cluster's operator install podman, docker, enroot or apptainer on each machine, or "
         "choose another cluster; with run_as: user no machine runs containers yet";
}

// The sentences about the kind of the cluster, and about the jobs that it takes at all.
std::string SentenceOfKind(const Lack& lack) {
  switch (lack.code) {
    case LackCode::kNotNamed:
      return "the job names other clusters";
    case LackCode::kClusterOfOthers:
      return fmt::format(
          "the project \"{}\" may not use it; name another project (project), or ask an admin of "
          "the "
          "broker to allow the cluster (muster project set)",
          lack.asked);
    case LackCode::kAccount:
      return fmt::format(
          "it is of kind slurm, and the jobs of the project \"{}\" name an account there; name one "
          "(slurm.account), or choose a cluster of another kind",
          lack.asked);
    case LackCode::kPoolOfOthers:
      return fmt::format(
          "the project \"{}\" may not use the pool that the job would get; name one of its pools "
          "(placement.pool), or ask an admin of the broker to allow the pool (muster project set)",
          lack.asked);
    case LackCode::kSlurm:
      return fmt::format(
          "it is of kind {}, and the job has options of Slurm (a slurm section, or a batch script "
          "that needs it)",
          Name(lack.kind));
    case LackCode::kKubernetes:
      return fmt::format(
          "it is of kind {}, and the job has a kubernetes section; take the section out, or choose "
          "a cluster of kind kubernetes (cluster)",
          Name(lack.kind));
    case LackCode::kRoles:
      return fmt::format(
          "it is of kind {}, and the job has roles, which only Slurm and Kubernetes run",
          Name(lack.kind));
    case LackCode::kSharedRoles:
      return "it is of kind kubernetes, and the job has roles that share nodes, which only Slurm "
             "runs; give each role nodes of its own (roles[].first_node), or choose a cluster of "
             "kind slurm";
    case LackCode::kImage:
      return "it runs only jobs with an image, and the job has none; name one, or have the "
             "cluster's operator set a default";
    case LackCode::kContainers:
      return NoContainers(lack);
    case LackCode::kImageFile:
      return fmt::format("it is of kind {}, and the job's image is a file, which only Slurm runs",
                         Name(lack.kind));
    case LackCode::kUploads:
      return "its agent takes no files that jobs bring along, as those of older versions do, and "
             "the job brings some (uploads: a local workdir or file_mounts); have its operator "
             "update the agent, or copy them there yourself and name that directory by its "
             "absolute path, or choose another cluster";
    case LackCode::kShell:
      return "its agent takes no variables of your shell, as those of older versions do; have its "
             "operator update the agent, or submit with --export=NIL and name what the script "
             "needs in the script, or choose another cluster";
    case LackCode::kSecrets:
      return "its agent gives runs no secrets, as those of older versions do not, and the job has "
             "some (secrets); have its operator update the agent, or choose another cluster";
    case LackCode::kPartsOfGpus:
      return PartsOfGpus(lack);
    case LackCode::kMachineFile:
      return fmt::format(
          "it does not see the files of your machine, and {} names one; copy the data there and "
          "write lustre:///path",
          lack.asked);
    case LackCode::kRefused:
      return lack.refusal;
    default:
      return "";
  }
}

// The sentences about a pool.
std::string SentenceOfPool(const Lack& lack) {
  const std::string& pool = lack.pool->name();
  switch (lack.code) {
    case LackCode::kGpuTypeUnclear:
      return UnclearGpuType(lack);
    case LackCode::kGpuType:
      return NoGpuType(lack);
    case LackCode::kGpus:
      return fmt::format(
          "pool \"{0}\" has at most {1} {2} on a node, {3} are needed; ask for at most {1} on each "
          "node (resources.gpus)",
          pool, lack.available / kThousandths, GpusText(lack), lack.requested / kThousandths);
    case LackCode::kCores:
      return fmt::format(
          "pool \"{0}\" has at most {1} cores on a node, {2} are needed; ask for at most {1} "
          "(resources.cpus)",
          pool, lack.available / kThousandths, lack.requested / kThousandths);
    case LackCode::kMemory:
      return fmt::format(
          "pool \"{0}\" has at most {1} of memory on a node, {2} are needed; ask for at most {1} "
          "(resources.memory)",
          pool, FormatBytes(lack.available), FormatBytes(lack.requested));
    case LackCode::kAllAtOnce:
      return fmt::format(
          "pool \"{}\" has no node with all that is needed at once; ask for less of one of them "
          "(resources.cpus, resources.memory, resources.gpus)",
          pool);
    case LackCode::kNodes:
      return fmt::format(
          "pool \"{}\" has {} with what each needs (resources), {} are needed; ask for at most {} "
          "(nodes)",
          pool, Counted(lack.good_nodes, "node"), lack.requested, lack.available);
    case LackCode::kNodesOfARun:
      return fmt::format(
          "pool \"{0}\" gives a run at most {1} nodes, {2} are needed; ask for at most {1} (nodes)",
          pool, lack.available, lack.requested);
    case LackCode::kTimeLimit:
      return fmt::format(
          "pool \"{0}\" has a time limit of {1}, {2} are needed; ask for at most {1} (time)", pool,
          contract::FormatDuration(absl::Seconds(lack.available)),
          contract::FormatDuration(absl::Seconds(lack.requested)));
    case LackCode::kOpenPool:
      return MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
                        {.scheduler_reason = lack.pool->state(), .pool = pool})
          .message();
    default:
      return "";
  }
}

// Returns the resource as v1::Shortage names it; empty: it is not one thing.
std::string ResourceOf(const Lack& lack) {
  switch (lack.code) {
    case LackCode::kClusterOfOthers:
      return "project";
    case LackCode::kAccount:
      return "slurm.account";
    case LackCode::kSlurm:
    case LackCode::kKubernetes:
      return "kind";
    case LackCode::kRoles:
    case LackCode::kSharedRoles:
      return "roles";
    case LackCode::kImage:
    case LackCode::kContainers:
    case LackCode::kImageFile:
      return "image";
    case LackCode::kUploads:
      return "uploads";
    case LackCode::kShell:
      return "slurm.batch_script.environment";
    case LackCode::kSecrets:
      return "secrets";
    case LackCode::kMachineFile:
      return "inputs";
    case LackCode::kPoolOfOthers:
    case LackCode::kAnyPool:
    case LackCode::kPool:
    case LackCode::kNamespace:
      return "pool";
    case LackCode::kPartsOfGpus:
      return "gpus";
    case LackCode::kRefused:
      return lack.refused_field;
    case LackCode::kGpuTypeUnclear:
    case LackCode::kGpuType:
    case LackCode::kGpus:
      return lack.gpu_type.empty() ? "gpus" : "gpus:" + lack.gpu_type;
    case LackCode::kCores:
      return "cpus";
    case LackCode::kMemory:
      return "memory";
    case LackCode::kAllAtOnce:
    case LackCode::kNodes:
    case LackCode::kNodesOfARun:
      return "nodes";
    case LackCode::kTimeLimit:
      return "time_limit";
    default:
      return "";
  }
}

}  // namespace

std::set<std::string> GpuTypesOf(const v1::Pool& pool) {
  std::set<std::string> types;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    for (const auto& [type, count] : group.gpus()) {
      if (count > 0 && group.count() > 0) types.insert(type);
    }
  }
  return types;
}

std::string SentenceOf(const Lack& lack) {
  if (lack.code == LackCode::kAnyPool) return "it has no pool";
  if (lack.code == LackCode::kPool || lack.code == LackCode::kNamespace) return NoSuchPool(lack);
  return lack.pool != nullptr ? SentenceOfPool(lack) : SentenceOfKind(lack);
}

std::optional<v1::Shortage> ShortageOf(const Lack& lack) {
  const std::string resource = ResourceOf(lack);
  if (resource.empty()) return std::nullopt;
  v1::Shortage shortage;
  shortage.set_resource(resource);
  // A part of a GPU is no number too many.
  if (lack.code != LackCode::kPartsOfGpus) shortage.set_requested(lack.requested);
  shortage.set_available(lack.available);
  shortage.set_message(SentenceOf(lack));
  return shortage;
}

v1::StateReason LackReason(const Lack& lack, const std::string& cluster) {
  if (lack.code == LackCode::kOpenPool) {
    v1::StateReason reason = MakeReason(
        v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
        {.scheduler_reason = lack.pool->state(), .cluster = cluster, .pool = lack.pool->name()});
    if (lack.pool->has_unavailable_since())
      *reason.mutable_since() = lack.pool->unavailable_since();
    return reason;
  }
  v1::StateReason reason = MakeReason(v1::STATE_REASON_CODE_DOES_NOT_FIT,
                                      {.detail = SentenceOf(lack), .cluster = cluster});
  if (auto shortage = ShortageOf(lack)) *reason.add_shortages() = *std::move(shortage);
  return reason;
}

std::string CannotBePlaced(const std::string& lacks, const std::string& why_slurm,
                           bool names_clusters) {
  constexpr std::string_view kNone = "no cluster can ever run this job: ";
  // The lacks of a Slurm cluster are all that the user needs to know if there is one.
  if (why_slurm.empty() || !lacks.empty()) return fmt::format("{}{}", kNone, lacks);
  return fmt::format("{}only Slurm can take it because {}, and {}", kNone, why_slurm,
                     names_clusters ? "the job names no cluster of kind slurm (cluster); do "
                                      "without it, or name one"
                                    : "no cluster of kind slurm is known; do without it");
}

}  // namespace muster::contract
