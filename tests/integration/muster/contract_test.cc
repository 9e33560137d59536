// Tests the common contract of backends on another broker, which has one cluster of this machine.
#include "tests/integration/backend/contract.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "agents/hosts/fd.h"
#include "agents/hosts/spawn.h"
#include "agents/muster/backend.h"
#include "fmt/format.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::driver {
namespace {

// A broker with an agent, as processes that end with the test program.
class RemoteBroker {
 public:
  RemoteBroker() {
    std::ofstream(directory_ / "broker.yaml") << "heartbeat_interval: 3s\n";
    std::ofstream(directory_ / "agent.yaml")
        << "machines:\n  cpus: 2\n  memory: 1Gi\n  gpus: {}\n  keep_work: 1m\n";
    Start({Binary("muster-broker"), "--state-dir", directory_ / "b", "--config",
           directory_ / "broker.yaml"});
    Start({Binary("muster-agent"), "--cluster", "box", "--kind", "machines", "--broker", address(),
           "--state-dir", directory_ / "a", "--config", directory_ / "agent.yaml"});
    WaitFor("the remote broker has its cluster", [this] { return HasCluster(); });
  }

  ~RemoteBroker() {
    for (const hosts::Child& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }

  std::string address() const { return "unix:" + (directory_ / "b/broker.sock"); }

 private:
  static std::string Binary(const std::string& name) {
    return std::filesystem::canonical("/proc/self/exe").parent_path() / name;
  }

  void Start(std::vector<std::string> argv) {
    const hosts::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const hosts::Fd log(
        open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    absl::StatusOr<hosts::Child> child = hosts::Spawn({.argv = std::move(argv),
                                                       .env = {"PATH=/usr/local/bin:/usr/bin:/bin"},
                                                       .stdin_fd = null.get(),
                                                       .stdout_fd = log.get(),
                                                       .stderr_fd = log.get(),
                                                       .new_session = true});
    ASSERT_TRUE(child.ok()) << child.status();
    children_.push_back(*std::move(child));
  }

  bool HasCluster() const {
    auto backend = remote::CreateRemoteBackend({.cluster = "probe", .address = address()});
    if (!backend.ok() || !(*backend)->Probe().ok()) return false;
    const absl::StatusOr<v1::Inventory> inventory = (*backend)->Inventory();
    return inventory.ok() && inventory->pools(0).available();
  }

  hosts::TempDir directory_;
  std::vector<hosts::Child> children_;
};

class RemotePlace : public Place {
 public:
  explicit RemotePlace(const RemoteBroker& broker) {
    config_.cluster = "far";
    config_.address = broker.address();
    // The end of a backend waits for its stream.
    config_.feed_length = absl::Milliseconds(300);
  }

  agents::Backend& backend() override { return *backend_; }

  void Restart(const std::vector<agents::RunHandle>& journal) override {
    backend_.reset();
    absl::StatusOr<std::unique_ptr<agents::Backend>> made = remote::CreateRemoteBackend(config_);
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
    ASSERT_TRUE(backend_->Adopt(journal).ok());
    AllowStarts(*backend_);
  }

  // The job stays in the remote broker's history.
  bool IsGone(const TestRun& run) override {
    return !static_cast<remote::RemoteBackend&>(*backend_).Knows(run.handle.run_key);
  }

 private:
  remote::RemoteConfig config_;
  std::unique_ptr<agents::Backend> backend_;
};

std::unique_ptr<Place> AnotherBroker() {
  static const RemoteBroker broker;
  auto place = std::make_unique<RemotePlace>(broker);
  place->Restart({});
  return place;
}

}  // namespace

// The launch that comes late: its submission finds the job that stands in its place.
TEST(RemoteFence, ARunThatIsFencedNeverBeginsWhenItsLaunchComesLate) {
  const std::unique_ptr<Place> place = AnotherBroker();
  TestRun run = NewRun(ScriptSpec("echo never"));
  const agents::FenceOutcome fence = place->backend().Fence(run.handle);
  ASSERT_EQ(fence.kind, agents::FenceOutcome::Kind::kNeverBegins) << fence.evidence.DebugString();
  Launch(place->backend(), &run);
  ObserveToEnd(place->backend(), {&run});
  EXPECT_EQ(run.handle.state, v1::RUN_STATE_CANCELED) << run.last.evidence.DebugString();
  EXPECT_FALSE(run.last.start_time.has_value());
  EXPECT_EQ(Output(place->backend(), run), "");
  EXPECT_EQ(place->backend().Fence(run.handle).kind, agents::FenceOutcome::Kind::kNeverBegins);
}

INSTANTIATE_TEST_SUITE_P(AnotherBroker, BackendContractTest, testing::Values(&AnotherBroker));
// The broker has one cluster of one node.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GangContractTest);

}  // namespace muster::driver
