// Jobs in the answer to a call that has changed them.
#ifndef MUSTER_BROKER_APP_SHOW_JOBS_H_
#define MUSTER_BROKER_APP_SHOW_JOBS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "broker/app/services.h"
#include "broker/store/store.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

// With what is known of their clusters, within kMaxPageBytes; of the jobs beyond no more than
// number and state.
std::vector<v1::Job> ForAnswer(const Services& services, std::vector<v1::Job> jobs);

// The jobs as they are now, in the order of the numbers. They are changed already, so there is no
// error: no more than their numbers if `may_read` is false, or the store cannot be read. Blocks
// if `may_read`.
std::vector<v1::Job> ShowJobs(const Services& services, const store::Scope& scope,
                              absl::Span<const uint64_t> ids, bool may_read);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SHOW_JOBS_H_
