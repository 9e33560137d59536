#include "broker/app/signal_jobs.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/app/arguments.h"
#include "broker/app/ask_cluster.h"
#include "broker/app/rights.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/signal_number.h"
#include "contract/states.h"
#include "sync/mutex.h"

namespace muster::broker {
namespace {

absl::Status NotRunning(const v1::Job& job) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NOT_RUNNING",
      fmt::format("job {} is {}, and only the programs of a running job can get a signal", job.id(),
                  contract::Name(job.state())),
      {{"job_id", fmt::format("{}", job.id())}});
}

absl::Status SendsNone(const v1::Cluster& cluster, uint64_t job) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "SIGNALS_NOT_SENT",
      fmt::format("job {} runs on cluster \"{}\", whose agent sends no signals{}", job,
                  cluster.name(),
                  cluster.kind() == v1::CLUSTER_KIND_KUBERNETES
                      ? ": Kubernetes itself knows none but the end of a pod"
                      : "; install the broker's version of it, and let an agent of Slurm use "
                        "Slurm's commands (without slurm.rest_url)"),
      {{"cluster", cluster.name()}});
}

// Holds the signal to one job: the question, and its place in the answer.
struct Order {
  size_t index = 0;
  agent::v1::AgentQuestion question;
};

// Carries out one call. Each cluster gets a few questions at a time.
class Signaling : public std::enable_shared_from_this<Signaling> {
 public:
  Signaling(const Services& services, absl::Time client_deadline, SignalJobsDone done)
      : services_(services), client_deadline_(client_deadline), done_(std::move(done)) {}

  // Reads the jobs, and asks. On a thread that may read the store.
  void Begin(const store::Scope& scope, const v1::SignalJobsRequest& request,
             const agent::v1::SignalQuestion& signal) {
    std::vector<v1::Job> jobs;
    for (const uint64_t id : request.job_ids()) {
      absl::StatusOr<v1::Job> job = services_.store->GetJob(scope, id);
      if (!job.ok()) return done_(job.status());
      jobs.push_back(*std::move(job));
    }
    std::vector<std::string> clusters;
    {
      const MutexLock lock(mutex_);
      missing_ = jobs.size();
      for (const v1::Job& job : jobs) {
        sent_.push_back({.job = job.id(), .status = {}});
        Prepare(job, signal);
      }
      for (const auto& [cluster, orders] : waiting_) {
        const size_t lanes = std::min<size_t>(orders.size(), kSignalsAtATime);
        clusters.insert(clusters.end(), lanes, cluster);
      }
    }
    if (clusters.empty()) return Finish();
    for (const std::string& cluster : clusters) AskNext(cluster);
  }

 private:
  // Queues the question about the last job, or answers it.
  void Prepare(const v1::Job& job, const agent::v1::SignalQuestion& signal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool runs =
        (job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_SUSPENDED) &&
        job.runs_size() > 0;
    if (!runs) return Refuse(NotRunning(job));
    const v1::Run& run = job.runs(job.runs_size() - 1);
    const auto cluster = core::Find(run.cluster(), *services_.engine->clusters());
    if (!cluster) return Refuse(NoSuchCluster(run.cluster()));
    if (!cluster->inventory().sends_signals()) return Refuse(SendsNone(*cluster, job.id()));
    Order order{.index = sent_.size() - 1, .question = {}};
    *order.question.mutable_signal() = signal;
    order.question.mutable_signal()->set_run_key(run.run_key());
    waiting_[run.cluster()].push_back(std::move(order));
  }

  void Refuse(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sent_.back().status = std::move(why);
    --missing_;
  }

  // Asks the cluster's next question; the answer to it asks the one after.
  void AskNext(const std::string& cluster) {
    Order order;
    {
      const MutexLock lock(mutex_);
      std::deque<Order>& orders = waiting_[cluster];
      if (orders.empty()) return;
      order = std::move(orders.front());
      orders.pop_front();
    }
    AskCluster(services_, cluster, std::move(order.question), kSignalPatience, client_deadline_,
               [self = shared_from_this(), cluster,
                index = order.index](const absl::StatusOr<ClusterAnswer>& answer) {
                 self->Take(index, answer.status());
                 self->AskNext(cluster);
               });
  }

  void Take(size_t index, absl::Status answer) {
    {
      const MutexLock lock(mutex_);
      sent_[index].status = std::move(answer);
      if (--missing_ > 0) return;
    }
    Finish();
  }

  void Finish() {
    std::vector<SentSignal> sent;
    {
      const MutexLock lock(mutex_);
      sent = std::move(sent_);
    }
    done_(std::move(sent));
  }

  const Services services_;
  const absl::Time client_deadline_;
  const SignalJobsDone done_;
  Mutex mutex_;
  std::vector<SentSignal> sent_ ABSL_GUARDED_BY(mutex_);                      // one for each id
  size_t missing_ ABSL_GUARDED_BY(mutex_) = 0;                                // answers
  std::map<std::string, std::deque<Order>> waiting_ ABSL_GUARDED_BY(mutex_);  // by cluster
};

absl::Status CheckRequest(const v1::SignalJobsRequest& request) {
  if (request.job_ids().empty())
    return contract::BadField("job_ids", "is empty; name the jobs that get the signal");
  if (request.job_ids_size() > kMaxSignaledJobs) {
    return contract::BadField(
        "job_ids", fmt::format("has {} jobs, the most is {}; name the others in another call",
                               request.job_ids_size(), kMaxSignaledJobs));
  }
  if (absl::Status status = CheckIds(request.job_ids()); !status.ok()) return status;
  if (contract::SignalNumber(request.signal()).has_value()) return absl::OkStatus();
  return contract::BadField(
      "signal", fmt::format("{} is no signal; use a name (\"USR1\", \"SIGTERM\") or a number "
                            "from 1 to {}",
                            contract::Quoted(request.signal()), contract::kMaxSignal));
}

absl::StatusOr<v1::SignalTarget> TargetOf(const v1::SignalJobsRequest& request) {
  if (request.target() == v1::SIGNAL_TARGET_UNSPECIFIED) return v1::SIGNAL_TARGET_COMMAND;
  if (v1::SignalTarget_IsValid(request.target())) return request.target();
  return contract::BadField(
      "target", fmt::format("{} is no target; use SIGNAL_TARGET_COMMAND, SIGNAL_TARGET_BATCH or "
                            "SIGNAL_TARGET_ALL",
                            static_cast<int>(request.target())));
}

}  // namespace

void SignalJobs(const Principal& principal, const Services& services,
                const v1::SignalJobsRequest& request, absl::Time client_deadline,
                SignalJobsDone done) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kChangeJobs);
  if (!scope.ok()) return done(scope.status());
  if (absl::Status status = CheckRequest(request); !status.ok()) return done(status);
  const absl::StatusOr<v1::SignalTarget> target = TargetOf(request);
  if (!target.ok()) return done(target.status());
  agent::v1::SignalQuestion signal;
  signal.set_signal(*contract::SignalNumber(request.signal()));
  signal.set_target(*target);
  auto signaling = std::make_shared<Signaling>(services, client_deadline, done);
  const bool is_taken = services.readers->PostCall(
      [signaling, scope = *scope, request, signal] { signaling->Begin(scope, request, signal); });
  if (!is_taken) done(services.readers->Refusal());
}

}  // namespace muster::broker
