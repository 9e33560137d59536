// Lets calls that one caller makes in a burst share a record. Pure.
#ifndef MUSTER_BROKER_AUDIT_SHARED_RECORD_H_
#define MUSTER_BROKER_AUDIT_SHARED_RECORD_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "broker/audit/record.h"

namespace muster::audit {

// Bytes of the text of jobs in a record.
inline constexpr size_t kMaxJobsBytes = 2048;

// Adds the jobs of the call to `last` if both differ in their jobs and times alone, and if there is
// room. False: it needs a record of its own.
bool Share(const Record& call, Record* last);

// Adds jobs "5-7" to jobs "3,4": "3,4-7". They stay in the order in which they came.
void AddJobs(std::string_view more, std::string* jobs);

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_SHARED_RECORD_H_
