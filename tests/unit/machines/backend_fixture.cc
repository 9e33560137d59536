#include "tests/unit/machines/backend_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "agents/hosts/fd.h"
#include "agents/hosts/pidfd.h"
#include "agents/machines/run_records.h"
#include "contract/states.h"
#include "fmt/format.h"
#include "tests/unit/agents/one_run.h"

namespace muster::machines {

std::string RunKeyOf(int job) { return fmt::format("t{}-{}-1", getpid(), job); }

v1::JobSpec Script(const std::string& text) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_command()->set_script(text);
  return spec;
}

v1::JobSpec Program(const std::vector<std::string>& words) {
  v1::JobSpec spec = Script("");
  for (const std::string& word : words) spec.mutable_command()->mutable_argv()->add_args(word);
  return spec;
}

BackendTest::BackendTest() {
  config_.cluster = "test";
  config_.cpus = 2;
  config_.memory_bytes = 1 << 30;
  config_.gpus.emplace();
  config_.cancel_grace = absl::Seconds(30);
  config_.container_runtime = kNoContainers;
}

BackendTest::~BackendTest() {
  if (backend_ == nullptr) return;
  // Nothing that a test started outlives it.
  for (auto& [run_key, handle] : handles_) {
    if (contract::IsTerminal(handle.state)) continue;
    (void)EndOne(*backend_, handle);
    AwaitEnd(run_key);
  }
  // The backend goes before the objects that its waker touches.
  backend_.reset();
}

void BackendTest::StartBackend() {
  StartBackendWithoutBroker();
  if (backend_ != nullptr) backend_->capabilities().allow_starts();
}

void BackendTest::StartBackendWithoutBroker() {
  backend_.reset();
  absl::StatusOr<std::unique_ptr<agents::Backend>> backend =
      CreateMachinesBackend(config_, dir_.path());
  ASSERT_TRUE(backend.ok()) << backend.status();
  backend_ = *std::move(backend);
  backend_->SetWaker([this] {
    const std::lock_guard lock(mutex_);
    wake_ = true;
    woken_.notify_all();
  });
  ASSERT_TRUE(backend_->Adopt(Handles()).ok());
}

std::vector<agents::RunHandle> BackendTest::Handles() const {
  std::vector<agents::RunHandle> handles;
  for (const auto& [run_key, handle] : handles_) handles.push_back(handle);
  return handles;
}

agents::LaunchOutcome BackendTest::Launch(const std::string& run_key, const v1::JobSpec& spec) {
  auto assignment = std::make_shared<agent::v1::Assignment>();
  assignment->set_run_key(run_key);
  assignment->set_job_id(next_job_);
  assignment->set_run(1);
  *assignment->mutable_spec() = spec;
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, *assignment);
  if (outcome.kind == agents::LaunchOutcome::Kind::kLaunched) {
    agents::RunHandle& handle = handles_[run_key];
    handle.run_key = run_key;
    handle.assignment = assignment;
    handle.launch_time = absl::Now();
    if (handle.state == v1::RUN_STATE_UNSPECIFIED) handle.state = v1::RUN_STATE_PENDING;
  }
  return outcome;
}

std::string BackendTest::Submit(const v1::JobSpec& spec) {
  const std::string run_key = RunKeyOf(next_job_);
  const agents::LaunchOutcome outcome = Launch(run_key, spec);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.failure.message();
  ++next_job_;
  return run_key;
}

void BackendTest::Cancel(const std::string& run_key) {
  const absl::Status status = EndOne(*backend_, handles_[run_key]);
  EXPECT_TRUE(status.ok()) << status;
}

agents::Observation BackendTest::Await(
    const std::string& run_key, const std::function<bool(const agents::Observation&)>& condition) {
  // Tests set the clock, and absl's goes on guessing by the one before for seconds after that.
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
  agents::Observation last;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const agents::Observation& seen : backend_->Observe({handles_[run_key]}).observations) {
      last = seen;
      handles_[run_key].state = seen.state;
      if (condition(seen)) return seen;
    }
    std::unique_lock lock(mutex_);
    // Other reports come with the next full one.
    woken_.wait_for(lock, std::chrono::milliseconds(200), [this] { return wake_; });
    wake_ = false;
  }
  ADD_FAILURE() << run_key << " is " << contract::Name(last.state) << " after a long time, "
                << last.reason.message() << last.evidence.detail();
  return last;
}

agents::Observation BackendTest::AwaitState(const std::string& run_key, v1::RunState state) {
  return Await(run_key, [state](const agents::Observation& seen) {
    return seen.state == state || contract::IsTerminal(seen.state);
  });
}

agents::Observation BackendTest::AwaitReason(const std::string& run_key, const std::string& part) {
  return Await(run_key, [&part](const agents::Observation& seen) {
    return seen.reason.message().find(part) != std::string::npos ||
           contract::IsTerminal(seen.state);
  });
}

agents::Observation BackendTest::AwaitEnd(const std::string& run_key) {
  return Await(run_key,
               [](const agents::Observation& seen) { return contract::IsTerminal(seen.state); });
}

std::string BackendTest::Stdout(const std::string& run_key) const {
  return ReadAll(RunDir(run_key) + "/stdout");
}

std::string BackendTest::Gate(const std::string& name) {
  EXPECT_EQ(mkfifo((dir_ / name).c_str(), 0600), 0);
  return dir_ / name;
}

void BackendTest::Open(const std::string& gate) {
  // Waits for a reader.
  const hosts::Fd fd(open(gate.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(fd.valid());
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsAlive(pid_t pid) {
  const hosts::Fd pidfd(hosts::PidfdOpen(pid));
  pollfd fd = {pidfd.get(), POLLIN, 0};
  return pidfd.valid() && poll(&fd, 1, 0) == 0;
}

bool AwaitDeath(pid_t pid) {
  const hosts::Fd pidfd(hosts::PidfdOpen(pid));
  pollfd fd = {pidfd.get(), POLLIN, 0};
  return !pidfd.valid() ||
         poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) == 1;
}

}  // namespace muster::machines
