// A machines backend on real processes, and an agent's view of it.
#ifndef MUSTER_TESTS_UNIT_MACHINES_BACKEND_FIXTURE_H_
#define MUSTER_TESTS_UNIT_MACHINES_BACKEND_FIXTURE_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agents/core/backend.h"
#include "agents/machines/machines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::machines {

// Only a broken program takes so long.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// The key of a test's run. Two tests that run at the same time differ: what a run leaves behind is
// found, and killed, by its key.
std::string RunKeyOf(int job);

// Makes a job of one core that runs a shell script.
v1::JobSpec Script(const std::string& text);
v1::JobSpec Program(const std::vector<std::string>& words);

class BackendTest : public ::testing::Test {
 protected:
  BackendTest();
  ~BackendTest() override;

  void SetUp() override { StartBackend(); }
  // Starts the backend with the runs known so far, as after a restart of the agent.
  void StartBackend();
  // The same, but the broker has said nothing yet.
  void StartBackendWithoutBroker();
  void StopBackend() { backend_.reset(); }

  // Launches the run and expects that it is taken. Its run key.
  std::string Submit(const v1::JobSpec& spec);
  agents::LaunchOutcome Launch(const std::string& run_key, const v1::JobSpec& spec);
  void Cancel(const std::string& run_key);

  // Returns the first observation of the run that satisfies the condition; a test failure if none
  // does in time.
  agents::Observation Await(const std::string& run_key,
                            const std::function<bool(const agents::Observation&)>& condition);
  agents::Observation AwaitState(const std::string& run_key, v1::RunState state);
  agents::Observation AwaitReason(const std::string& run_key, const std::string& part);
  agents::Observation AwaitEnd(const std::string& run_key);
  // Runs the job from submit to end.
  agents::Observation RunToEnd(const v1::JobSpec& spec) { return AwaitEnd(Submit(spec)); }

  std::string RunDir(const std::string& run_key) const { return dir_ / ("runs/" + run_key); }
  std::string Stdout(const std::string& run_key) const;
  // Makes a named pipe; a script that does `cat GATE` waits there for Open.
  std::string Gate(const std::string& name);
  static void Open(const std::string& gate);

  hosts::TempDir dir_;
  MachinesConfig config_;
  std::unique_ptr<agents::Backend> backend_;
  std::map<std::string, agents::RunHandle> handles_;

 private:
  std::vector<agents::RunHandle> Handles() const;

  uint64_t next_job_ = 1;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;  // guarded by mutex_
};

std::string ReadAll(const std::string& path);
bool Exists(const std::string& path);
// Returns whether a process of this pid is there and is no zombie.
bool IsAlive(pid_t pid);
// Waits until it is not.
bool AwaitDeath(pid_t pid);

}  // namespace muster::machines

#endif  // MUSTER_TESTS_UNIT_MACHINES_BACKEND_FIXTURE_H_
