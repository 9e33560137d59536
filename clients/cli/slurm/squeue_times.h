// The times that squeue shows of a job and sorts by. Pure.
#ifndef MUSTER_CLIENTS_CLI_SLURM_SQUEUE_TIMES_H_
#define MUSTER_CLIENTS_CLI_SLURM_SQUEUE_TIMES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "clients/cli/slurm/job_record.h"

namespace muster::cli {

// The start; of a job that waits the expected one. Zero: nobody knows it.
google::protobuf::Timestamp StartOf(const JobRecord& record);
// The end, or the one that the start and the time limit lead to. Zero: nobody knows it.
google::protobuf::Timestamp EndOf(const JobRecord& record);
// The part of its time limit that it has left; nothing: it has no limit.
std::optional<absl::Duration> TimeLeft(const JobRecord& record, absl::Time now);

// The seconds of a column of times, by which squeue sorts; nothing: the letter has no times.
std::optional<int64_t> SecondsOf(char letter, const JobRecord& record, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_SQUEUE_TIMES_H_
