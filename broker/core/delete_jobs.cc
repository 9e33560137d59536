// Deletes jobs that have been kept long enough.
#include <limits>

#include "broker/core/impl.h"

namespace muster::core {
namespace {

// A sequence that no edit was decided upon.
constexpr uint64_t kDeleted = std::numeric_limits<uint64_t>::max();

}  // namespace

void Core::Impl::On(DeleteJobs& in, Step& step) {
  for (const uint64_t id : in.jobs) {
    // The caller has read in the store that the job has ended; a number that was never given out
    // has not.
    if (id == 0 || id >= next_job_id_ || jobs_.contains(id)) continue;
    // An edit that was decided earlier has no effect, and the next look finds no such job.
    RememberEdit(id, kDeleted);
    step.out->changes.push_back(DeleteJob{id});
  }
  step.out->effects.push_back(StatusReply{.ticket = in.ticket});
}

}  // namespace muster::core
