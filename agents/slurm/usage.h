// Reads the counts of Slurm's accounting for jobs: what sacct is asked, and what it answers.
#ifndef MUSTER_AGENTS_SLURM_USAGE_H_
#define MUSTER_AGENTS_SLURM_USAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/slurm/job_id.h"
#include "muster/v1/job.pb.h"

namespace muster::slurm {

// One job, or one task of an array, with all its steps.
struct UsageRow {
  JobId job_id;
  std::string name;
  bool has_ended = false;  // it and all its steps: the numbers are the last ones
  absl::Duration user_cpu;
  absl::Duration system_cpu;
  uint64_t max_rss_bytes = 0;  // the most of any step; 0: no sample was taken

  // Returns nothing if nobody counts there (JobAcctGatherType=jobacct_gather/none), or if there was
  // nothing to count.
  std::optional<v1::ResourceUsage> Usage() const;
};

// Asks about at most kMaxIdsPerHistoryCall jobs; about tasks by the whole of their array. Steps are
// asked for, too: only they have MaxRSS, and without them sacct counts no processor time either.
std::vector<std::string> UsageArguments(const std::vector<JobId>& ids, absl::Time since);
// INTERNAL with the line if one cannot be read.
absl::StatusOr<std::vector<UsageRow>> ParseUsage(std::string_view output);

// Reads "1-02:03:04", "02:03:04", "03:04.567". Nothing if it is none.
std::optional<absl::Duration> ParseCpuTime(std::string_view text);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_USAGE_H_
