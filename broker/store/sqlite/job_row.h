// A row of table job as a message.
#ifndef MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_
#define MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_

#include <cstdint>
#include <string_view>

#include "broker/store/sqlite/database.h"
#include "muster/v1/job.pb.h"

namespace muster::store {

// What ReadJobRow expects, of table job named j.
inline constexpr std::string_view kJobColumns =
    "j.id, j.state, j.job_sequence, j.cancel_requested, j.runs, j.cluster, j.start_time,"
    " j.end_time, j.priority, j.create_time, j.name, j.project, j.user, j.labels,"
    " j.hold, j.retry_time, j.cluster_kind, j.failure_class, j.exit_code, j.rerun_of";

// Everything but spec and runs. Of what the latest run tells only what a filter looks at: the
// failure's class and the exit code. `job` must be empty.
void ReadJobRow(const Statement& row, v1::Job* job, uint32_t* runs);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_JOB_ROW_H_
