// muster sky status: the clusters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/sky/cluster_jobs.h"
#include "clients/cli/sky/job_words.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "contract/counted.h"
#include "contract/units.h"

namespace muster::cli::sky {
namespace {

using client::slurm::Option;
using enum Option::Argument;

constexpr std::array kStatusOptions = {
    Option{"all", 'a', kNone},     Option{"all-users", 'u', kNone}, Option{"config", 0},
    Option{"endpoint", 0},         Option{"endpoints", 0, kNone},   Option{"ip", 0, kNone},
    Option{"k8s", 0, kNone},       Option{"kubernetes", 0, kNone},  Option{"output", 'o'},
    Option{"refresh", 'r', kNone}, Option{"verbose", 'v', kNone},
};
constexpr std::string_view kNoServices = "Muster runs jobs, not services";
constexpr std::string_view kWide = "use: muster clusters -o wide, or muster clusters NAME";
constexpr std::pair<std::string_view, std::string_view> kStatusRefused[] = {
    {"all", kWide},
    {"config", "muster's own settings are in ~/.config/muster/config.yaml"},
    {"endpoint", kNoServices},
    {"endpoints", kNoServices},
    {"ip", "its nodes are listed by: muster clusters NAME"},
    {"k8s", kWide},
    {"kubernetes", kWide},
    {"output", "use: muster clusters -o json"},
    {"verbose", kWide},
};

// Returns the `infra` with which a task chooses the cluster.
std::string InfraOfCluster(const v1::Cluster& cluster) {
  const std::string name = Harmless(cluster.name());
  switch (cluster.kind()) {
    case v1::CLUSTER_KIND_SLURM:
      return "slurm/" + name;
    case v1::CLUSTER_KIND_KUBERNETES:
      return "k8s/" + name;
    case v1::CLUSTER_KIND_MACHINES:
      return "ssh/" + name;
    default:
      return "-";
  }
}

std::string NodesText(const v1::NodeGroup& group) {
  std::string what = fmt::format("cpus={}", group.cpus());
  if (group.memory_bytes() > 0) {
    what += fmt::format(", mem={}", group.memory_bytes() >> 30);
  }
  const std::map<std::string, uint32_t> gpus(group.gpus().begin(), group.gpus().end());
  for (const auto& [type, count] : gpus) what += fmt::format(", {}:{}", Harmless(type), count);
  return fmt::format("{}x({})", group.count(), what);
}

// The nodes of the default pool, or of the first: pools may have nodes in common.
std::string ResourcesOf(const v1::Cluster& cluster) {
  constexpr int kMaxGroups = 3;  // as much as fits beside the rest
  const auto& pools = cluster.inventory().pools();
  auto pool = std::find_if(pools.begin(), pools.end(),
                           [](const v1::Pool& one) { return one.is_default(); });
  if (pool == pools.end()) pool = pools.begin();
  if (pool == pools.end() || pool->node_groups().empty()) return "-";
  std::string text;
  for (int i = 0; i < pool->node_groups_size() && i < kMaxGroups; ++i) {
    text += (text.empty() ? "" : " ") + NodesText(pool->node_groups(i));
  }
  return pool->node_groups_size() > kMaxGroups ? text + " ..." : text;
}

struct StatusState {
  std::string_view word;
  Colour colour;
  std::string muster;  // what Muster says
};

// A cluster of which nobody has heard is not necessarily stopped.
StatusState StateOf(const v1::Cluster& cluster, absl::Time now) {
  if (cluster.state() != v1::CLUSTER_STATE_CONNECTED) {
    return {"INIT", Colour::kYellow,
            "its agent is not connected, last seen " + AgoText(cluster.last_seen(), now)};
  }
  if (!cluster.scheduler_error().empty()) {
    return {"INIT", Colour::kYellow,
            "its scheduler does not answer: " + OneLine(cluster.scheduler_error())};
  }
  return {"UP", Colour::kGreen, contract::Counted(cluster.active_runs(), "active run")};
}

}  // namespace

int Status(Session& session, const Words& words) {
  const auto read = client::slurm::ReadCommandWords(kStatusOptions, words);
  if (!read.ok()) return FailUsage(session, read.status());
  if (absl::Status status = CheckRefused(read->options, kStatusRefused); !status.ok()) {
    return FailUsage(session, status);
  }
  const auto found = FindClusters(session.client, read->operands);
  if (!found.ok()) return FailOther(session, found.status());
  for (const std::string& name : found->missing) {
    session.terminal.Note(fmt::format("Cluster(s) not found: {}", Harmless(name)));
  }
  session.terminal.Out("Clusters\n");
  if (found->clusters.empty()) {
    session.terminal.Out("No existing clusters.\n");
    return kOk;
  }
  const absl::Time now = absl::Now();
  Table table(
      {{"NAME"}, {"INFRA"}, {"RESOURCES"}, {"STATUS"}, {"AUTOSTOP"}, {"LAUNCHED"}, {"MUSTER"}},
      session.terminal.colours());
  for (const v1::Cluster& cluster : found->clusters) {
    const StatusState state = StateOf(cluster, now);
    table.Add({{Harmless(cluster.name())},
               {InfraOfCluster(cluster)},
               {ResourcesOf(cluster)},
               {std::string(state.word), state.colour},
               {"-"},
               {"-"},
               {state.muster}});
  }
  session.terminal.Out(table.Take());
  return kOk;
}

}  // namespace muster::cli::sky
