#include "contract/admission.h"

#include <algorithm>
#include <utility>

#include "contract/awaited.h"
#include "contract/characters.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/gpu_share.h"
#include "contract/path_within.h"
#include "contract/pod_ask.h"
#include "contract/sentences.h"
#include "contract/spank_options.h"
#include "contract/storage_uri.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// Refusals and names that one sentence has.
constexpr size_t kMaxToldRefusals = 3;
constexpr size_t kMaxToldNames = 8;

v1::Shortage Refused(std::string field, const std::string& words) {
  v1::Shortage refusal;
  refusal.set_message(fmt::format("{} {}", field, words));
  refusal.set_resource(std::move(field));
  return refusal;
}

struct SchedulerGroup {
  v1::KubernetesGang gang;
  const char* name;
  const char* what;
  const char* group;
};
constexpr SchedulerGroup kGangs[] = {
    {v1::KUBERNETES_GANG_VOLCANO, "volcano", "Volcano", "scheduling.volcano.sh"},
    {v1::KUBERNETES_GANG_POD_GROUP, "pod_group", "PodGroups of the coscheduling plug-in",
     "scheduling.x-k8s.io"},
};
constexpr char kKueue[] = "kueue.x-k8s.io";

// One judgement.
class Judge {
 public:
  Judge(const AdmissionNeeds& needs, const v1::AdmissionFacts& facts, std::string_view cluster)
      : needs_(needs),
        results_root_(facts.results_root()),
        facts_(facts.kubernetes()),
        cluster_(cluster),
        space_(NamespaceOf(needs, facts_)),
        ask_(PodAskOf(needs, facts_)) {
    storage_.cluster = cluster;
    storage_.roots = {facts_.storage_roots().begin(), facts_.storage_roots().end()};
    const std::string archive = ArchiveTooLarge(needs.archive_bytes, facts.max_archive_bytes());
    if (!archive.empty()) Refuse("uploads", archive);
  }

  Admission Take() && {
    if (auto forbidden = FindForbidden(needs_.kubernetes, facts_, cluster_))
      result_.refusals.push_back(*std::move(forbidden));
    JudgeStatus();
    JudgeNames();
    JudgeQueue();
    JudgePlaces();
    JudgeVolumes();
    JudgeMemory();
    if (facts_.has_nodes()) {
      if (auto shortage = FindNodeShortage(needs_, facts_))
        result_.refusals.push_back(*std::move(shortage));
    }
    if (auto shortage = FindLimitShortage(needs_, facts_))
      result_.refusals.push_back(*std::move(shortage));
    WarnOfDirectory();
    WarnOfDefaults();
    return std::move(result_);
  }

 private:
  void Refuse(std::string field, const std::string& words) {
    result_.refusals.push_back(Refused(std::move(field), words));
  }
  void Warn(v1::SubmitWarningCode code, v1::ClusterCheck check) {
    check.set_result(v1::CHECK_RESULT_WARN);
    result_.warnings.push_back(MakeWarning(code, check));
  }

  bool IsAgentRoot(const std::string& name) const {
    const auto& roots = facts_.agent_roots();
    return std::find(roots.begin(), roots.end(), name) != roots.end();
  }

  // Tells whether the agent may see the results. Only the first parts of the path may be known.
  bool MayReadResults(const std::string& path) const {
    const std::pair<const std::string, std::string>* deepest = nullptr;
    bool may_be_deeper = false;
    for (const auto& root : storage_.roots) {
      if (needs_.are_places_cut && IsWithin(root.second, path))
        may_be_deeper = may_be_deeper || IsAgentRoot(root.first);
      if (!IsWithin(path, root.second)) continue;
      if (deepest == nullptr || root.second.size() > deepest->second.size()) deepest = &root;
    }
    return may_be_deeper || (deepest != nullptr && IsAgentRoot(deepest->first));
  }

