#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// Why a cluster that may fit does not have the job yet, and how near it is to having it.
std::pair<int, std::string> WhyNot(const v1::JobSpec& shape, const Cluster& cluster) {
  const Fit fit = CheckFit(shape, cluster.saved);
  if (!fit.now()) return {static_cast<int>(fit.verdict), fit.lacks};
  const int near = static_cast<int>(Fit::Verdict::kFits);
  if (!cluster.session) return {near, "it fits, and its agent is not connected"};
  if (cluster.active >= cluster.saved.max_active_runs) {
    return {near + 1, fmt::format("it fits, and has {} active runs of at most {}", cluster.active,
                                  cluster.saved.max_active_runs)};
  }
  return {near + 2, "it fits; the job is about to be placed"};
}

}  // namespace

void Core::Impl::On(Explain& in, Step& step) {
  ExplainReply reply;
  reply.ticket = in.ticket;
  auto it = jobs_.find(in.job);
  if (it != jobs_.end()) {
    const Job& job = it->second;
    const bool is_queued = job.state() == v1::JOB_STATE_QUEUED;
    if (is_queued && IsReady(in.job, job)) reply.reason = WhyQueued(job);
    if (job.state() == v1::JOB_STATE_PENDING) reply.reason = WhyPending(in.job, job);
  }
  step.out->effects.push_back(std::move(reply));
}

std::string Core::Impl::WhyQueued(const Job& job) const {
  if (clusters_by_name_.empty()) return "no cluster has connected to this broker yet";
  const v1::JobSpec& shape = shapes_.Find(job.shape)->spec;
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [name, cluster] : clusters_by_name_) {
    auto [near, why] = WhyNot(shape, *cluster);
    if (near == static_cast<int>(Fit::Verdict::kNotNamed)) continue;
    reasons.emplace_back(near, fmt::format("cluster \"{}\": {}", name, why));
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < std::min(reasons.size(), kMaxNamedClusters); ++i) {
    text += (i > 0 ? "; " : "") + reasons[i].second;
  }
  if (reasons.size() > kMaxNamedClusters) {
    text += fmt::format("; and {} more", reasons.size() - kMaxNamedClusters);
  }
  return text;
}

std::string Core::Impl::WhyPending(uint64_t id, const Job& job) const {
  const Cluster& cluster = *clusters_[job.cluster];
  const v1::Run& run = *cluster.runs.at({id, job.runs});
  if (!run.reason().empty()) return run.reason();
  std::string text = fmt::format("run {} is {} on cluster \"{}\"", job.runs,
                                 contract::Name(run.state()), cluster.name());
  if (!cluster.session) text += ", whose agent is not connected";
  return text;
}

}  // namespace muster::core
