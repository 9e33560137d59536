#include "broker/app/ask_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "broker/engine/engine.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

// Ten plans are one answer, and clients receive up to 4 MiB by default.
constexpr size_t kMaxPlanBytes = 384 << 10;

absl::Status NotConnected(const std::string& name) {
  return contract::Error(
      absl::StatusCode::kUnavailable, "AGENT_NOT_CONNECTED",
      fmt::format("the agent of cluster \"{}\" is not connected, and only it can tell", name),
      {{"cluster", name}});
}

// Adds the cluster's name to the error, and the remedy for its kind.
absl::Status Named(const absl::Status& status, const v1::Cluster& cluster,
                   absl::Duration patience) {
  std::string text =
      fmt::format("cluster \"{}\": {}", cluster.name(), std::string(ToStd(status.message())));
  if (absl::IsDeadlineExceeded(status)) {
    text += fmt::format(
        ". It had up to {}; its scheduler may hang, or the agent (version {}) may be older than "
        "such questions",
        absl::FormatDuration(patience), cluster.agent_version());
  }
  return contract::InOtherWords(status, text);
}

std::chrono::steady_clock::time_point DeadlineAfter(absl::Duration patience,
                                                    absl::Time client_deadline) {
  const absl::Duration wait = std::min(patience, client_deadline - absl::Now());
  return std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(wait);
}

// Collects one plan for each cluster; the last one to come hands all of them on.
class PlanCollector {
 public:
  PlanCollector(size_t count, std::function<void(JobPlans)> done)
      : plans_(count, absl::UnknownError("no answer yet")),
        missing_(count),
        done_(std::move(done)) {}

  void Put(size_t index, absl::StatusOr<v1::JobPlan> plan) {
    JobPlans all;
    {
      const MutexLock lock(mutex_);
      plans_[index] = std::move(plan);
      if (--missing_ > 0) return;
      all = std::move(plans_);
    }
    done_(std::move(all));
  }

 private:
  Mutex mutex_;
  JobPlans plans_ ABSL_GUARDED_BY(mutex_);
  size_t missing_ ABSL_GUARDED_BY(mutex_);
  const std::function<void(JobPlans)> done_;
};

absl::StatusOr<v1::JobPlan> ToPlan(const v1::Cluster& cluster, absl::Duration patience,
                                   absl::StatusOr<agent::v1::AgentAnswer> answer) {
  absl::Status status = answer.status();
  if (status.ok() && !answer->has_plan()) status = absl::InternalError("the agent told no plan");
  if (status.ok() && answer->plan().ByteSizeLong() > kMaxPlanBytes) {
    status =
        absl::ResourceExhaustedError(fmt::format("the agent's plan has {} bytes; the most is {}",
                                                 answer->plan().ByteSizeLong(), kMaxPlanBytes));
  }
  if (!status.ok()) return Named(status, cluster, patience);
  v1::JobPlan plan = std::move(*answer->mutable_plan());
  plan.set_cluster(cluster.name());
  return plan;
}

}  // namespace

absl::Status NoSuchCluster(const std::string& name) {
  return contract::Error(
      absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER",
      fmt::format("no agent has ever connected for a cluster named \"{}\"", name),
      {{"cluster", name}});
}

void AskCluster(const Services& services, const std::string& cluster,
                agent::v1::AgentQuestion question, absl::Duration patience,
                absl::Time client_deadline, ClusterAnswerDone done) {
  if (cluster.empty()) return done(contract::BadField("name", "is required"));
  std::optional<v1::Cluster> known = core::Find(cluster, *services.engine->clusters());
  if (!known) return done(NoSuchCluster(cluster));
  const std::shared_ptr<AgentPeer> agent = services.engine->agents().FindWelcomed(cluster);
  if (agent == nullptr) return done(NotConnected(cluster));
  auto with = std::make_shared<v1::Cluster>(*std::move(known));
  agent->Ask(std::move(question), DeadlineAfter(patience, client_deadline),
             [with, patience, done](absl::StatusOr<agent::v1::AgentAnswer> answer) {
               if (!answer.ok()) return done(Named(answer.status(), *with, patience));
               done(ClusterAnswer{std::move(*with), *std::move(answer)});
             });
}

void AskPlans(const Services& services, const std::vector<v1::Cluster>& clusters,
              const agent::v1::PlanQuestion& question, absl::Duration patience,
              absl::Time client_deadline, std::function<void(JobPlans)> done) {
  if (clusters.empty()) return done({});
  auto collector = std::make_shared<PlanCollector>(clusters.size(), std::move(done));
  for (size_t i = 0; i < clusters.size(); ++i) {
    const std::shared_ptr<AgentPeer> agent =
        services.engine->agents().FindWelcomed(clusters[i].name());
    if (agent == nullptr) {
      collector->Put(i, NotConnected(clusters[i].name()));
      continue;
    }
    agent::v1::AgentQuestion asked;
    *asked.mutable_plan() = question;
    agent->Ask(std::move(asked), DeadlineAfter(patience, client_deadline),
               [collector, i, patience,
                cluster = clusters[i]](absl::StatusOr<agent::v1::AgentAnswer> answer) {
                 collector->Put(i, ToPlan(cluster, patience, std::move(answer)));
               });
  }
}

}  // namespace muster::broker
