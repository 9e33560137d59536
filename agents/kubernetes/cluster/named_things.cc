#include "agents/kubernetes/cluster/named_things.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// More of a kind than that in one place are taken for all that there may be.
constexpr int kMostListed = 500;
// Claims that runs wait for change seldom, and one request serves all of them.
constexpr absl::Duration kClaimsAreFresh = absl::Seconds(10);
// Named in words for people.
constexpr size_t kMostNamed = 8;

std::string ClaimsPath(const std::string& name_space) {
  return fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims", Escape(name_space));
}

std::string NamesIn(const std::set<std::string>& names) {
  if (names.empty()) return "it has none";
  std::string text = "it has";
  size_t count = 0;
  for (const std::string& name : names) {
    if (count == kMostNamed) return text + fmt::format(" and {} more", names.size() - count);
    text += fmt::format("{} \"{}\"", count++ > 0 ? "," : "", name);
  }
  return text;
}

}  // namespace

std::optional<std::string> NamedThings::Lacks(const std::string& name, const std::string& path,
                                              const std::string& where) {
  if (name.empty()) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(path);
    const bool is_fresh = known != known_.end() && absl::Now() - known->second.seen < memory_;
    if (is_fresh && known->second.names.contains(name)) return std::nullopt;
  }
  const absl::StatusOr<Json> list = api_.Get(fmt::format("{}?limit={}", path, kMostListed), path);
  if (!list.ok() || !TextAt(*list, "metadata/continue").empty()) return std::nullopt;
  Known now{.seen = absl::Now(), .names = {}};
  for (const Json& item : At(*list, "items")) now.names.insert(TextAt(item, "metadata/name"));
  const bool is_there = now.names.contains(name);
  std::string words = fmt::format("\"{}\": there is none{}; {}", name, where, NamesIn(now.names));
  const std::lock_guard lock(mutex_);
  known_[path] = std::move(now);
  return is_there ? std::nullopt : std::optional(std::move(words));
}

std::string NamedThings::FindMissing(const v1::JobSpec& spec, const std::string& name_space) {
  const v1::KubernetesOptions& options = spec.kubernetes();
  const std::string accounts =
      fmt::format("/api/v1/namespaces/{}/serviceaccounts", Escape(name_space));
  const struct {
    const char* field;
    const std::string& name;
    std::string path;
    std::string where;
  } needs[] = {
      {"priority_class", options.priority_class(), "/apis/scheduling.k8s.io/v1/priorityclasses",
       ""},
      {"runtime_class", options.runtime_class(), "/apis/node.k8s.io/v1/runtimeclasses", ""},
      {"service_account", options.service_account(), accounts, " in namespace " + name_space},
  };
  std::string missing;
  for (const auto& need : needs) {
    if (const auto lacks = Lacks(need.name, need.path, need.where))
      missing += fmt::format("{}kubernetes.{} {}", missing.empty() ? "" : "; ", need.field, *lacks);
  }
  return missing;
}

std::map<std::string, NamedThings::ClaimState> NamedThings::ClaimsOf(
    const std::string& name_space) {
  {
    const std::lock_guard lock(mutex_);
    const KnownClaims& known = claims_[name_space];
    if (absl::Now() - known.seen < kClaimsAreFresh) return known.claims;
  }
  KnownClaims now{.seen = absl::Now(), .claims = {}};
  const std::string path = ClaimsPath(name_space);
  const absl::StatusOr<Json> list = api_.Get(fmt::format("{}?limit={}", path, kMostListed), path);
  if (list.ok()) {
    for (const Json& item : At(*list, "items")) {
      now.claims[TextAt(item, "metadata/name")] = {TextAt(item, "status/phase"),
                                                   TextAt(item, "spec/storageClassName")};
    }
  }
  const std::lock_guard lock(mutex_);
  claims_[name_space] = now;
  return now.claims;
}

std::vector<UnboundClaim> NamedThings::FindUnbound(const v1::JobSpec& spec,
                                                   const std::string& name_space) {
  std::vector<UnboundClaim> unbound;
  const std::map<std::string, ClaimState> claims = ClaimsOf(name_space);
  for (int i = 0; i < spec.kubernetes().volumes_size(); ++i) {
    const std::string& name = spec.kubernetes().volumes(i).claim();
    const auto found = claims.find(name);
    if (name.empty() || found == claims.end() || found->second.phase == "Bound") continue;
    const ClaimState& claim = found->second;
    UnboundClaim& one = unbound.emplace_back();
    one.field = fmt::format("kubernetes.volumes[{}].claim", i);
    one.is_stuck = claim.phase == "Lost" || claim.storage_class.empty();
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
                         "Make it, or name another"});
    }
  }
  for (UnboundClaim& claim : FindUnbound(spec, name_space)) {
    if (claim.is_stuck)
      missing.push_back({std::move(claim.field), std::move(claim.words), kBindClaim});
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
