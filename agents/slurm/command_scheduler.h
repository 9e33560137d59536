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
  // Both must outlive this object.
  CommandScheduler(hosts::Host* host, Commands* commands) : host_(host), commands_(commands) {}

  absl::StatusOr<ClusterSettings> Probe() override;
  absl::StatusOr<ClusterSettings> Settings() override;
  absl::StatusOr<std::vector<v1::Pool>> Pools() override;
  absl::StatusOr<std::vector<Partition>> Partitions() override;
  absl::StatusOr<std::vector<v1::Node>> Nodes() override;
  absl::StatusOr<std::vector<QueuedJob>> WholeQueue() override;
  std::optional<Access> CheckAccess(CheckList* checks) override;
  absl::StatusOr<std::vector<Association>> Associations(const std::string& cluster,
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
  absl::StatusOr<HistoryRow> ShowJob(const JobId& id) override;
  absl::Status Cancel(const JobId& id) override;
  absl::Status CancelNamed(std::string_view name) override;
  absl::Status Hold(const JobId& id) override;
  absl::Status Release(const JobId& id) override;

 private:
  absl::Status CheckCommand(const std::string& name);
  absl::StatusOr<std::vector<HistoryRow>> History(std::vector<std::string> argv);
  absl::Status CancelWhat(const std::string& what);
  absl::Status Control(const std::string& verb, const JobId& id);

  hosts::Host* const host_;
  Commands* const commands_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_COMMAND_SCHEDULER_H_
