// Says what a cluster's refusal of a run means to its job: another cluster may take it, and the one
// that refused is asked again later. Pure functions, for any thread.
//
// All of it is told by the job's runs, so that a broker that starts anew knows it, and readers need
// no word of the core's.
#ifndef MUSTER_PROTO_CONTRACT_LAUNCH_REFUSALS_H_
#define MUSTER_PROTO_CONTRACT_LAUNCH_REFUSALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// A cluster that has refused runs of a job.
struct RefusingCluster {
  std::string cluster;
  uint32_t run = 0;       // the number of the latest run that it refused
  uint32_t times = 0;     // runs that it refused
  bool passes = false;    // the cluster says that the cause passes
  absl::Time until = {};  // the job does not go there before

  friend bool operator==(const RefusingCluster&, const RefusingCluster&) = default;
};

// A cluster is asked again after so long, and twice as long after each further refusal: a limit on
// what others have there, a partition that is closed for now.
inline constexpr absl::Duration kAskedAgainIfItPasses = absl::Minutes(1);
// The same if somebody has to do something first: give the user an account, raise a limit.
inline constexpr absl::Duration kAskedAgain = absl::Hours(1);
// The longest waits: a cause that passes is gone by then, or will be at the next look; a cluster
// that was mended is used again within the other.
inline constexpr absl::Duration kLatestAskedAgainIfItPasses = absl::Minutes(10);
inline constexpr absl::Duration kLatestAskedAgain = absl::Hours(24);
// A job that clusters have refused so often fails with the next refusal: the fault is the job's.
// It bounds the job's runs and what is remembered of them.
inline constexpr uint32_t kMostRefusals = 64;

// True if the cluster has refused the run before it began, for a cause that another cluster need
// not have: its limits, its rules, its resources. False for causes that lie in the job.
bool MayGoElsewhere(const v1::Run& ended);

// Takes one more refused run into account.
void NoteRefusal(const v1::Run& refused, std::vector<RefusingCluster>* known);
// Returns the clusters that refused runs of the job, in the order of their first refusals. It has
// all its runs.
std::vector<RefusingCluster> RefusalsOf(const v1::Job& job);

// Returns the reason that the cluster does not have the job.
v1::StateReason RefusedThere(const RefusingCluster& refusing, const v1::Failure& failure);
// Returns the evidence of the step that puts the job into the queue again.
std::string GoesElsewhere(const v1::Run& refused, absl::Time until);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_LAUNCH_REFUSALS_H_
