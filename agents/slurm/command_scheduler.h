// Slurm by its own commands.
#ifndef MUSTER_AGENTS_SLURM_COMMAND_SCHEDULER_H_
#define MUSTER_AGENTS_SLURM_COMMAND_SCHEDULER_H_

#include <string>
#include <string_view>
#include <vector>

#include "agents/hosts/host.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/scheduler.h"

namespace muster::slurm {

class CommandScheduler : public Scheduler {
 public:
  // Host and commands must outlive this object. `of_all_users`: Queue is of all users' jobs.
  CommandScheduler(hosts::Host* host, Commands* commands, bool of_all_users = false)
      : host_(host), commands_(commands), of_all_users_(of_all_users) {}

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
  size_t MaxJobsInCall() const override;
  std::vector<absl::Status> CancelMany(const std::vector<JobId>& ids) override;
  std::vector<absl::Status> SetHeldMany(const std::vector<JobId>& ids, bool held) override;
  absl::Status Signal(const JobId& id, int number, SignalTo to) override;

 private:
  absl::Status CheckCommand(const std::string& name);
  absl::StatusOr<std::vector<QueueRow>> QueueOfAll();
  // FAILED_PRECONDITION: there is none.
  absl::StatusOr<std::string> AskAccounting(std::vector<std::string> argv);
  absl::StatusOr<std::vector<HistoryRow>> History(std::vector<std::string> argv);
  // Runs a command about jobs, which it names last.
  std::vector<absl::Status> RunFor(const std::vector<JobId>& ids, std::vector<std::string> argv);

  hosts::Host* const host_;
  Commands* const commands_;
  const bool of_all_users_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_COMMAND_SCHEDULER_H_
