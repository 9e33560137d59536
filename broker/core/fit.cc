#include "broker/core/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/gpu_names.h"
#include "contract/gpu_types.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::core {
namespace {

constexpr uint64_t kMillis = 1000;

// What one node must have.
struct Need {
  uint64_t cpus = 0;
  uint64_t memory_bytes = 0;
  std::string gpu_type;  // empty: any
  // The type is the name of a resource, which is that of GPUs with any label for a type.
  bool is_of_any_label = false;
  uint64_t gpus = 0;
  std::vector<std::string> gpu_types;  // that its type may mean, if these are several
};

// The types of GPUs that there are.
std::set<std::string> GpuTypesOf(const v1::Pool& pool) {
  std::set<std::string> types;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    for (const auto& [type, count] : group.gpus()) {
      if (count > 0 && group.count() > 0) types.insert(type);
    }
  }
  return types;
}

// A type may be the name of a resource, "nvidia.com/mig-1g.5gb"; what is behind its '/' will do.
bool IsOfType(std::string_view type, std::string_view wanted) {
  return contract::IsSameGpuType(type, wanted) ||
         contract::IsSameGpuType(type.substr(type.find('/') + 1), wanted);
}

// On Kubernetes, whose labels are long, a part of one that no other has will do.
void SpellGpuType(const v1::Pool& pool, Need* need) {
  std::set<std::string> labels = GpuTypesOf(pool);
  std::erase_if(labels, [](const std::string& type) { return type.find('/') != type.npos; });
  need->gpu_types = contract::FindGpuTypes(need->gpu_type, labels);
  if (need->gpu_types.size() == 1) need->gpu_type = need->gpu_types.front();
}

Need NeedOf(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  Need need;
  need.cpus = std::max<uint64_t>(1, (job.cpu_millis + kMillis - 1) / kMillis);
  need.memory_bytes = job.memory_bytes;
  if (job.gpu_millis > 0) {
    need.gpu_type = job.gpu_type;
    need.is_of_any_label = kind == v1::CLUSTER_KIND_KUBERNETES && NamesAllGpus(job.gpu_type);
    need.gpus = (job.gpu_millis + kMillis - 1) / kMillis;
  }
  if (kind == v1::CLUSTER_KIND_KUBERNETES && !NamesGpuResource(need.gpu_type))
    SpellGpuType(pool, &need);
  return need;
}

// The most GPUs that one node of the group can give to the job.
uint64_t GpusFor(const Need& need, const v1::NodeGroup& group) {
  uint64_t most = 0;
  for (const auto& [type, count] : group.gpus()) {
    const bool is_label = type.find('/') == type.npos;
    if (need.gpu_type.empty() || IsOfType(type, need.gpu_type) ||
        (need.is_of_any_label && is_label)) {
      most = std::max<uint64_t>(most, count);
    }
  }
  return most;
}

bool HasMemory(const Need& need, const v1::NodeGroup& group) {
  return group.memory_bytes() == 0 || group.memory_bytes() >= need.memory_bytes;
}

// "(it has A, B)": the types of GPUs there are; empty: there are none.
std::string GpuTypesText(const v1::Pool& pool) {
  constexpr size_t kMaxNamed = 8;  // keeps the message readable
  std::set<std::string> types = GpuTypesOf(pool);
  if (types.empty()) return "";
  const bool is_cut = types.size() > kMaxNamed;
  if (is_cut) types.erase(std::next(types.begin(), kMaxNamed), types.end());
  return fmt::format(" (it has {}{})", fmt::join(types, ", "), is_cut ? ", ..." : "");
}

Fit TooLittle(std::string lacks, Fit::Shortage shortage) {
  return {Fit::Verdict::kTooLittle, std::move(lacks), std::move(shortage)};
}

