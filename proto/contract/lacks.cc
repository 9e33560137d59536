#include "contract/lacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
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

// A lack in words, both without a capital and without a full stop.
struct Words {
  std::string statement;
  std::string advice = {};  // empty: nothing can be done
};

// " (it has A, B)": the types of GPUs there are; empty if there are none.
std::string GpuTypesText(const v1::Pool& pool) {
  const std::set<std::string> types = GpuTypesOf(pool);
  if (types.empty()) return "";
  return fmt::format(" (it has {})", ListedUpTo(kMostListedTypes, {types.begin(), types.end()}));
}

std::string GpusText(const Lack& lack) {
  return lack.gpu_type.empty() ? std::string("GPUs")
                               : fmt::format("GPUs of type {}", lack.gpu_type);
}

Words NoGpuType(const Lack& lack) {
  const std::string types = GpuTypesText(*lack.pool);
  return {fmt::format("pool \"{}\" has no {}{}", lack.pool->name(), GpusText(lack), types),
          types.empty()
              ? "choose another pool or cluster, or leave out the GPUs (resources.gpus)"
              : HowToAskForGpus(*GpuTypesOf(*lack.pool).begin(), lack.requested / kThousandths)};
}

Words UnclearGpuType(const Lack& lack) {
  std::set<std::string> labels = GpuTypesOf(*lack.pool);
  std::erase_if(labels, [](const std::string& type) { return type.find('/') != type.npos; });
  const std::vector<std::string> types = FindGpuTypes(lack.gpu_type, labels);
  return {fmt::format("pool \"{}\": {}", lack.pool->name(), MayBeTypes(lack.gpu_type, types)),
          HowToAskForGpus(types.front(), lack.requested / kThousandths)};
}

Words NoSuchPool(const Lack& lack) {
  const auto& pools = lack.inventory->pools();
  std::vector<std::string> known;
  for (const v1::Pool& pool : pools) known.push_back(fmt::format("\"{}\"", pool.name()));
  const bool is_namespace = lack.code == LackCode::kNamespace;
  return {fmt::format(
      "{} \"{}\" (it has {})",
      is_namespace ? "kubernetes.namespace: its agent works in no namespace" : "it has no pool",
      lack.asked, known.empty() ? "none" : ListedUpTo(kMostListedPools, std::move(known)))};
}

Words PartsOfGpus(const Lack& lack) {
  v1::GpuRequest gpus;
  gpus.set_type(std::string(lack.asked));
  gpus.set_count_millis(lack.requested);
  return {fmt::format(
              "it is of kind {}, which gives GPUs whole, and the job asks for {} (resources.gpus)",
              Name(lack.kind), FormatGpus(gpus)),
          "ask for whole GPUs, or choose a cluster of kind machines"};
}

Words NoContainers(const Lack& lack) {
  if (lack.kind != v1::CLUSTER_KIND_MACHINES)
    return {"it runs no containers, and the job has an image"};
  return {
      "it is of kind machines and runs no containers, and the job has an image",
      "have the cluster's operator install podman, docker, enroot or apptainer on each machine, "
      "or choose another cluster; with run_as: user no machine runs containers yet"};
}

// The words about what the project of the job may not use.
Words WordsOfProject(const Lack& lack) {
  switch (lack.code) {
    case LackCode::kClusterOfOthers:
      return {fmt::format("the project \"{}\" may not use it", lack.asked),
              "name another project (project), or ask an admin of the broker to allow the cluster "
              "(muster project set)"};
    case LackCode::kAccount:
      return {fmt::format("it is of kind slurm, and the jobs of the project \"{}\" name an account "
                          "there",
                          lack.asked),
              "name one (slurm.account), or choose a cluster of another kind"};
    default:
      return {
          fmt::format("the project \"{}\" may not use the pool that the job would get", lack.asked),
          "name one of its pools (placement.pool), or ask an admin of the broker to allow the "
          "pool (muster project set)"};
  }
}

// The words about what the agent does not do for jobs.
Words WordsOfAgent(const Lack& lack) {
  switch (lack.code) {
    case LackCode::kUploads:
      return {
          "its agent takes no files that jobs bring along, as those of older versions do, and "
          "the job brings some (uploads: a local workdir or file_mounts)",
          "have its operator update the agent, or copy them there yourself and name that "
          "directory by its absolute path, or choose another cluster"};
    case LackCode::kShell:
      return {"its agent takes no variables of your shell, as those of older versions do",
              "have its operator update the agent, or submit with --export=NIL and name what the "
              "script needs in the script, or choose another cluster"};
    case LackCode::kFence:
      return {
          "its nodes cannot stop runs whose lease has ended, so that the job could run twice at "
          "the same time (on_cluster_loss: fail_over_when_fenced)",
          "have its operator update the agent, or choose another cluster, or set on_cluster_loss "
          "to wait or fail_over_now"};
    default:
      return {
          "its agent gives runs no secrets, as those of older versions do not, and the job has "
          "some (secrets)",
          "have its operator update the agent, or choose another cluster"};
  }
}

