// The Slurm backend. What it remembers is only what makes its questions cheaper and its patience
// right: a new object that knows nothing but the journal's runs comes to the same answers.
#ifndef MUSTER_AGENTS_SLURM_BACKEND_H_
#define MUSTER_AGENTS_SLURM_BACKEND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/host.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/image_cache.h"
#include "agents/slurm/inventory.h"
#include "agents/slurm/record_watcher.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"
#include "agents/slurm/verdict.h"

namespace muster::slurm {

class SlurmBackend : public agent::Backend {
 public:
  SlurmBackend(SlurmConfig config, std::unique_ptr<hosts::Host> host);

  absl::Status Probe() override;
  absl::StatusOr<v1::Inventory> Inventory() override;
  absl::StatusOr<std::string> Preview(const v1::Assignment& assignment) override;
  absl::Status Adopt(const std::vector<agent::RunHandle>& runs) override;
  agent::LaunchOutcome Launch(const v1::Assignment& assignment) override;
  agent::LookupOutcome Lookup(const agent::RunHandle& run) override;
  agent::ObserveOutcome Observe(const std::vector<agent::RunHandle>& runs) override;
  absl::Status Cancel(const agent::RunHandle& run) override;
  std::vector<agent::LogSource> Logs(const agent::RunHandle& run) override;
  hosts::Host* LogHost() override { return config_.user_on_host.empty() ? nullptr : host_.get(); }
  void Forget(const agent::RunHandle& run) override;
  absl::Duration LookupGrace() const override { return config_.lookup_grace; }
  absl::Duration ObserveInterval() const override;
  void SetWaker(std::function<void()> wake) override { watcher_.SetWaker(std::move(wake)); }
  std::map<std::string, uint64_t> SchedulerCalls() const override { return commands_.Calls(); }

 private:
  // What is remembered of a run between calls. Times are those of time_.
  struct Track {
    bool cancel_asked = false;
    int unknown_refusals = 0;                  // submissions refused in words that we do not know
    std::optional<absl::Time> ended_since;     // when squeue first told of the end
    std::optional<absl::Time> missing_since;   // when squeue first did not list it
    std::optional<absl::Time> limit_end;       // when its time limit ends it; the time of day
    std::optional<uint32_t> recorded_restart;  // the start of the job that its record is of
    // Slurm has put the job back since this start of it; a record of it, or of an earlier one, is
    // void.
    std::optional<uint32_t> void_restart;
    std::set<JobId> strays_canceled;
  };
  using Queue = std::multimap<std::string, QueueRow>;  // by job name

  RunPaths PathsOf(std::string_view run_key) const { return {config_.run_dir, run_key}; }

  absl::Status CheckRunDirectoryIsWritable();

  // ---- launch
  // `image`: what srun gets; empty: the run has no container.
  absl::Status WriteRunFiles(const v1::Assignment& assignment, const RunPaths& paths,
                             const Submission& submission, const std::string& image);
  // Of a spec without an image: nothing is needed.
  absl::StatusOr<ImageCache::Ready> PrepareImage(const v1::JobSpec& spec);
  agent::LaunchOutcome Submit(const v1::Assignment& assignment, const Submission& submission);
  // Which Slurm job owns the run: nothing if none has claimed it yet, or if one died over its
  // claim; an error if that cannot be read.
  absl::StatusOr<std::optional<JobId>> ReadOwner(const RunPaths& paths);
  absl::StatusOr<std::vector<HistoryRow>> HistoryByName(const agent::RunHandle& run);
  void CancelStrays(const std::string& run_key, const JobId& job_id,
                    const std::vector<QueueRow>& rows);

  // ---- observation
  bool IsQueueDue() const;
  absl::StatusOr<Queue> AskQueue();
  std::set<std::string> ListRecords();
  RunFacts Gather(const agent::RunHandle& run, const std::optional<Queue>& queue, bool has_record);
  void ChooseRow(const agent::RunHandle& run, const std::vector<QueueRow>& rows, RunFacts* facts);
  void DropVoidRecord(RunFacts* facts);
  void MarkSince(RunFacts* facts);
  void MarkLimit(const agent::RunHandle& run, RunFacts* facts);
  void AskHistory(const std::vector<agent::RunHandle>& runs, std::vector<RunFacts>* facts);
  void AskAccounting(const std::vector<RunFacts*>& facts, absl::Time since);
  void AskController(const std::vector<RunFacts*>& facts);
  std::string ReadSlurmOutput(const RunPaths& paths);

  // Constant after construction.
  const SlurmConfig config_;
  const std::unique_ptr<hosts::Host> host_;
  // For intervals and graces; what others are told has the time of day.
  const agent::SteadyTime time_;

  // Thread-safe by themselves.
  Commands commands_;
  const std::unique_ptr<Scheduler> scheduler_;
  ImageCache images_;
  RecordWatcher watcher_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, Track> tracks_;  // by run key
  GpuTypes gpu_types_;
  std::vector<v1::Pool> pools_;  // as they were last seen; empty before
  bool keeps_accounting_ = true;
  absl::Time last_queue_time_ = absl::InfinitePast();  // by time_
  absl::Duration last_queue_duration_;
  absl::Status last_queue_status_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_BACKEND_H_
