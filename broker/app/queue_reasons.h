// Says why jobs that are QUEUED have no cluster yet.
#ifndef MUSTER_BROKER_APP_QUEUE_REASONS_H_
#define MUSTER_BROKER_APP_QUEUE_REASONS_H_

#include <cstddef>
#include <vector>

#include "broker/app/answer_room.h"
#include "broker/app/services.h"
#include "broker/store/scope.h"
#include "muster/v1/job.pb.h"

namespace muster::broker {

// The specs that jobs have, if they have any.
enum class SpecsRead { kWhole, kInPart };

// One answer explains at most this many different jobs, as each is checked against all clusters.
inline constexpr size_t kMaxExplained = 20;
// One answer looks at no more jobs than this that others depend on, as each costs a read.
inline constexpr size_t kMaxLookedUp = 2'000;

// One answer reads the runs of no more jobs than this, at about 0.1 ms each. Jobs behind them that
// had runs get no reason.
inline constexpr size_t kMaxRunsRead = 500;

// Adds the reason to those of `jobs` that wait for a cluster or for other jobs, but not to jobs
// that are held or wait for the time of their next run. Jobs that are alike wait for the same
// reason. Once kMaxExplained different ones are explained, other jobs get no reason. Call it on a
// thread that may read the store, which has the specs of jobs that come without one. `scope` is the
// caller's.
void AddQueueReasons(const Services& services, const store::Scope& scope,
                     const std::vector<v1::Job*>& jobs, AnswerRoom& room,
                     SpecsRead specs = SpecsRead::kWhole);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_QUEUE_REASONS_H_