// Returns the words about the kind of the cluster, and about the jobs that it takes at all.
Words WordsOfKind(const Lack& lack) {
  switch (lack.code) {
    case LackCode::kNotNamed:
      return {"the job names other clusters"};
    case LackCode::kClusterOfOthers:
    case LackCode::kAccount:
    case LackCode::kPoolOfOthers:
      return WordsOfProject(lack);
    case LackCode::kSlurm:
      return {
          fmt::format("it is of kind {}, and the job has options of Slurm (a slurm section, or "
                      "a batch script that needs it)",
                      Name(lack.kind))};
    case LackCode::kKubernetes:
      return {
          fmt::format("it is of kind {}, and the job has a kubernetes section", Name(lack.kind)),
          "take the section out, or choose a cluster of kind kubernetes (cluster)"};
    case LackCode::kRoles:
      return {fmt::format(
          "it is of kind {}, and the job has roles, which only Slurm and Kubernetes run",
          Name(lack.kind))};
    case LackCode::kSharedRoles:
      return {
          "it is of kind kubernetes, and the job has roles that share nodes, which only Slurm "
          "runs",
          "give each role nodes of its own (roles[].first_node), or choose a cluster of kind "
          "slurm"};
    case LackCode::kImage:
      return {"it runs only jobs with an image, and the job has none",
              "name one, or have the cluster's operator set a default"};
    case LackCode::kContainers:
      return NoContainers(lack);
    case LackCode::kImageFile:
      return {fmt::format("it is of kind {}, and the job's image is a file, which only Slurm runs",
                          Name(lack.kind))};
    case LackCode::kUploads:
    case LackCode::kShell:
    case LackCode::kSecrets:
    case LackCode::kFence:
      return WordsOfAgent(lack);
    case LackCode::kPartsOfGpus:
      return PartsOfGpus(lack);
    case LackCode::kMachineFile:
      return {
          fmt::format("it does not see the files of your machine, and {} names one", lack.asked),
          "copy the data there and write lustre:///path"};
    case LackCode::kRefused:
      return {lack.refusal};
    default:
      return {};
  }
}

// Returns the words about a pool.
Words WordsOfPool(const Lack& lack) {
  const std::string& pool = lack.pool->name();
  const uint64_t available = lack.available / kThousandths;
  const uint64_t requested = lack.requested / kThousandths;
  switch (lack.code) {
    case LackCode::kGpuTypeUnclear:
      return UnclearGpuType(lack);
    case LackCode::kGpuType:
      return NoGpuType(lack);
    case LackCode::kGpus:
      return {fmt::format("pool \"{}\" has at most {} {} on a node, {} are needed", pool, available,
                          GpusText(lack), requested),
              fmt::format("ask for at most {} on each node (resources.gpus)", available)};
    case LackCode::kCores:
      return {fmt::format("pool \"{}\" has at most {} cores on a node, {} are needed", pool,
                          available, requested),
              fmt::format("ask for at most {} (resources.cpus)", available)};
    case LackCode::kMemory:
      return {fmt::format("pool \"{}\" has at most {} of memory on a node, {} are needed", pool,
                          FormatBytes(lack.available), FormatBytes(lack.requested)),
              fmt::format("ask for at most {} (resources.memory)", FormatBytes(lack.available))};
    case LackCode::kAllAtOnce:
      return {fmt::format("pool \"{}\" has no node with all that is needed at once", pool),
              "ask for less of one of them (resources.cpus, resources.memory, resources.gpus)"};
    case LackCode::kNodes:
      return {fmt::format("pool \"{}\" has {} with what each needs (resources), {} are needed",
                          pool, Counted(lack.good_nodes, "node"), lack.requested),
              fmt::format("ask for at most {} (nodes)", lack.available)};
    case LackCode::kNodesOfARun:
      return {fmt::format("pool \"{}\" gives a run at most {} nodes, {} are needed", pool,
                          lack.available, lack.requested),
              fmt::format("ask for at most {} (nodes)", lack.available)};
    case LackCode::kTimeLimit: {
      const std::string limit = contract::FormatDuration(absl::Seconds(lack.available));
      return {fmt::format("pool \"{}\" has a time limit of {}, {} are needed", pool, limit,
                          contract::FormatDuration(absl::Seconds(lack.requested))),
              fmt::format("ask for at most {} (time)", limit)};
    }
    case LackCode::kOpenPool:
      return {MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
                         {.scheduler_reason = lack.pool->state(), .pool = pool})
                  .message()};
    default:
      return {};
  }
}

Words WordsOf(const Lack& lack) {
  if (lack.code == LackCode::kAnyPool) return {"it has no pool"};
  if (lack.code == LackCode::kPool || lack.code == LackCode::kNamespace) return NoSuchPool(lack);
  return lack.pool != nullptr ? WordsOfPool(lack) : WordsOfKind(lack);
}

// "Ask for at most 8 (resources.cpus)."
std::string AsRemedy(std::string advice) {
  if (advice.empty()) return advice;
  advice.front() = absl::ascii_toupper(static_cast<unsigned char>(advice.front()));
  return advice + ".";
}

// Returns the resource as v1::Shortage names it; empty if it is not one thing.
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
    case LackCode::kFence:
      return "on_cluster_loss";
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
  const Words words = WordsOf(lack);
  return words.advice.empty() ? words.statement
                              : fmt::format("{}; {}", words.statement, words.advice);
}

std::optional<v1::Shortage> ShortageOf(const Lack& lack) {
  const std::string resource = ResourceOf(lack);
  if (resource.empty()) return std::nullopt;
  v1::Shortage shortage;
  shortage.set_resource(resource);
  // A part of a GPU is no number too many.
  if (lack.code != LackCode::kPartsOfGpus) shortage.set_requested(lack.requested);
  shortage.set_available(lack.available);
  shortage.set_message(WordsOf(lack).statement);
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
  Words words = WordsOf(lack);
  v1::StateReason reason;
  reason.set_code(lack.code == LackCode::kFence ? v1::STATE_REASON_CODE_CANNOT_FENCE
                                                : v1::STATE_REASON_CODE_DOES_NOT_FIT);
  reason.set_cluster(cluster);
  reason.set_message(std::move(words.statement));
  reason.set_remedy(AsRemedy(std::move(words.advice)));
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
