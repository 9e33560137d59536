// Sends signals to the programs of running jobs, by the agents of their clusters.
#ifndef MUSTER_BROKER_APP_SIGNAL_JOBS_H_
#define MUSTER_BROKER_APP_SIGNAL_JOBS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "muster/v1/signal_jobs.pb.h"

namespace muster::broker {

// One call has at most this many jobs, as the proto states: each is a question to an agent and a
// call of its scheduler.
inline constexpr int kMaxSignaledJobs = 100;
// An agent has this time for a signal: a call of its scheduler, or of each host of the run.
inline constexpr absl::Duration kSignalPatience = absl::Seconds(30);
// Questions about signals that an agent has at a time: they leave room for those of people.
inline constexpr int kSignalsAtATime = 4;

// The fate of the signal to one job. FAILED_PRECONDITION, NOT_RUNNING or SIGNALS_NOT_SENT;
// others are AskCluster's, and the agent's.
struct SentSignal {
  uint64_t job = 0;
  absl::Status status;
};
using SignalJobsDone = std::function<void(absl::StatusOr<std::vector<SentSignal>>)>;

// `done` is called once, on any thread, with one result for each id. INVALID_ARGUMENT; NOT_FOUND:
// some job is unknown, and no signal was sent. `client_deadline`: nobody waits for the answer after
// it. Does not block.
void SignalJobs(const Principal& principal, const Services& services,
                const v1::SignalJobsRequest& request, absl::Time client_deadline,
                SignalJobsDone done);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SIGNAL_JOBS_H_