// What the largest node of the pool is short of; a fit if each thing alone is there.
Fit LacksOnANode(const Need& need, const v1::Pool& pool) {
  uint64_t cpus = 0, gpus = 0, memory = 0;
  bool has_memory = need.memory_bytes == 0;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    if (group.count() == 0) continue;
    cpus = std::max<uint64_t>(cpus, group.cpus());
    gpus = std::max(gpus, GpusFor(need, group));
    memory = std::max(memory, group.memory_bytes());
    has_memory = has_memory || HasMemory(need, group);
  }
  const std::string kind =
      need.gpu_type.empty() ? std::string("GPUs") : fmt::format("GPUs of type {}", need.gpu_type);
  const Fit::Shortage of_gpus{need.gpu_type.empty() ? "gpus" : "gpus:" + need.gpu_type,
                              need.gpus * kMillis, gpus * kMillis};
  if (need.gpus > 0 && need.gpu_types.size() > 1) {
    return TooLittle(fmt::format("pool \"{}\": {}", pool.name(),
                                 contract::WhichGpuType(need.gpu_type, need.gpu_types, need.gpus)),
                     of_gpus);
  }
  if (need.gpus > 0 && gpus == 0) {
    const std::string types = GpuTypesText(pool);
    return TooLittle(fmt::format("pool \"{}\" has no {}{}; {}", pool.name(), kind, types,
                                 types.empty() ? "choose another pool or cluster (resources.gpus)"
                                               : contract::HowToAskForGpus(
                                                     *GpuTypesOf(pool).begin(), need.gpus)),
                     of_gpus);
  }
  if (gpus < need.gpus) {
    return TooLittle(
        fmt::format("pool \"{}\" has at most {} {} on a node, {} are needed; ask for at most {} on "
                    "each node (resources.gpus)",
                    pool.name(), gpus, kind, need.gpus, gpus),
        of_gpus);
  }
  if (cpus < need.cpus) {
    return TooLittle(
        fmt::format("pool \"{}\" has at most {} cores on a node, {} are needed; ask for at most {} "
                    "(resources.cpus)",
                    pool.name(), cpus, need.cpus, cpus),
        {"cpus", need.cpus * kMillis, cpus * kMillis});
  }
  if (!has_memory) {
    return TooLittle(
        fmt::format(
            "pool \"{}\" has at most {} of memory on a node, {} are needed; ask for at most "
            "{} (resources.memory)",
            pool.name(), contract::FormatBytes(memory), contract::FormatBytes(need.memory_bytes),
            contract::FormatBytes(memory)),
        {"memory", need.memory_bytes, memory});
  }
  return {};
}

Fit CheckNodes(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  const Need need = NeedOf(job, pool, kind);
  const uint64_t nodes = job.nodes;
  uint64_t good = 0;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    if (group.cpus() >= need.cpus && HasMemory(need, group) && GpusFor(need, group) >= need.gpus) {
      good += group.count();
    }
  }
  if (good == 0) {
    if (Fit fit = LacksOnANode(need, pool); !fit.now()) return fit;
    return TooLittle(
        fmt::format("pool \"{}\" has no node with all that is needed at once; ask for less of one "
                    "of them (resources.cpus, resources.memory, resources.gpus)",
                    pool.name()),
        {"nodes", nodes, 0});
  }
  const uint64_t most = pool.max_nodes() > 0 ? std::min<uint64_t>(good, pool.max_nodes()) : good;
  if (good < nodes) {
    return TooLittle(
        fmt::format("pool \"{}\" has {} node{} with what each needs (resources), {} are needed; "
                    "ask for at most {} (nodes)",
                    pool.name(), good, good == 1 ? "" : "s", nodes, most),
        {"nodes", nodes, most});
  }
  if (pool.max_nodes() > 0 && pool.max_nodes() < nodes) {
    return TooLittle(
        fmt::format("pool \"{}\" gives a run at most {} nodes, {} are needed; ask for at most {} "
                    "(nodes)",
                    pool.name(), pool.max_nodes(), nodes, pool.max_nodes()),
        {"nodes", nodes, pool.max_nodes()});
  }
  return {};
}

// Why the pool takes nobody's jobs now.
Fit TakesNoJobs(const v1::Pool& pool) {
  const v1::StateReason reason =
      contract::MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
                           {.scheduler_reason = pool.state(), .pool = pool.name()});
  return {Fit::Verdict::kNotNow, reason.message(), std::nullopt, &pool};
}

