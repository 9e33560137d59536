#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "broker/core/impl.h"
#include "contract/queue_words.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// Different jobs that one answer explains. Each is held against all clusters on the core's thread.
constexpr size_t kMaxExplainedShapes = 20;

// Why a cluster that may fit does not have the job yet, and how near it is to having it.
std::pair<int, std::string> WhyNot(const v1::JobSpec& shape, const Cluster& cluster) {
  const Fit fit = CheckFit(shape, cluster.saved);
  if (!fit.now()) return {static_cast<int>(fit.verdict), fit.lacks};
  const int near = static_cast<int>(Fit::Verdict::kFits);
  if (!cluster.session) return {near, std::string(contract::kAgentIsGone)};
  if (cluster.active >= cluster.saved.max_active_runs) {
    return {near + 1,
            fmt::format("it fits, and has {} active runs of at most {}{}", cluster.active,
                        cluster.saved.max_active_runs,
                        cluster.held > 0 ? fmt::format(" ({} of them held)", cluster.held) : "")};
  }
  return {near + 2, "it fits; the job is about to be placed"};
}

}  // namespace

void Core::Impl::On(Explain& in, Step& step) {
  ExplainReply reply;
  reply.ticket = in.ticket;
  // Jobs of one shape wait for the same.
  std::map<uint32_t, std::string> by_shape;
  for (uint64_t id : in.jobs) {
    std::string& reason = reply.reasons.emplace_back();
    auto it = jobs_.find(id);
    if (it == jobs_.end()) continue;
    const Job& job = it->second;
    if (job.state() == v1::JOB_STATE_PENDING) reason = WhyPending(id, job);
    if (job.state() != v1::JOB_STATE_QUEUED || !IsReady(id, job)) continue;
    auto known = by_shape.find(job.shape);
    if (known == by_shape.end()) {
      if (by_shape.size() == kMaxExplainedShapes) continue;
      known = by_shape.emplace(job.shape, WhyQueued(job)).first;
    }
    reason = known->second;
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
