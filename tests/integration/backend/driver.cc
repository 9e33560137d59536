#include "tests/integration/backend/driver.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/time/clock.h"
#include "agents/hosts/host.h"
#include "contract/states.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"

namespace muster::driver {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

template <typename Ask>
auto AskUntilClear(const Ask& ask, decltype(ask().kind) unclear) {
  const absl::Time deadline = absl::Now() + kPatience;
  auto outcome = ask();
  while (outcome.kind == unclear && absl::Now() < deadline) {
    absl::SleepFor(kPollInterval);
    outcome = ask();
  }
  return outcome;
}

}  // namespace

v1::JobSpec ScriptSpec(const std::string& script) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_command()->set_script(script);
  return spec;
}

TestRun NewRun(v1::JobSpec spec) {
  static std::atomic<uint64_t> last_job = 0;
  auto assignment = std::make_shared<agent::v1::Assignment>();
  assignment->set_job_id(++last_job);
  assignment->set_run(1);
  // Programs that run at the same time, on one machine, have runs of different names.
  assignment->set_run_key(fmt::format("t{}-{}-1", getpid(), assignment->job_id()));
  *assignment->mutable_spec() = std::move(spec);
  TestRun run;
  run.handle.run_key = assignment->run_key();
  run.handle.launch_time = absl::Now();
  run.handle.assignment = std::move(assignment);
  return run;
}

std::vector<TestRun> NewArray(std::vector<v1::JobSpec> specs, std::vector<uint32_t> ids) {
  const auto count = static_cast<uint32_t>(specs.size());
  for (uint32_t id = 0; ids.size() < count; ++id) ids.push_back(id);
  std::vector<TestRun> runs;
  for (v1::JobSpec& spec : specs) {
    const auto place = static_cast<uint32_t>(runs.size());
    spec.mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = ids[place],
                            .count = count,
                            .min_id = ids.front(),
                            .max_id = ids.back(),
                            .place = place},
                           &spec);
    runs.push_back(NewRun(std::move(spec)));
  }
  return runs;
}

void Hold(TestRun* run) {
  auto held = std::make_shared<agent::v1::Assignment>(*run->handle.assignment);
  held->set_held(true);
  run->handle.assignment = std::move(held);
  run->handle.held = true;
}

void Launch(agents::Backend& backend, TestRun* run) {
  const agents::LaunchOutcome outcome = LaunchOne(backend, *run->handle.assignment);
  ASSERT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched)
      << outcome.evidence.DebugString() << outcome.failure.DebugString();
  run->handle.external_id = outcome.external_id;
}

agents::LaunchOutcome LaunchAgain(agents::Backend& backend, const TestRun& run) {
  return AskUntilClear([&] { return LaunchOne(backend, *run.handle.assignment); },
                       agents::LaunchOutcome::Kind::kUnclear);
}

agents::LookupOutcome LookUp(agents::Backend& backend, const TestRun& run) {
  return AskUntilClear([&] { return backend.Lookup(run.handle); },
                       agents::LookupOutcome::Kind::kCouldNotAsk);
}

absl::Status ObserveOnce(agents::Backend& backend, const std::vector<TestRun*>& runs) {
  std::vector<agents::RunHandle> handles;
  for (const TestRun* run : runs) handles.push_back(run->handle);
  const agents::ObserveOutcome outcome = backend.Observe(handles);
  for (const agents::Observation& seen : outcome.observations) {
    for (TestRun* run : runs) {
      if (run->handle.run_key != seen.run_key || contract::IsTerminal(run->handle.state)) continue;
      EXPECT_NE(seen.evidence.source(), v1::EVIDENCE_SOURCE_UNSPECIFIED)
          << seen.run_key << ' ' << contract::Name(seen.state);
      if (run->states.empty() || run->states.back() != seen.state)
        run->states.push_back(seen.state);
      run->handle.state = seen.state;
      run->handle.external_id = seen.external_id;
      run->last = seen;
    }
  }
  return outcome.scheduler;
}

void ObserveUntil(agents::Backend& backend, const std::vector<TestRun*>& runs, v1::RunState state) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const absl::Status status = ObserveOnce(backend, runs);
    EXPECT_TRUE(status.ok()) << status;
    bool all = true;
    for (const TestRun* run : runs) {
      const bool there = state != v1::RUN_STATE_UNSPECIFIED && run->handle.state == state;
      all = all && (there || contract::IsTerminal(run->handle.state));
    }
    if (all) return;
    absl::SleepFor(kPollInterval);
  }
  for (const TestRun* run : runs) {
    ADD_FAILURE() << run->handle.run_key << " is still " << contract::Name(run->handle.state)
                  << "\n"
                  << run->last.evidence.DebugString();
  }
}

void ObserveToEnd(agents::Backend& backend, const std::vector<TestRun*>& runs) {
  ObserveUntil(backend, runs, v1::RUN_STATE_UNSPECIFIED);
}

void WaitFor(const std::string& what, const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > deadline) {
      ADD_FAILURE() << "waited in vain: " << what;
      return;
    }
    absl::SleepFor(kPollInterval);
  }
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Output(agents::Backend& backend, const TestRun& run, uint32_t rank,
                   v1::LogStream stream) {
  for (const agents::LogSource& source : backend.OpenLogs(run.handle).logs) {
    if (source.rank != rank || source.stream != stream) continue;
    hosts::Host* const host = backend.capabilities().output_host;
    if (host == nullptr) return ReadWhole(source.path);
    // Empty, too, as long as the run has not started.
    return host->ReadFile(source.path, hosts::kMaxReadBytes).value_or("");
  }
  ADD_FAILURE() << "rank " << rank << " has no log";
  return {};
}

}  // namespace muster::driver
