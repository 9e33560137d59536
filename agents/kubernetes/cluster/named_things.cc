#include "agents/kubernetes/cluster/named_things.h"

#include <algorithm>
#include <utility>

#include "agents/core/steady_time.h"
#include "contract/admission.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

// Claims that runs wait for change seldom, and one request serves all of them.
constexpr absl::Duration kClaimsAreFresh = absl::Seconds(10);
constexpr char kPriorityClasses[] = "/apis/scheduling.k8s.io/v1/priorityclasses";
constexpr char kRuntimeClasses[] = "/apis/node.k8s.io/v1/runtimeclasses";

std::string ClaimsPath(const std::string& name_space) {
  return fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims", Escape(name_space));
}

std::string AccountsPath(const std::string& name_space) {
  return fmt::format("/api/v1/namespaces/{}/serviceaccounts", Escape(name_space));
}

void SetNames(const std::optional<std::set<std::string>>& names, v1::NameList* list) {
  list->mutable_names()->Assign(names->begin(), names->end());
}

}  // namespace

std::optional<std::string> NamedThings::Lacks(const std::string& name, const std::string& path,
                                              const std::string& where) {
  if (name.empty()) return std::nullopt;
  {
    const MutexLock lock(mutex_);
    const auto known = known_.find(path);
    const bool is_fresh =
        known != known_.end() && agents::SteadyNow() - known->second.seen < memory_;
    if (is_fresh && known->second.names.contains(name)) return std::nullopt;
  }
  const std::optional<std::set<std::string>> names = List(path);
  if (!names.has_value() || names->contains(name)) return std::nullopt;
  return contract::NoneOfThatName(name, where, {names->begin(), names->end()});
}

std::optional<std::set<std::string>> NamedThings::List(const std::string& path) {
  const absl::StatusOr<Json> list =
      api_.Get(fmt::format("{}?limit={}", path, contract::kMaxListedNames), path);
  if (!list.ok() || !TextAt(*list, "metadata/continue").empty()) return std::nullopt;
  Known now{.seen = agents::SteadyNow(), .names = {}};
  for (const Json& item : At(*list, "items")) now.names.insert(TextAt(item, "metadata/name"));
  const MutexLock lock(mutex_);
  return (known_[path] = std::move(now)).names;
}

void NamedThings::AddFacts(v1::KubernetesFacts* facts) {
  if (const auto names = List(kPriorityClasses)) SetNames(names, facts->mutable_priority_classes());
  if (const auto names = List(kRuntimeClasses)) SetNames(names, facts->mutable_runtime_classes());
  for (v1::NamespaceFacts& space : *facts->mutable_namespaces()) {
    if (const auto names = List(AccountsPath(space.name())))
      SetNames(names, space.mutable_service_accounts());
    const std::optional<std::map<std::string, ClaimState>> claims = ClaimsOf(space.name());
    // The next question about a job looks again: a claim may have been made since.
    ForgetClaims(space.name());
    if (!claims.has_value()) continue;
    space.mutable_claims();
    for (const auto& [name, claim] : *claims) {
      space.mutable_claims()->add_names(name);
      if (IsStuck(claim)) space.add_stuck_claims(name);
    }
  }
}

std::string NamedThings::FindMissing(const v1::JobSpec& spec, const std::string& name_space) {
  const v1::KubernetesOptions& options = spec.kubernetes();
  const struct {
    const char* field;
    const std::string& name;
    std::string path;
    std::string where;
  } needs[] = {
      {"priority_class", options.priority_class(), kPriorityClasses, ""},
      {"runtime_class", options.runtime_class(), kRuntimeClasses, ""},
      {"service_account", options.service_account(), AccountsPath(name_space),
       " in namespace " + name_space},
  };
  std::string missing;
  for (const auto& need : needs) {
    if (const auto lacks = Lacks(need.name, need.path, need.where))
      missing += fmt::format("{}kubernetes.{} {}", missing.empty() ? "" : "; ", need.field, *lacks);
  }
  return missing;
}

