// A real Slurm cluster for tests, and a small agent that drives the backend on it.
#ifndef MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_
#define MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/slurm/slurm.h"
#include "tests/integration/slurm/root_helper.h"

namespace muster::slurm {

// The one user that agent and jobs have; slurm-cluster.sh makes it.
inline constexpr char kTestUser[] = "slurmtest";
// Far more than anything here takes on a busy machine.
inline constexpr absl::Duration kPatience = absl::Seconds(120);

RootHelper& Root();

// With MUSTER_TEST_OVER_SSH in the environment backends reach the cluster through its sshd; with
// MUSTER_TEST_OVER_REST they drive it through its slurmrestd.
class TestCluster {
 public:
  // Starts it; `options` are those of `slurm-cluster.sh up`.
  explicit TestCluster(const std::string& options);
  ~TestCluster();

  const std::string& directory() const { return directory_; }
  std::string runs() const { return directory_ + "/runs"; }
  // slurm-cluster.sh VERB DIRECTORY ARGUMENTS. Fails the test if that fails.
  void Control(const std::string& verb, const std::string& arguments = "");
  // A Slurm command as root; its output.
  std::string AsRoot(const std::string& command);
  SlurmConfig Config() const;
  bool is_over_rest() const { return is_over_rest_; }
  std::unique_ptr<agent::Backend> MakeBackend() const { return MakeBackend(Config()); }
  std::unique_ptr<agent::Backend> MakeBackend(const SlurmConfig& config) const;

 private:
  std::string RestUrl() const;
  // The second of two login hosts; the first one is down.
  std::unique_ptr<hosts::Host> MakeSshHost() const;

  const bool is_over_ssh_;
  const bool is_over_rest_;
  const bool has_accounting_;
  std::string directory_;
};

// One run under test.
struct TestRun {
  agent::RunHandle handle;
  std::vector<v1::RunState> states;  // those that were seen, each once in a row
  agent::Observation last;
};

// A spec that runs a shell script on one core.
v1::JobSpec ScriptSpec(const std::string& script);
// A run with a key that no other one has.
TestRun NewRun(v1::JobSpec spec);
// Launches; the id goes into the handle. Fails the test unless it is launched.
void Launch(agent::Backend& backend, TestRun* run);
// Observes all runs once.
absl::Status ObserveOnce(agent::Backend& backend, const std::vector<TestRun*>& runs);
// Observes until every run is in the state, or in a terminal one. Fails the test after kPatience.
void ObserveUntil(agent::Backend& backend, const std::vector<TestRun*>& runs, v1::RunState state);
void ObserveToEnd(agent::Backend& backend, const std::vector<TestRun*>& runs);
// Waits for a condition of the outside world. Fails the test after kPatience.
void WaitFor(const std::string& what, const std::function<bool()>& condition);

std::string ReadWhole(const std::string& path);
// What the run wrote.
std::string Output(agent::Backend& backend, const TestRun& run, uint32_t rank = 0,
                   v1::LogStream stream = v1::LOG_STREAM_STDOUT);

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_
