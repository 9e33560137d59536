// A job as Slurm's users know jobs: its state, reason and times in Slurm's words. Pure, except for
// the time zone of the process, in which Slurm shows times.
#ifndef MUSTER_CLIENTS_CLI_SLURM_JOB_RECORD_H_
#define MUSTER_CLIENTS_CLI_SLURM_JOB_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "contract/task_array.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {

struct JobRecord {
  // The job with its spec, and its runs if they were asked for. Never null. A record is moved when
  // records are sorted; the job stays where it was read.
  std::shared_ptr<const v1::Job> kept;
  std::optional<contract::ArrayTask> task;  // its place in its array, if it is a task of one
  // The choices of Slurm, else what the job names; empty: not known before a cluster is chosen.
  std::string partition, account, qos;
  std::optional<absl::Duration> time_limit;  // none: no limit, or not known
  bool is_on_slurm = false;                  // its cluster is known, and of Slurm

  const v1::Job& job() const { return *kept; }
  // The latest run; null: none, or they were not asked for.
  const v1::Run* run() const;
};

// Fills in what the job leaves to its cluster, which may be null.
JobRecord MakeRecord(std::shared_ptr<const v1::Job> job, const v1::Cluster* cluster);

// "42_5" for task 5 of array 42, "42" for others.
std::string NameOf(const JobRecord& record);

// "PENDING", "TIMEOUT" and its code "PD", "TO".
std::string_view StateWord(const JobRecord& record);
std::string_view StateCode(std::string_view word);
// A state of Slurm's by its name or code in any case; empty: there is none of that name.
std::string_view FindState(std::string_view name);
bool IsActiveState(std::string_view word);
// The words, a sentence's list.
std::string StateWords();

// Slurm's own number; empty: it has none, or is not on Slurm.
std::string SlurmNumber(const JobRecord& record);

// The reason that it waits in Slurm's or Kubernetes' own word: "Resources", "Unschedulable";
// "MusterQueue" while no cluster has it, "SeeMusterWhy" if the reason is a sentence. The reason of
// a job that has ended tells its end: "NonZeroExitCode". kNoReason if there is nothing to say.
inline constexpr std::string_view kNoReason = "None";
std::string ReasonWord(const JobRecord& record);

// Returns the time at which its present run started, also if it has ended. Zero: it waits for its
// first or next run, or that has not started.
google::protobuf::Timestamp StartedAt(const JobRecord& record);
bool HasStarted(const JobRecord& record);
// Returns the time that that run has run.
absl::Duration Elapsed(const JobRecord& record, absl::Time now);
// "1-02:03:04", "2:03:04", "3:04" as squeue; with two digits for hours as sacct ("00:03:04").
std::string SqueueTime(absl::Duration duration);
std::string SacctTime(absl::Duration duration);
// Processor time as sacct has it: "01:02.345" below an hour, without a fraction "00:01:02", else
// "1-02:03:04".
std::string CpuTimeText(absl::Duration time);
// Bytes as sacct has them, in the largest unit that leaves whole numbers or halves: "12412K",
// "200M", "95.50M"; "" for none.
std::string SacctBytes(uint64_t bytes);
// "2026-11-21T03:22:53" in the local time, or as the variable SLURM_TIME_FORMAT says: a format of
// strftime(3), or "relative" to today; `absent` if there is none.
std::string LocalTime(const google::protobuf::Timestamp& timestamp, std::string_view absent);
// Says the same in a format. `now` tells today.
std::string TimeText(absl::Time time, std::string_view format, absl::Time now);

// "3:0": exit code and signal.
std::string ExitCodeText(const JobRecord& record);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_JOB_RECORD_H_
