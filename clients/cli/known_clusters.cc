#include "clients/cli/known_clusters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// Returns the kind in the words of resources.infra.
std::string_view InfraOf(v1::ClusterKind kind) {
  switch (kind) {
    case v1::CLUSTER_KIND_SLURM:
      return "slurm";
    case v1::CLUSTER_KIND_KUBERNETES:
      return "k8s";
    default:
      return "ssh";
  }
}

// Returns whether the job may go to the cluster: of alternatives, one is taken.
bool Names(const v1::JobSpec& spec, const std::string& cluster) {
  const auto& named = spec.placement().clusters();
  return std::find(named.begin(), named.end(), cluster) != named.end();
}

}  // namespace

absl::StatusOr<std::map<std::string, v1::Cluster>> AllClusters(client::Client& client) {
  std::map<std::string, v1::Cluster> clusters;
  v1::ListClustersRequest request;
  do {
    const auto page = client.ListClusters(request);
    if (!page.ok()) return page.status();
    for (const v1::Cluster& cluster : page->clusters()) clusters.emplace(cluster.name(), cluster);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return clusters;
}

void NoteUnknownClusters(Session& session, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto known = AllClusters(session.client);
  if (!known.ok()) return;
  for (const std::string& name : names) {
    if (known->contains(name)) continue;
    std::vector<std::string> others;
    for (const auto& [other, cluster] : *known) others.push_back(Harmless(other));
    constexpr size_t kMaxOthers = 10;  // more are in muster clusters
    const bool is_cut = others.size() > kMaxOthers;
    if (is_cut) others.resize(kMaxOthers);
    session.terminal.Note(fmt::format(
        "no cluster {} is known; there {}", contract::Quoted(name),
        others.empty() ? "is none"
                       : fmt::format("are: {}{}", fmt::join(others, ", "), is_cut ? ", ..." : "")));
  }
}

absl::Status CheckKinds(Session& session, const client::JobFile& jobs) {
  if (jobs.expected_kinds.empty()) return absl::OkStatus();
  const auto known = AllClusters(session.client);
  if (!known.ok()) return absl::OkStatus();
  std::vector<std::string> remarks;
  for (const client::ExpectedKind& one : jobs.expected_kinds) {
    const auto found = known->find(one.cluster);
    if (found == known->end() || found->second.kind() == one.kind) continue;
    if (!Names(jobs.specs[one.job], one.cluster)) continue;
    remarks.push_back(fmt::format(
        "{}: resources.infra: cluster {} is of kind {}, not {}; it is taken by its name ({}/{} "
        "says both)",
        jobs.places.Find(one.job, "placement"), Harmless(one.cluster),
        contract::Name(found->second.kind()), contract::Name(one.kind),
        InfraOf(found->second.kind()), Harmless(one.cluster)));
  }
  if (session.call.strict && !remarks.empty())
    return absl::InvalidArgumentError(fmt::format("{}", fmt::join(remarks, "\n")));
  for (const std::string& remark : remarks) session.terminal.Note(remark);
  return absl::OkStatus();
}

}  // namespace muster::cli
