#include "broker/replay/chooser.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace muster::replay {

std::string Chooser::Choose(const TraceJob& job, const std::vector<ReplayCluster>& clusters) {
  if (policy_ == Policy::kMuster || policy_ == Policy::kOneCluster) return "";
  std::vector<size_t> fitting;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (clusters[i].CouldRun(job)) fitting.push_back(i);
  }
  if (fitting.empty()) return "";
  size_t chosen = fitting.front();
  switch (policy_) {
    case Policy::kRandom:
      chosen = fitting[std::uniform_int_distribution<size_t>(0, fitting.size() - 1)(random_)];
      break;
    case Policy::kLeastLoaded:
      chosen = *std::min_element(fitting.begin(), fitting.end(), [&](size_t a, size_t b) {
        return clusters[a].demand() < clusters[b].demand();
      });
      break;
    case Policy::kStaticSplit:
      chosen = fitting[std::hash<std::string>()(job.project) % fitting.size()];
      break;
    default: {
      const auto has_room = [&](size_t i) {
        return clusters[i].active() < fleet_.clusters[i].max_active_runs;
      };
      const auto found = std::find_if(fitting.begin(), fitting.end(), has_room);
      if (found != fitting.end()) chosen = *found;
    }
  }
  return clusters[chosen].name();
}

Fleet AsOneCluster(const Fleet& fleet) {
  FleetCluster all{.name = "all", .max_active_runs = 1'000'000};
  for (const FleetCluster& cluster : fleet.clusters) {
    all.nodes.insert(all.nodes.end(), cluster.nodes.begin(), cluster.nodes.end());
  }
  Fleet one;
  one.clusters.push_back(std::move(all));
  return one;
}

}  // namespace muster::replay
