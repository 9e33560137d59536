// Puts the changed jobs into the answer to a call.
#ifndef MUSTER_BROKER_APP_SHOW_JOBS_H_
#define MUSTER_BROKER_APP_SHOW_JOBS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "broker/app/services.h"
#include "broker/store/store.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

// Puts in what is known of their clusters, and keeps the answer within kMaxPageBytes; jobs beyond
// that have only their number and state.
std::vector<v1::Job> ForAnswer(const Services& services, std::vector<v1::Job> jobs);

// Returns the jobs as they are now, in the order of the numbers. There is no error, because they
// are changed already: if `may_read` is false, or the store cannot be read, the jobs have only
// their numbers. Blocks if `may_read`.
std::vector<v1::Job> ShowJobs(const Services& services, const store::Scope& scope,
                              absl::Span<const uint64_t> ids, bool may_read);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SHOW_JOBS_H_