  void JudgeStatus() {
    if (!needs_.status_json) return;
    std::string path = results_root_;
    if (!needs_.results.empty()) {
      const auto named = ResolveStorageUri("results_directory", needs_.results, storage_);
      if (!named.ok()) return;  // JudgePlaces says so
      path = *named;
    }
    if (path.empty()) {
      Refuse("status_json", NoPlaceForStatus(cluster_));
    } else if (!MayReadResults(path)) {
      Refuse("status_json", StatusNotReadable(path, cluster_));
    }
  }

  std::string InNamespace() const { return " in namespace " + space_->name(); }

  void JudgeName(const char* field, const std::string& name, bool is_known,
                 const v1::NameList& list, const std::string& where) {
    const auto& names = list.names();
    if (name.empty() || !is_known || std::find(names.begin(), names.end(), name) != names.end())
      return;
    Refuse(field, NoneOfThatName(name, where, {names.begin(), names.end()}));
  }

  void JudgeNames() {
    const v1::KubernetesOptions& options = needs_.kubernetes;
    JudgeName("kubernetes.priority_class", options.priority_class(), facts_.has_priority_classes(),
              facts_.priority_classes(), "");
    JudgeName("kubernetes.runtime_class", options.runtime_class(), facts_.has_runtime_classes(),
              facts_.runtime_classes(), "");
    if (space_ == nullptr) return;
    JudgeName("kubernetes.service_account", options.service_account(),
              space_->has_service_accounts(), space_->service_accounts(), InNamespace());
  }

  void JudgeQueue() {
    const v1::KubernetesOptions& options = needs_.kubernetes;
    if (facts_.has_scheduler_groups()) {
      const auto& groups = facts_.scheduler_groups().names();
      if (auto missing = FindMissingScheduler(options, {groups.begin(), groups.end()})) {
        result_.refusals.push_back(*std::move(missing));
        return;
      }
    }
    if (options.queue().empty() || space_ == nullptr || !space_->has_queues()) return;
    std::vector<std::string> names(space_->queues().names().begin(),
                                   space_->queues().names().end());
    if (std::find(names.begin(), names.end(), options.queue()) != names.end()) return;
    std::sort(names.begin(), names.end());
    result_.refusals.emplace_back().set_resource("kubernetes.queue");
    result_.refusals.back().set_message(NoSuchQueue(
        options.queue(), space_->name(),
        names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "))));
  }

  bool IsInRoot(std::string_view path) const {
    return std::any_of(storage_.roots.begin(), storage_.roots.end(),
                       [&](const auto& root) { return IsWithin(path, root.second); });
  }

  void JudgePlaces() {
    for (const PlaceText& place : needs_.places) {
      const absl::StatusOr<std::string> path = ResolveStorageUri(place.field, place.text, storage_);
      if (needs_.are_places_cut && MayLeadIntoRoot(place.text)) continue;
      if (!path.ok()) {
        const auto bad = GetBadRequest(path.status());
        const bool has_words = bad.has_value() && bad->field_violations_size() > 0;
        Refuse(place.field,
               has_words ? bad->field_violations(0).description() : "is no place of this cluster");
      } else if (!IsInRoot(*path)) {
        Refuse(place.field, InNoStorageRoot(place.text, cluster_, !storage_.roots.empty()));
      } else {
        shown_.push_back(*path);
      }
    }
    for (size_t i = 0; i < needs_.mounts.size(); ++i) {
      const v1::Mount& mount = needs_.mounts[i];
      const bool may_be_deeper = needs_.are_places_cut && MayLeadIntoRoot(mount.source());
      if (!IsInRoot(mount.source()) && !may_be_deeper && !facts_.allows_host_path()) {
        Refuse(fmt::format("mounts[{}].source", i),
               InNoStorageRoot(mount.source(), cluster_, !storage_.roots.empty()));
      }
      JudgeMountPlace(fmt::format("mounts[{}].target", i), mount.target());
    }
  }

  // Returns whether a root may begin below a path whose end is cut off.
  bool MayLeadIntoRoot(const std::string& text) const {
    const absl::StatusOr<StorageUri> uri = ParseStorageUri("path", text);
    if (!uri.ok()) return false;
    return std::any_of(storage_.roots.begin(), storage_.roots.end(),
                       [&](const auto& root) { return IsWithin(root.second, uri->path); });
  }

  void JudgeMountPlace(const std::string& field, const std::string& path) {
    if (path.empty()) return;  // it is a good one, see RefusableOf
    if (std::string bad = BadMountPlace(path); !bad.empty()) {
      Refuse(field, bad);
    } else {
      shown_.push_back(path);
    }
  }

  void JudgeVolumes() {
    const auto& secrets = facts_.operator_secrets();
    for (int i = 0; i < needs_.kubernetes.volumes_size(); ++i) {
      const v1::KubernetesVolume& volume = needs_.kubernetes.volumes(i);
      const std::string field = fmt::format("kubernetes.volumes[{}]", i);
      JudgeMountPlace(field + ".mount_path", volume.mount_path());
      if (std::find(secrets.begin(), secrets.end(), volume.secret()) != secrets.end()) {
        Refuse(field + ".secret", OperatorsSecret(volume.secret(), cluster_));
      }
      if (volume.has_host_path() && !facts_.allows_host_path())
        Refuse(field + ".host_path", HostPathForbidden(volume.host_path(), cluster_));
      JudgeClaim(field + ".claim", volume.claim());
    }
  }

  void JudgeClaim(const std::string& field, const std::string& claim) {
    if (claim.empty() || space_ == nullptr || !space_->has_claims()) return;
    const auto& names = space_->claims().names();
    const auto& stuck = space_->stuck_claims();
    v1::ClusterCheck check;
    check.set_subject(field);
    if (std::find(names.begin(), names.end(), claim) == names.end()) {
      check.set_seen(NoneOfThatName(claim, InNamespace(), {names.begin(), names.end()}));
      check.set_remedy(AwaitedClaimRemedy(/*exists=*/false));
    } else if (std::find(stuck.begin(), stuck.end(), claim) != stuck.end()) {
      check.set_seen(
          fmt::format("{} has no volume, and nothing that would make one", Quoted(claim)));
      check.set_remedy(AwaitedClaimRemedy(/*exists=*/true));
    } else {
      return;
    }
    Warn(v1::SUBMIT_WARNING_CODE_NOT_THERE_YET, std::move(check));
  }

  void JudgeMemory() {
    const auto& volumes = needs_.kubernetes.volumes();
    const bool is_own = std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
      return volume.mount_path() == kSharedMemory;
    });
    if (std::string words = SharedMemoryTooLarge(needs_.kubernetes.shm_bytes(), ask_.memory_bytes);
        !is_own && !words.empty()) {
      Refuse("kubernetes.shm_bytes", words);
    }
  }

