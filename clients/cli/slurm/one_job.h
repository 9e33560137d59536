// Looks at one job, and follows its steps.
#ifndef MUSTER_CLIENTS_CLI_SLURM_ONE_JOB_H_
#define MUSTER_CLIENTS_CLI_SLURM_ONE_JOB_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace muster::cli {

inline absl::StatusOr<v1::Job> GetOneJob(client::Client& client, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = client.GetJob(request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_job());
}

// All steps of the job, from its submit to its end or the deadline.
inline auto WatchOneJob(client::Client& client, uint64_t id, absl::Time deadline) {
  v1::WatchJobsRequest request;
  request.add_job_ids(id);
  request.mutable_beginning();
  request.set_until_terminal(true);
  return client.WatchJobs(request, deadline);
}

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_ONE_JOB_H_
