// Tests what every backend does alike with a run, on a real cluster of its kind: its launch and its
// end, what it writes, cancels, holds, restarts of the agent and the clean-up, as
// agents/core/backend.h promises them. Tests of each kind have the rest: answers to people (Check,
// Describe, Plan, Inventory), a cluster that is away, which is another thing for each, and
// replicas. Time limits, which Slurm has by the minute, are in jobs/time-limit.yaml. Each kind's
// test program links muster_backend_contract and names its clusters:
//
//   INSTANTIATE_TEST_SUITE_P(Slurm, BackendContractTest, testing::Values(&MakeSlurmPlace));
#ifndef MUSTER_TESTS_INTEGRATION_BACKEND_CONTRACT_H_
#define MUSTER_TESTS_INTEGRATION_BACKEND_CONTRACT_H_

#include <memory>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/backend/driver.h"

namespace muster::driver {

// Holds a cluster, and the backend of an agent that has just been started. Its nodes have python3.
class Place {
 public:
  virtual ~Place() = default;
  virtual agents::Backend& backend() = 0;
  // The agent is started anew, with the runs of its journal.
  virtual void Restart(const std::vector<agents::RunHandle>& journal) = 0;
  // Leaves nothing on the cluster once a run of the spec is forgotten, and makes no file.
  virtual void LeaveNothing(v1::JobSpec* /*spec*/) {}
  virtual bool IsGone(const TestRun& run) = 0;
  // Matches the words about the output of a run that has written it and was canceled then.
  virtual testing::Matcher<std::string> OutputOfCanceled(const std::string& written) {
    return written;
  }
};

using MakePlace = std::unique_ptr<Place> (*)();

class BackendContractTest : public testing::TestWithParam<MakePlace> {
 protected:
  agents::Backend& backend() { return place_->backend(); }
  // Runs the job from launch to end.
  TestRun RunToEnd(v1::JobSpec spec);
  // Launches it, and waits until that is its output.
  TestRun RunUntil(v1::JobSpec spec, const std::string& output);
  // Waits until the backend proves that nothing of the run is left.
  void ProveItsEnd(const TestRun& run);

  const std::unique_ptr<Place> place_ = GetParam()();
};

// Needs a cluster with two nodes at least.
class GangContractTest : public BackendContractTest {};

}  // namespace muster::driver

#endif  // MUSTER_TESTS_INTEGRATION_BACKEND_CONTRACT_H_