  void WarnOfDirectory() {
    const std::string& wanted = needs_.working_directory;
    if (wanted.empty() || wanted == "/") return;
    for (const std::string_view own : {kMusterDirectory, kSharedMemory}) {
      if (IsWithin(wanted, own)) return;
    }
    for (const std::string& path : shown_) {
      if (IsWithin(wanted, path)) return;
    }
    Warn(v1::SUBMIT_WARNING_CODE_WORKING_DIRECTORY,
         UnknownDirectory(wanted, needs_.is_directory_implied));
  }

  void WarnOfDefaults() {
    if (auto check = TellDefaults({needs_.cpu_millis, needs_.memory_bytes}, ask_.gpus,
                                  {ask_.cpu_millis, ask_.memory_bytes},
                                  {facts_.default_cpu_millis(), facts_.default_memory_bytes()})) {
      Warn(v1::SUBMIT_WARNING_CODE_DEFAULT_RESOURCES, *std::move(check));
    }
  }

  const AdmissionNeeds& needs_;
  const std::string& results_root_;
  const v1::KubernetesFacts& facts_;
  const std::string_view cluster_;
  const v1::NamespaceFacts* const space_;  // where the run would be; null: not known
  const PodAsk ask_;
  ClusterStorage storage_;
  std::vector<std::string> shown_;  // where the container has something of the cluster
  Admission result_;
};