Fit CheckPool(const Requirements& job, const v1::Pool& pool, v1::ClusterKind kind) {
  // An agent on Kubernetes may be kept from seeing nodes. They are not known then, which is not the
  // same as none: the cluster is asked by trying.
  const bool knows_nodes = kind != v1::CLUSTER_KIND_KUBERNETES || pool.node_groups_size() > 0;
  if (Fit fit = knows_nodes ? CheckNodes(job, pool, kind) : Fit{}; !fit.now()) return fit;
  if (pool.has_max_time_limit() && job.time_limit_s.has_value() &&
      *job.time_limit_s > pool.max_time_limit().seconds()) {
    const std::string most =
        contract::FormatDuration(absl::Seconds(pool.max_time_limit().seconds()));
    return {Fit::Verdict::kTooShort,
            fmt::format("pool \"{}\" has a time limit of {}, {} are needed; ask for at most {} "
                        "(time_limit)",
                        pool.name(), most,
                        contract::FormatDuration(absl::Seconds(*job.time_limit_s)), most),
            Fit::Shortage{"time_limit", static_cast<uint64_t>(*job.time_limit_s),
                          static_cast<uint64_t>(pool.max_time_limit().seconds())}};
  }
  return pool.available() ? Fit{} : TakesNoJobs(pool);
}

const v1::Pool* DefaultPool(const v1::Inventory& inventory) {
  for (const v1::Pool& pool : inventory.pools()) {
    if (pool.is_default()) return &pool;
  }
  return inventory.pools_size() > 0 ? &inventory.pools(0) : nullptr;
}

const v1::Pool* FindPool(const v1::Inventory& inventory, std::string_view name) {
  for (const v1::Pool& pool : inventory.pools()) {
    if (pool.name() == name) return &pool;
  }
  return nullptr;
}

std::string NoSuchPool(const Requirements& job, std::string_view wanted,
                       const v1::Inventory& inventory) {
  constexpr int kMaxNamed = 8;  // keeps the message readable
  std::string known;
  for (int i = 0; i < std::min(kMaxNamed, inventory.pools_size()); ++i) {
    known += fmt::format("{}\"{}\"", i > 0 ? ", " : "", inventory.pools(i).name());
  }
  if (inventory.pools_size() > kMaxNamed) known += ", ...";
  const bool is_namespace = job.pool_is_namespace;
  return fmt::format(
      "{} \"{}\" (it has {})",
      is_namespace ? "kubernetes.namespace: its agent works in no namespace" : "it has no pool",
      wanted, known.empty() ? "none" : known);
}

// Why a job with roles cannot run there; empty: it can.
std::string LacksRoles(const Requirements& job, v1::ClusterKind kind) {
  if (job.roles == RolesNeed::kNone || kind == v1::CLUSTER_KIND_SLURM) return "";
  if (kind != v1::CLUSTER_KIND_KUBERNETES) {
    return fmt::format(
        "it is of kind {}, and the job has roles, which only Slurm and Kubernetes run",
        contract::Name(kind));
  }
  if (job.roles != RolesNeed::kSharedNodes) return "";
  return "it is of kind kubernetes, and the job has roles that share nodes, which only Slurm runs; "
         "give each role nodes of its own (roles[].first_node), or choose a cluster of kind slurm";
}

// Likewise for its image, or for the want of one.
std::string LacksImages(const Requirements& job, const PutCluster& cluster) {
  const v1::ImageSupport images = cluster.inventory.images();
  if (job.image == ImageNeed::kNone) {
    if (images != v1::IMAGE_SUPPORT_REQUIRED) return "";
    return "it runs only jobs with an image, and the job has none; name one, or have the cluster's "
           "operator set a default";
  }
  if (cluster.kind == v1::CLUSTER_KIND_MACHINES && images != v1::IMAGE_SUPPORT_OPTIONAL) {
    return "it is of kind machines and runs no containers, and the job has an image; have the "
           "cluster's operator install podman, docker, enroot or apptainer on each machine, or "
           "choose another cluster";
  }
  if (images == v1::IMAGE_SUPPORT_NONE) return "it runs no containers, and the job has an image";
  if (job.image == ImageNeed::kFile && cluster.kind != v1::CLUSTER_KIND_SLURM) {
    return fmt::format("it is of kind {}, and the job's image is a file, which only Slurm runs",
                       contract::Name(cluster.kind));
  }
  return "";
}

// Likewise for the files that it brings along.
std::string LacksUploads(const Requirements& job, const PutCluster& cluster) {
  if (!job.brings_files || cluster.inventory.takes_uploads()) return "";
  return "its agent takes no files that jobs bring along, as those of older versions do, and the "
         "job brings some (uploads: a local workdir or file_mounts); have its operator update the "
         "agent, or copy them there yourself and name that directory by its absolute path, or "
         "choose another cluster";
}

