// A real Slurm cluster for tests.
#ifndef MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_
#define MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_

#include <memory>
#include <string>

#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/slurm/slurm.h"
#include "tests/integration/backend/driver.h"
#include "tests/integration/slurm/root_helper.h"

namespace muster::slurm {

// Agent and jobs have this one user; slurm-cluster.sh makes it.
inline constexpr char kTestUser[] = "slurmtest";
RootHelper& Root();
// Returns the directory of the Slurm that MUSTER_TEST_SLURM names; empty means the machine's own.
const std::string& SlurmPrograms();

// The cluster of a test. Backends reach it through its sshd if MUSTER_TEST_OVER_SSH is in the
// environment; they drive it through its slurmrestd if MUSTER_TEST_OVER_REST is.
class TestCluster {
 public:
  // Starts it; `options` are those of `slurm-cluster.sh up`.
  explicit TestCluster(const std::string& options);
  ~TestCluster();

  const std::string& directory() const { return directory_; }
  std::string runs() const { return directory_ + "/runs"; }
  // Runs slurm-cluster.sh VERB DIRECTORY ARGUMENTS. Fails the test if that fails.
  void Control(const std::string& verb, const std::string& arguments = "");
  // Runs a Slurm command as root, and returns its output.
  std::string AsRoot(const std::string& command);
  SlurmConfig Config() const;
  bool is_over_rest() const { return is_over_rest_; }
  // Tells whether backends go over a slurmrestd that speaks v0.0.40 or later. It does not tell
  // flags of partitions, and needs slurmdbd where there is one.
  bool has_typed_rest() const { return is_over_rest_ && !SlurmPrograms().empty(); }
  std::unique_ptr<agents::Backend> MakeBackend() const { return MakeBackend(Config()); }
  std::unique_ptr<agents::Backend> MakeBackend(const SlurmConfig& config) const;

 private:
  std::string RestUrl() const;
  // Makes the second of two login hosts, of which the first is down.
  std::unique_ptr<hosts::Host> MakeSshHost() const;

  const bool is_over_ssh_;
  const bool is_over_rest_;
  const bool has_accounting_;
  std::string directory_;
};

// Returns two nodes with four GPUs each and accounting, which forget ended jobs after five seconds;
// made when first asked for.
TestCluster& SharedCluster();

using driver::Launch;
using driver::LaunchAgain;
using driver::LookUp;
using driver::NewArray;
using driver::NewRun;
using driver::ObserveOnce;
using driver::ObserveToEnd;
using driver::ObserveUntil;
using driver::Output;
using driver::ReadWhole;
using driver::ScriptSpec;
using driver::TestRun;
using driver::WaitFor;

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_INTEGRATION_SLURM_TEST_CLUSTER_H_
