// The backend whose cluster is a remote broker. Any thread may use it, as agents/core/backend.h
// says.
#ifndef MUSTER_AGENTS_MUSTER_BACKEND_H_
#define MUSTER_AGENTS_MUSTER_BACKEND_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/muster/change_feed.h"
#include "agents/muster/connection.h"
#include "agents/muster/log_host.h"
#include "agents/muster/remote.h"
#include "agents/muster/run_book.h"
#include "agents/muster/uploads.h"
#include "sync/mutex.h"

namespace muster::remote {

class RemoteBackend final : public agents::Backend {
 public:
  RemoteBackend(RemoteConfig config, std::unique_ptr<Connection> connection);

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  v1::ClusterChecks Check() override;
  absl::StatusOr<v1::ClusterDetails> Describe(bool with_jobs) override;
  absl::StatusOr<v1::JobPlan> Plan(const v1::JobSpec& spec, const std::string& user) override;

  // The remote broker's clusters start runs without this agent, and the agent repeats its cancels:
  // nothing prevents runs from beginning while it is away.
  absl::Status Adopt(const std::vector<agents::RunHandle>& runs) override;
  std::vector<agents::LaunchOutcome> Launch(const agents::Assignments& runs) override;
  agents::LookupOutcome Lookup(const agents::RunHandle& run) override;
  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> End(const std::vector<agents::RunHandle>& runs) override;
  std::vector<absl::Status> Hold(const std::vector<agents::RunHandle>& runs, bool held) override;
  agents::FenceOutcome Fence(const agents::RunHandle& run) override;
  agents::RunOutput OpenLogs(const agents::RunHandle& run) override;
  // The jobs stay in the remote broker's history for as long as its operator keeps jobs.
  std::vector<absl::Status> Forget(const std::vector<agents::RunHandle>& runs) override;

  agents::Capabilities capabilities() override;
  absl::Duration ObserveInterval() const override;
  void SetWaker(std::function<void()> wake) override;
  std::map<std::string, uint64_t> SchedulerCalls() const override { return connection_->calls(); }

  // Returns whether anything is kept about the run.
  bool Knows(const std::string& run_key) const { return book_.Knows(run_key); }

 private:
  enum class Wish { kEnd, kHold, kRelease };

  agents::LaunchOutcome LaunchOne(const agent::v1::Assignment& run);
  absl::Status BringFiles(const v1::JobSpec& spec, std::optional<agents::LaunchOutcome>* refusal);
  // Returns the job of a run with its latest run, or nothing if the remote broker has no such job.
  absl::StatusOr<std::optional<v1::Job>> Find(const std::string& run_key);
  // Returns the number of a run's job, and asks the remote broker if it is not known; 0: there is
  // none.
  absl::StatusOr<uint64_t> FindId(const agents::RunHandle& run);
  absl::StatusOr<LogHost::JobOfRun> FindLogs(const std::string& run_key);
  std::vector<absl::Status> Change(const std::vector<agents::RunHandle>& runs, Wish wish);
  absl::Status Ask(Wish wish, const std::vector<uint64_t>& ids);
  // Looks at the jobs that may have changed.
  absl::Status Refresh(const std::vector<uint64_t>& jobs);
  std::optional<agents::Observation> See(const agents::RunHandle& run, uint64_t job, bool is_live);
  absl::StatusOr<agents::UsageByRun> UsageOf(const std::vector<agents::RunHandle>& runs);
  absl::Status SendSignal(const agents::RunHandle& run, const agents::RunSignal& signal);
  void Wake();

  const RemoteConfig config_;
  const std::unique_ptr<Connection> connection_;
  RunBook book_;
  LogHost logs_;
  std::optional<Uploads> uploads_;

  Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  ChangeFeed feed_;  // last: it calls the others
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_BACKEND_H_
