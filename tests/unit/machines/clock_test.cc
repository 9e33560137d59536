// Someone sets the clock while the backend waits.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "agents/hosts/local_host.h"
#include "tests/unit/machines/backend_fixture.h"

namespace {

std::atomic<int64_t> clock_offset_s = 0;
std::atomic<int64_t> clock_jump_s = 0;  // added to the offset at each look at the clock

}  // namespace

// Replaces the C library's, for this whole program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += clock_offset_s.fetch_add(clock_jump_s);
  return result;
}

namespace muster::machines {
namespace {

constexpr int64_t kHour = 3600;

class ClockTest : public BackendTest {
 protected:
  ~ClockTest() override {
    clock_jump_s = 0;
    clock_offset_s = 0;
  }
};

TEST_F(ClockTest, ARunThatCouldNotStartIsTriedAgainThoughTheClockWasSetBack) {
  const std::string supervisor =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-supervisor";
  config_.supervisor_path = dir_ / "muster-supervisor";
  StartBackend();
  const std::string run_key = Submit(Program({"true"}));
  AwaitReason(run_key, "cannot start");
  clock_offset_s = -kHour;
  std::filesystem::create_symlink(supervisor, config_.supervisor_path);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(ClockTest, ACommandTimesOutThoughTheClockIsSetBackAllTheTime) {
  clock_jump_s = -kHour;
  hosts::LocalHost host;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      host.Run({.argv = {"sleep", "30"}, .timeout = absl::Milliseconds(100)}).status()));
}

TEST_F(ClockTest, ACommandIsNotTimedOutByAClockThatIsSetForward) {
  clock_jump_s = kHour;
  hosts::LocalHost host;
  EXPECT_TRUE(host.Run({.argv = {"true"}, .timeout = absl::Minutes(5)}).ok());
}

}  // namespace
}  // namespace muster::machines