std::string ArrayTooLarge(uint32_t last, uint32_t size, std::string_view cluster) {
  return fmt::format(
      "--array: the index {} is too high for cluster {}, whose slurm.conf allows 0 to {} "
      "(MaxArraySize={}); use lower indexes, or name another cluster",
      last, cluster, size - 1, size);
}

// Judges a job on the other kinds of clusters.
Admission JudgeElsewhere(const AdmissionNeeds& needs, const v1::AdmissionFacts& facts,
                         std::string_view cluster) {
  const bool has_no_root = facts.has_results_root() && facts.results_root().empty();
  Admission admission;
  if (needs.status_json && needs.results.empty() && has_no_root)
    admission.refusals.push_back(Refused("status_json", NoPlaceForStatus(cluster)));
  if (const uint32_t size = facts.slurm().max_array_size();
      size > 0 && needs.last_array_index >= size) {
    v1::Shortage& refusal = admission.refusals.emplace_back();
    refusal.set_message(ArrayTooLarge(needs.last_array_index, size, cluster));
    refusal.set_resource("env[\"SLURM_ARRAY_TASK_MAX\"]");
  }
  for (const PlaceText& option : needs.spank_options) {
    if (!facts.has_slurm()) break;
    const std::string why = WhyNoSpankOption(option.text, facts.slurm(), cluster);
    if (why.empty()) continue;
    v1::Shortage& refusal = admission.refusals.emplace_back();
    refusal.set_message(fmt::format("--{} ({}) {}", option.text, option.field, why));
    refusal.set_resource(option.field);
  }
  return admission;
}

}  // namespace

Admission JudgeAdmission(const AdmissionNeeds& needs, const v1::AdmissionFacts& facts,
                         std::string_view cluster) {
  if (!facts.has_kubernetes()) return JudgeElsewhere(needs, facts, cluster);
  return Judge(needs, facts, cluster).Take();
}

std::string RefusalText(const std::vector<v1::Shortage>& refusals) {
  std::vector<std::string> told;
  for (const v1::Shortage& refusal : refusals) told.push_back(refusal.message());
  return ListedUpTo(kMaxToldRefusals, std::move(told), "; ");
}

std::optional<v1::Shortage> FindForbidden(const v1::KubernetesOptions& options,
                                          const v1::KubernetesFacts& facts,
                                          std::string_view cluster) {
  if (options.host_network() && !facts.allows_host_network()) {
    return Refused("kubernetes.host_network",
                   fmt::format("true: the operator of cluster {} does not allow the nodes' network "
                               "(kubernetes.allow_host_network); leave it out",
                               cluster));
  }
  if (options.security_context().privileged() && !facts.allows_privileged()) {
    return Refused("kubernetes.security_context.privileged",
                   fmt::format("true: the operator of cluster {} does not allow it "
                               "(kubernetes.allow_privileged); leave it out",
                               cluster));
  }
  return std::nullopt;
}

std::string NoneOfThatName(std::string_view name, std::string_view where,
                           std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  for (std::string& other : names) other = fmt::format("\"{}\"", other);
  const std::string others = names.empty() ? "none" : ListedUpTo(kMaxToldNames, std::move(names));
  return fmt::format("\"{}\": there is none{}; it has {}", name, where, others);
}

std::optional<v1::Shortage> FindMissingScheduler(const v1::KubernetesOptions& options,
                                                 const std::vector<std::string>& groups) {
  const auto has = [&](std::string_view group) {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  };
  if (!options.queue().empty() && !has(kKueue)) {
    return Refused("kubernetes.queue",
                   fmt::format("is \"{}\", and this cluster has no Kueue (its API server has no "
                               "group {}): leave kubernetes.queue out, or choose a cluster with "
                               "Kueue",
                               options.queue(), kKueue));
  }
  for (const SchedulerGroup& gang : kGangs) {
    if (options.gang() != gang.gang || has(gang.group)) continue;
    return Refused(
        "kubernetes.gang",
        fmt::format("is {}, and this cluster has no {} (its API server has no group {}): leave "
                    "kubernetes.gang out, so that Muster itself starts all pods together, or "
                    "choose a cluster that has it",
                    gang.name, gang.what, gang.group));
  }
  return std::nullopt;
}

