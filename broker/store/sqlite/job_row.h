// Reads a row of table job into a message.
#ifndef MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_
#define MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_

#include <cstdint>
#include <string_view>

#include "broker/store/sqlite/database.h"
#include "muster/v1/job.pb.h"

namespace muster::store {

// The columns that ReadJobRow expects, from table job named j.
inline constexpr std::string_view kJobColumns =
    "j.id, j.state, j.job_sequence, j.cancel_requested, j.runs, j.cluster, j.start_time,"
    " j.end_time, j.priority, j.create_time, j.name, j.project, j.user, j.labels,"
    " j.hold, j.retry_time, j.cluster_kind, j.failure_class, j.exit_code, j.rerun_of, "
    "j.failed_dependency, j.withdrawal";

// Fills in everything except spec and runs, and the failure of a job that has no run. From the
// latest run come only the failure's class and the exit code, which filters look at. `job` must be
// empty.
void ReadJobRow(const Statement& row, v1::Job* job, uint32_t* runs);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_
