// Slurm by slurmrestd, its HTTP server.
#ifndef MUSTER_AGENTS_SLURM_REST_SCHEDULER_H_
#define MUSTER_AGENTS_SLURM_REST_SCHEDULER_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agents/slurm/commands.h"
#include "agents/slurm/rest_client.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"
#include "sync/mutex.h"

namespace muster::slurm {

class RestScheduler : public Scheduler {
 public:
  // `gate` and `commands` must outlive this object. The commands tell the job's environment and,
  // without rest_token_file, the token. `user`: whose jobs these are.
  RestScheduler(const SlurmConfig& config, std::string user, std::unique_ptr<Http> http,
                CallGate* gate, Commands* commands);

  absl::StatusOr<ClusterSettings> Probe() override;
  absl::StatusOr<ClusterSettings> Settings() override;
  absl::StatusOr<std::vector<v1::Pool>> Pools() override;
  absl::StatusOr<std::vector<Partition>> Partitions() override;
  absl::StatusOr<std::vector<v1::Node>> Nodes() override;
  absl::StatusOr<std::vector<QueuedJob>> WholeQueue() override;
  std::optional<Access> CheckAccess(agents::CheckList* checks) override;
  absl::StatusOr<std::vector<Association>> Associations(const ClusterSettings& settings,
                                                        const std::string& user) override;
  absl::StatusOr<std::vector<std::string>> KnownNodes(
      const std::vector<std::string>& names) override;
  SubmitOutcome Submit(const Submission& submission) override;
  absl::StatusOr<std::string> EstimateStart(const Submission& submission) override;
  absl::StatusOr<std::vector<QueueRow>> Queue(std::string_view name = {}) override;
  absl::StatusOr<std::vector<HistoryRow>> HistoryOf(const std::vector<JobId>& ids,
                                                    absl::Time since) override;
  absl::StatusOr<std::vector<HistoryRow>> HistoryOf(std::string_view name,
                                                    absl::Time since) override;
  absl::StatusOr<std::vector<UsageRow>> UsageOf(const std::vector<JobId>& ids,
                                                absl::Time since) override;
  absl::StatusOr<HistoryRow> ShowJob(const JobId& id) override;
  // No API has one call that cancels and one that holds several jobs.
  size_t MaxJobsInCall() const override { return 1; }
  std::vector<absl::Status> CancelMany(const std::vector<JobId>& ids) override;
  std::vector<absl::Status> SetHeldMany(const std::vector<JobId>& ids, bool held) override;
  absl::Status Signal(const JobId& /*id*/, int /*number*/, SignalTo /*to*/) override {
    return absl::UnimplementedError(
        "slurmrestd tells no processes apart; have the cluster's agent use Slurm's commands "
        "(without slurm.rest_url)");
  }

 private:
  // Returns the paths that slurmrestd serves. FAILED_PRECONDITION: this agent does not speak its
  // version.
  absl::StatusOr<RestServes> AskServes();
  // Returns the same paths, asked for until they are known.
  absl::StatusOr<RestServes> Serves();
  absl::StatusOr<std::string> ClusterName(const RestAnswer& answer, bool has_accounting);
  // Asks as RestClient::AskWell, once the version to speak is known.
  absl::StatusOr<RestAnswer> AskWell(const RestQuestion& question);
  absl::StatusOr<RestAnswer> Get(std::string name, std::string path, std::string base = "slurm");
  // Returns what accounting knows of the jobs that have one of the values.
  // FAILED_PRECONDITION: it serves none.
  absl::StatusOr<RestAnswer> AskAccounting(std::string name, std::string_view what,
                                           const std::set<std::string>& values, absl::Time since,
                                           bool with_steps);
  absl::StatusOr<std::vector<HistoryRow>> History(std::string_view what,
                                                  const std::set<std::string>& values,
                                                  absl::Time since);
  absl::Status CancelOne(const JobId& id);
  absl::Status SetHold(const JobId& id, bool hold);
  // Holds a whole array only, as slurmrestd does from v0.0.40 on. UNIMPLEMENTED unless all tasks of
  // the array that wait are among `ids`.
  absl::Status SetArrayHold(uint64_t number, const std::vector<JobId>& ids, bool held);

  // These are constant after construction.
  const SlurmConfig config_;
  const std::string user_;
  Commands* const commands_;
  // It has locks of its own.
  RestClient client_;

  Mutex mutex_;
  std::optional<RestServes> serves_ ABSL_GUARDED_BY(mutex_);
  std::string cluster_name_ ABSL_GUARDED_BY(mutex_);  // once it is known
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_SCHEDULER_H_