// Likewise for a share of a GPU.
std::string LacksShares(const Requirements& job, v1::ClusterKind kind) {
  if (kind == v1::CLUSTER_KIND_MACHINES) return "";
  if (job.gpu_millis % kMillis == 0) return "";
  v1::GpuRequest gpus;
  gpus.set_type(job.gpu_type);
  gpus.set_count_millis(job.gpu_millis);
  return fmt::format(
      "it is of kind {}, which gives GPUs whole, and the job asks for {} "
      "(resources.gpus); ask for whole GPUs, or choose a cluster of kind "
      "machines",
      contract::Name(kind), contract::FormatGpus(gpus));
}

// The fit of what the job needs; one that has refused the job all the same never fits.
Fit UnlessRefused(Fit fit, const Requirements& job, const PutCluster& cluster) {
  if (!fit.ever() || !job.refused_by.contains(cluster.name)) return fit;
  return {Fit::Verdict::kRefused,
          "its agent refused the job when it was submitted, in words that the job's history has; "
          "submit it again once that has changed"};
}

Fit WrongKindFor(std::string resource, std::string lacks) {
  return {Fit::Verdict::kWrongKind, std::move(lacks), Fit::Shortage{std::move(resource)}};
}

// Why no cluster of that kind can run the job; a fit: one could.
Fit CheckKind(const Requirements& job, const PutCluster& cluster) {
  if (job.needs_slurm && cluster.kind != v1::CLUSTER_KIND_SLURM) {
    return WrongKindFor(
        "kind", fmt::format("it is of kind {}, and the job has options of Slurm (a slurm section, "
                            "or a batch script that needs it)",
                            contract::Name(cluster.kind)));
  }
  if (job.needs_kubernetes && cluster.kind != v1::CLUSTER_KIND_KUBERNETES) {
    return WrongKindFor(
        "kind", fmt::format("it is of kind {}, and the job has a kubernetes section; take the "
                            "section out, or choose a cluster of kind kubernetes "
                            "(placement.clusters)",
                            contract::Name(cluster.kind)));
  }
  if (std::string lacks = LacksRoles(job, cluster.kind); !lacks.empty())
    return WrongKindFor("roles", std::move(lacks));
  if (std::string lacks = LacksImages(job, cluster); !lacks.empty())
    return WrongKindFor("image", std::move(lacks));
  if (std::string lacks = LacksUploads(job, cluster); !lacks.empty())
    return WrongKindFor("uploads", std::move(lacks));
  if (std::string lacks = LacksShares(job, cluster.kind); !lacks.empty())
    return WrongKindFor("gpus", std::move(lacks));
  if (!job.machine_file_field.empty() && cluster.kind != v1::CLUSTER_KIND_MACHINES) {
    return WrongKindFor(
        "inputs", fmt::format("it does not see the files of your machine, and {} names one; copy "
                              "the data there and write lustre:///path",
                              job.machine_file_field));
  }
  return {};
}

}  // namespace

Fit CheckFit(const Requirements& job, const PutCluster& cluster) {
  const auto& named = job.clusters;
  if (!named.empty() && std::find(named.begin(), named.end(), cluster.name) == named.end()) {
    return {Fit::Verdict::kNotNamed, "the job names other clusters"};
  }
  if (Fit fit = CheckKind(job, cluster); !fit.now()) return fit;
  if (job.pools.empty()) {
    const v1::Pool* pool = DefaultPool(cluster.inventory);
    if (pool == nullptr)
      return {Fit::Verdict::kNoPool, "it has no pool", Fit::Shortage{.resource = "pool"}};
    return UnlessRefused(CheckPool(job, *pool, cluster.kind), job, cluster);
  }
  Fit best{Fit::Verdict::kNotNamed, ""};
  for (const std::string& name : job.pools) {
    const v1::Pool* pool = FindPool(cluster.inventory, name);
    Fit fit = pool != nullptr ? CheckPool(job, *pool, cluster.kind)
                              : Fit{Fit::Verdict::kNoPool, NoSuchPool(job, name, cluster.inventory),
                                    Fit::Shortage{.resource = "pool"}};
    if (fit.verdict > best.verdict) best = std::move(fit);
  }
  return UnlessRefused(std::move(best), job, cluster);
}

}  // namespace muster::core