std::string NoSuchQueue(std::string_view queue, std::string_view name_space,
                        std::string_view others) {
  return fmt::format(
      "kubernetes.queue is \"{}\", and namespace {} has no such queue of Kueue's (LocalQueue); {}: "
      "choose one that is there, or leave kubernetes.queue out",
      queue, name_space, others);
}

std::string InNoStorageRoot(std::string_view path, std::string_view cluster, bool has_roots) {
  return fmt::format(
      "{} is in no storage root of cluster {}; {}", Quoted(path), cluster,
      has_roots ? "use a path below one of them"
                : "its operator has set none (kubernetes.storage_roots): have one set, or name a "
                  "claim under kubernetes.volumes");
}

std::string OperatorsSecret(std::string_view name, std::string_view cluster) {
  return fmt::format(
      "{} holds the credentials with which cluster {} pulls images "
      "(kubernetes.image_pull_secrets), "
      "which no job may read; name a Secret of your own",
      Quoted(name), cluster);
}

std::string HostPathForbidden(std::string_view path, std::string_view cluster) {
  return fmt::format(
      "{}: the operator of cluster {} allows no directories of nodes (kubernetes.allow_host_path); "
      "use a claim",
      Quoted(path), cluster);
}

std::string BadMountPlace(std::string_view path) {
  const bool is_good = path != "/" && !IsWithin(path, kMusterDirectory) &&
                       !IsWithin(kMusterDirectory, path) &&
                       path.find(':') == std::string_view::npos &&
                       fmt::format("{}/", path).find("/../") == std::string::npos;
  if (is_good) return "";
  return fmt::format(
      "{} is no place for a mount on Kubernetes: it is Muster's own, the root, or holds ':' or "
      "\"..\"; use another path",
      Quoted(path));
}

std::string SharedMemoryTooLarge(uint64_t shm_bytes, uint64_t memory_bytes) {
  if (shm_bytes <= memory_bytes) return "";
  return fmt::format(
      "{} count as memory, of which a node gives {} (resources.memory); use less, or ask for more "
      "memory",
      FormatBytes(shm_bytes), FormatBytes(memory_bytes));
}

std::string NoPlaceForStatus(std::string_view cluster) {
  return fmt::format(
      "is looked for in the results directory, and cluster {} has no results_root; set "
      "results_directory",
      cluster);
}

std::string StatusNotReadable(std::string_view results, std::string_view cluster) {
  return fmt::format(
      "is read by the agent, and that of cluster {} does not see the results in {} "
      "(kubernetes.agent_roots); name a results_directory that it sees, or leave status_json out: "
      "the exit code decides",
      cluster, Quoted(results));
}

std::string ArchiveTooLarge(uint64_t bytes, uint64_t max_bytes) {
  if (max_bytes == 0 || bytes <= max_bytes) return "";
  return fmt::format(
      "they make an archive of {}, and Kubernetes can be given {}; leave some out by a "
      ".musterignore file, put data onto a volume (kubernetes.volumes), or build it into the image",
      FormatBytes(bytes), FormatBytes(max_bytes));
}

v1::ClusterCheck UnknownDirectory(std::string_view directory, bool is_implied) {
  v1::ClusterCheck check;
  check.set_subject("working_directory");
  check.set_result(v1::CHECK_RESULT_WARN);
  const std::string quoted = Quoted(directory);
  if (is_implied) {
    check.set_seen(quoted +
                   ", where you stand: the script starts there if the image has it, and in an "
                   "empty directory of its own else");
    check.set_remedy(
        "Nothing, if it names files by whole paths; else name one in the image (--chdir).");
  } else {
    check.set_seen(quoted + ": if the image does not have it, the run fails");
    check.set_remedy(
        "Leave it out, name one that the image has (/ is in each), or mount it "
        "(kubernetes.volumes).");
  }
  return check;
}

}  // namespace muster::contract