std::optional<std::map<std::string, NamedThings::ClaimState>> NamedThings::ClaimsOf(
    const std::string& name_space) {
  {
    const MutexLock lock(mutex_);
    const KnownClaims& known = claims_[name_space];
    if (agents::SteadyNow() - known.seen < kClaimsAreFresh) return known.claims;
  }
  KnownClaims now{.seen = agents::SteadyNow(), .claims = {}};
  const std::string path = ClaimsPath(name_space);
  const absl::StatusOr<Json> list =
      api_.Get(fmt::format("{}?limit={}", path, contract::kMaxListedNames), path);
  if (list.ok() && TextAt(*list, "metadata/continue").empty()) {
    now.claims.emplace();
    for (const Json& item : At(*list, "items")) {
      (*now.claims)[TextAt(item, "metadata/name")] = {TextAt(item, "status/phase"),
                                                      TextAt(item, "spec/storageClassName")};
    }
  }
  const MutexLock lock(mutex_);
  claims_[name_space] = now;
  return now.claims;
}

void NamedThings::ForgetClaims(const std::string& name_space) {
  const MutexLock lock(mutex_);
  claims_.erase(name_space);
}

bool NamedThings::IsStuck(const ClaimState& claim) {
  return claim.phase != "Bound" && (claim.phase == "Lost" || claim.storage_class.empty());
}

std::vector<UnboundClaim> NamedThings::FindUnbound(const v1::JobSpec& spec,
                                                   const std::string& name_space) {
  std::vector<UnboundClaim> unbound;
  const std::map<std::string, ClaimState> claims =
      ClaimsOf(name_space).value_or(std::map<std::string, ClaimState>());
  for (int i = 0; i < spec.kubernetes().volumes_size(); ++i) {
    const std::string& name = spec.kubernetes().volumes(i).claim();
    const auto found = claims.find(name);
    if (name.empty() || found == claims.end() || found->second.phase == "Bound") continue;
    const ClaimState& claim = found->second;
    UnboundClaim& one = unbound.emplace_back();
    one.field = fmt::format("kubernetes.volumes[{}].claim", i);
    one.is_stuck = IsStuck(claim);
    one.words = claim.phase == "Lost" ? fmt::format("\"{}\": its volume is lost", name)
                : claim.storage_class.empty()
                    ? fmt::format("\"{}\" has no volume, and no storage class that makes one", name)
                    : fmt::format("\"{}\" has no volume yet, which its storage class {} is to make",
                                  name, claim.storage_class);
  }
  return unbound;
}

std::vector<NamedThings::Missing> NamedThings::FindAwaited(const v1::JobSpec& spec,
                                                           const std::string& name_space) {
  std::vector<Missing> missing;
  if (std::none_of(spec.kubernetes().volumes().begin(), spec.kubernetes().volumes().end(),
                   [](const v1::KubernetesVolume& volume) { return !volume.claim().empty(); }))
    return missing;
  const std::string claims = ClaimsPath(name_space);
  for (int i = 0; i < spec.kubernetes().volumes_size(); ++i) {
    auto lacks = Lacks(spec.kubernetes().volumes(i).claim(), claims, " in namespace " + name_space);
    if (lacks.has_value()) {
      missing.push_back({fmt::format("kubernetes.volumes[{}].claim", i), *std::move(lacks),
                         /*exists=*/false});
    }
  }
  for (UnboundClaim& claim : FindUnbound(spec, name_space)) {
    if (claim.is_stuck)
      missing.push_back({std::move(claim.field), std::move(claim.words), /*exists=*/true});
  }
  return missing;
}

std::string WithField(std::string words, const v1::JobSpec& spec) {
  for (int i = 0; i < spec.kubernetes().volumes_size(); ++i) {
    const v1::KubernetesVolume& volume = spec.kubernetes().volumes(i);
    const struct {
      const char* kind;
      const char* field;
      const std::string& name;
    } sources[] = {{"persistentvolumeclaim", "claim", volume.claim()},
                   {"configmap", "config_map", volume.config_map()},
                   {"secret", "secret", volume.secret()}};
    for (const auto& source : sources) {
      if (source.name.empty()) continue;
      const std::string missing = fmt::format("{} \"{}\" not found", source.kind, source.name);
      const size_t at = words.find(missing);
      if (at == words.npos) continue;
      words.insert(at + missing.size(),
                   fmt::format(" (kubernetes.volumes[{}].{})", i, source.field));
      return words;
    }
  }
  return words;
}

}  // namespace muster::kubernetes
