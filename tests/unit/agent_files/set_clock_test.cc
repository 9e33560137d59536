// Tests that nobody waits longer for files, or less long, if someone sets the clock of the agent's
// host.
#include "tests/unit/hosts/set_clock.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "agents/files/host_trees.h"
#include "agents/files/job_files.h"
#include "agents/hosts/local_host.h"
#include "agents/hosts/steady_now.h"
#include "gmock/gmock.h"
#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using hosts::SetClock;

// Somebody sets the clock while the broker is asked for the first time, in vain.
class SettingSource : public FakeSource {
 public:
  absl::Status Read(const std::string& sha256, uint64_t offset, absl::Duration patience,
                    const ByteSink& sink) override {
    patiences.push_back(patience);
    if (patiences.size() > 1) return FakeSource::Read(sha256, offset, patience, sink);
    SetClock(step);
    return absl::UnavailableError("the broker is away");
  }

  int64_t step = 0;
  std::vector<absl::Duration> patiences;
};

class SetClockTest : public FilesTest {
 protected:
  SetClockTest() {
    cache_.reset();
    absl::StatusOr<std::unique_ptr<FileCache>> cache =
        FileCache::Open(dir_ / "files", options_, &setting_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    setting_.Add("hello");
  }
  ~SetClockTest() override {
    SetClock(0);
    cache_.reset();  // before its source
  }

  SettingSource setting_;
};

TEST_F(SetClockTest, AStepForwardDoesNotEndTheWaitForFiles) {
  setting_.step = 3600;
  EXPECT_TRUE(FetchAll({Want("hello")}).ok()) << "the second try has time";
  ASSERT_EQ(setting_.patiences.size(), 2u);
  EXPECT_GT(setting_.patiences[1], absl::ZeroDuration());
}

TEST_F(SetClockTest, AStepBackDoesNotMakeTheWaitForFilesLonger) {
  setting_.step = -3600;
  EXPECT_TRUE(FetchAll({Want("hello")}).ok());
  ASSERT_EQ(setting_.patiences.size(), 2u);
  EXPECT_LE(setting_.patiences[1], setting_.patiences[0]);
}

TEST_F(SetClockTest, AStepForwardDoesNotEndTheSendingOfFiles) {
  v1::JobSpec spec;
  Bring(&setting_, Tree({File("a", "hello")}), "", &spec);
  const absl::StatusOr<LocalFiles> files = JobFiles(cache_.get()).Fetch(spec);
  ASSERT_TRUE(files.ok()) << files.status();
  hosts::LocalHost host;
  HostTrees trees(&host, dir_ / "host/files", cache_.get());
  const absl::StatusOr<std::string> sent = trees.Send(
      *files, TreeName::Of(files->tree), absl::Minutes(1), [](uint64_t) { SetClock(3600); });
  EXPECT_TRUE(sent.ok()) << sent.status();
}

}  // namespace
}  // namespace muster::uploads
