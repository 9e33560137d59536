// A small agent that drives any backend, for its tests on a real cluster.
#ifndef MUSTER_TESTS_INTEGRATION_BACKEND_DRIVER_H_
#define MUSTER_TESTS_INTEGRATION_BACKEND_DRIVER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"

namespace muster::driver {

// Far more than anything here takes on a busy machine.
inline constexpr absl::Duration kPatience = absl::Seconds(120);

// One run under test.
struct TestRun {
  agents::RunHandle handle;
  std::vector<v1::RunState> states;  // those that were seen, each once in a row
  agents::Observation last;
};

// Makes a spec that runs a shell script on one core.
v1::JobSpec ScriptSpec(const std::string& script);
// Makes a run with a key that no other one has.
TestRun NewRun(v1::JobSpec spec);
// Returns the tasks of one job array, with these batch scripts and ids, which rise; from 0 on.
std::vector<TestRun> NewArray(std::vector<v1::JobSpec> specs, std::vector<uint32_t> ids = {});
// Holds the same run, to be launched so that it does not start.
void Hold(TestRun* run);
// Launches it, and puts the id into the handle. Fails the test unless it is launched.
void Launch(agents::Backend& backend, TestRun* run);
// Asks until the answer is clear, as agents do: a run that claims its files at that moment is not
// found, nor absent. An outcome that is still unclear after kPatience is returned as it is.
agents::LaunchOutcome LaunchAgain(agents::Backend& backend, const TestRun& run);
agents::LookupOutcome LookUp(agents::Backend& backend, const TestRun& run);
// Observes all runs once.
absl::Status ObserveOnce(agents::Backend& backend, const std::vector<TestRun*>& runs);
// Observes until every run is in the state, or in a terminal one. Fails the test after kPatience.
void ObserveUntil(agents::Backend& backend, const std::vector<TestRun*>& runs, v1::RunState state);
void ObserveToEnd(agents::Backend& backend, const std::vector<TestRun*>& runs);
// Waits for a condition of the outside world. Fails the test after kPatience.
void WaitFor(const std::string& what, const std::function<bool()>& condition);

std::string ReadWhole(const std::string& path);
// Returns the output of the run.
std::string Output(agents::Backend& backend, const TestRun& run, uint32_t rank = 0,
                   v1::LogStream stream = v1::LOG_STREAM_STDOUT);

}  // namespace muster::driver

#endif  // MUSTER_TESTS_INTEGRATION_BACKEND_DRIVER_H_
