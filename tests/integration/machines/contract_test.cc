// Tests the common contract of backends on plain machines.
#include "tests/integration/backend/contract.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "agents/machines/machines.h"
#include "tests/integration/ssh/sshd.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::driver {
namespace {

class MachinesPlace : public Place {
 public:
  MachinesPlace() {
    config_.cluster = "test";
    config_.cpus = 2;
    config_.memory_bytes = 1 << 30;
    config_.gpus.emplace();
    config_.keep_finished_runs = 0;
  }

  agents::Backend& backend() override { return *backend_; }

  void Restart(const std::vector<agents::RunHandle>& journal) override {
    backend_.reset();
    absl::StatusOr<std::unique_ptr<agents::Backend>> made =
        machines::CreateMachinesBackend(config_, state_.path());
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
    ASSERT_TRUE(backend_->Adopt(journal).ok());
    AllowStarts(*backend_);
  }

  bool IsGone(const TestRun& run) override {
    return !std::filesystem::exists(state_ / ("runs/" + run.handle.run_key));
  }

 protected:
  machines::MachinesConfig config_;
  hosts::TempDir state_;
  std::unique_ptr<agents::Backend> backend_;
};

std::unique_ptr<Place> ThisMachine() {
  auto place = std::make_unique<MachinesPlace>();
  place->Restart({});
  return place;
}

// One sshd is both hosts, each with a directory of its own.
class HostsPlace : public MachinesPlace {
 public:
  HostsPlace() {
    config_.host_directory = home_ / "muster";
    for (const char* name : {"one", "two"}) {
      machines::HostConfig host = {.name = name, .address = "127.0.0.1", .ssh = Shared().Config()};
      host.cpus = 2;
      host.memory_bytes = 1 << 30;
      host.gpus.emplace();
      config_.hosts.push_back(std::move(host));
    }
  }

  bool IsGone(const TestRun& run) override {
    if (!MachinesPlace::IsGone(run)) return false;
    std::error_code vanished;  // while it is looked at
    for (std::filesystem::recursive_directory_iterator at(config_.host_directory, vanished), end;
         at != end; at.increment(vanished)) {
      if (at->path().filename() == run.handle.run_key) return false;
    }
    return !vanished;
  }

 private:
  static hosts::Sshd& Shared() {
    static hosts::Sshd sshd;
    return sshd;
  }

  hosts::TempDir home_;
};

std::unique_ptr<Place> HostsOverSsh() {
  auto place = std::make_unique<HostsPlace>();
  place->Restart({});
  return place;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(ThisMachine, BackendContractTest, testing::Values(&ThisMachine));
INSTANTIATE_TEST_SUITE_P(HostsOverSsh, BackendContractTest, testing::Values(&HostsOverSsh));
INSTANTIATE_TEST_SUITE_P(HostsOverSsh, GangContractTest, testing::Values(&HostsOverSsh));

}  // namespace muster::driver
