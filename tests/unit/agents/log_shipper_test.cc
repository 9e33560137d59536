#include "agents/core/log_shipper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <set>

#include "agents/hosts/local_host.h"
#include "tests/unit/agents/eventually.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

std::string NameOf(const std::string& run_key, v1::LogStream stream) {
  return run_key + (stream == v1::LOG_STREAM_STDERR ? "/err" : "/out");
}

struct Log {
  std::string bytes;
  bool complete = false;
};
struct ArchiveState {
  std::map<std::string, Log> logs;
  std::vector<std::string> order;  // of chunks with data
  int hellos = 0;
  bool holds_answers = false;
  std::deque<int> lives;  // of the next links: so many chunks until they break
  std::set<std::string> shipped;
  size_t most_in_one_look = 0;
};

// An archive in memory, and links to it.
class FakeLink : public PushLink {
 public:
  FakeLink(Shared<ArchiveState>* archive, Callbacks callbacks)
      : archive_(*archive), callbacks_(std::move(callbacks)) {
    archive_.With([this](ArchiveState& state) {
      if (state.lives.empty()) return;
      life_ = state.lives.front();
      state.lives.pop_front();
    });
  }

  bool Send(const agent::v1::PushRequest& request) override {
    if (broken_) return true;
    if (request.has_hello()) {
      archive_.With([](ArchiveState& state) { ++state.hellos; });
      return true;
    }
    const agent::v1::LogChunk& chunk = request.chunk();
    agent::v1::PushResponse answer;
    answer.set_run_key(chunk.run_key());
    answer.set_rank(chunk.rank());
    answer.set_stream(chunk.stream());
    const bool answers = archive_.With([&](ArchiveState& state) {
      broken_ = life_-- == 0;
      if (broken_) return false;
      const std::string name = NameOf(chunk.run_key(), chunk.stream());
      Log& log = state.logs[name];
      if (!chunk.data().empty()) state.order.push_back(name);
      if (chunk.offset() <= log.bytes.size() &&
          chunk.offset() + chunk.data().size() > log.bytes.size()) {
        log.bytes.replace(chunk.offset(), std::string::npos, chunk.data());
      }
      if (chunk.end() && log.bytes.size() == chunk.offset() + chunk.data().size()) {
        log.complete = true;
      }
      answer.set_next_offset(log.bytes.size());
      answer.set_complete(log.complete);
      return !state.holds_answers;
    });
    if (broken_) callbacks_.on_end(absl::UnavailableError("broken"));
    if (answers) callbacks_.on_answer(answer);
    return true;
  }

 private:
  Shared<ArchiveState>& archive_;
  const Callbacks callbacks_;
  int life_ = -1;
  bool broken_ = false;
};

// Tells how many logs were looked at together.
class CountingHost : public hosts::LocalHost {
 public:
  explicit CountingHost(Shared<ArchiveState>* archive) : archive_(*archive) {}

  std::vector<absl::StatusOr<hosts::FileInfo>> StatMany(
      const std::vector<std::string>& paths) override {
    archive_.With([&](ArchiveState& state) {
      state.most_in_one_look = std::max(state.most_in_one_look, paths.size());
    });
    return LocalHost::StatMany(paths);
  }

 private:
  Shared<ArchiveState>& archive_;
};

// Tests with logs on this machine, and on a host.
class LogShipperTest : public testing::TestWithParam<bool> {
 protected:
  LogShipperTest() { Start(); }

  void Start() {
    LogShipperOptions options;
    options.min_backoff = absl::Milliseconds(1);
    options.remote_poll = absl::Milliseconds(20);
    shipper_.reset();
    shipper_ = std::make_unique<LogShipper>(
        options, LogShipper::Environment{
                     .dial = [this](PushLink::Callbacks callbacks) -> std::unique_ptr<PushLink> {
                       return std::make_unique<FakeLink>(&archive_, std::move(callbacks));
                     },
                     .sources = [this](const RunHandle& run) -> std::vector<LogSource> {
                       return {{0, v1::LOG_STREAM_STDOUT, Path(run.run_key, "out")},
                               {0, v1::LOG_STREAM_STDERR, Path(run.run_key, "err")}};
                     },
                     .shipped =
                         [this](const std::string& key) {
                           archive_.With([&](ArchiveState& state) { state.shipped.insert(key); });
                         },
                     .host = GetParam() ? &host_ : nullptr});
  }
  void Connect() { shipper_->Connect("here", "journal-1"); }

  std::string Path(const std::string& key, const std::string& stream) const {
    return dir_.path() + "/" + key + "." + stream;
  }
  void Write(const std::string& key, std::string_view bytes, const std::string& stream = "out") {
    std::ofstream(Path(key, stream), std::ios::app) << bytes;
  }
  static RunHandle Handle(const std::string& key) {
    RunHandle run;
    run.run_key = key;
    return run;
  }
  void Ship(const std::string& key, bool ended) { shipper_->Ship(Handle(key), ended); }
  bool EventuallyHas(const std::string& name, const std::string& bytes) {
    return archive_.Eventually(
        [&](ArchiveState& state) { return state.logs[name].bytes == bytes; });
  }
  bool EventuallyShipped(const std::string& key) {
    return archive_.Eventually([&](ArchiveState& state) { return state.shipped.contains(key); });
  }

  hosts::TempDir dir_;
  Shared<ArchiveState> archive_;
  CountingHost host_{&archive_};
  std::unique_ptr<LogShipper> shipper_;
};

INSTANTIATE_TEST_SUITE_P(Where, LogShipperTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OnAHost" : "Here"; });

TEST_P(LogShipperTest, BytesFollowTheFileAndTheEndFollowsTheRun) {
  Connect();
  Ship("a", false);
  Write("a", "one ");
  ASSERT_TRUE(EventuallyHas("a/out", "one "));
  Write("a", "two");
  ASSERT_TRUE(EventuallyHas("a/out", "one two"));
  EXPECT_FALSE(archive_.With([](ArchiveState& state) { return state.shipped.contains("a"); }));
  Ship("a", true);
  ASSERT_TRUE(EventuallyShipped("a"));
  archive_.With([](ArchiveState& state) {
    EXPECT_TRUE(state.logs["a/out"].complete);
    EXPECT_TRUE(state.logs["a/err"].complete);
    EXPECT_EQ(state.logs["a/err"].bytes, "");
  });
}

TEST_P(LogShipperTest, NothingIsSentWithoutAConnectionAndAllOfItAfterwards) {
  Write("a", "text");
  Ship("a", true);
  Connect();
  ASSERT_TRUE(EventuallyShipped("a"));
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.logs["a/out"].bytes; }), "text");
}

TEST_P(LogShipperTest, ABrokenStreamGoesOnWhereTheArchiveIs) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  Write("a", text);
  archive_.With([](ArchiveState& state) { state.lives = {0, 1, 2, 3, 5}; });
  Connect();
  Ship("a", false);
  Ship("a", true);
  ASSERT_TRUE(EventuallyShipped("a"));
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.logs["a/out"].bytes; }), text);
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.hellos; }), 6);
}

TEST_P(LogShipperTest, AnotherProcessGoesOnWhereTheArchiveIs) {
  Connect();
  Write("a", "one ");
  Ship("a", false);
  ASSERT_TRUE(EventuallyHas("a/out", "one "));
  Start();
  Write("a", "two");
  Connect();
  Ship("a", true);
  ASSERT_TRUE(EventuallyShipped("a"));
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.logs["a/out"].bytes; }),
            "one two");
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.order; }).size(), 2)
      << "no byte was sent twice";
}

TEST_P(LogShipperTest, AHugeLogDoesNotHoldUpAShortOne) {
  Write("huge", std::string(64 << 20, 'x'));
  Write("short", "text");
  Ship("huge", false);
  Ship("short", false);
  Connect();
  ASSERT_TRUE(EventuallyHas("short/out", "text"));
  const std::vector<std::string> order = archive_.With([](ArchiveState& s) { return s.order; });
  const auto place = std::find(order.begin(), order.end(), "short/out") - order.begin();
  EXPECT_LT(place, 10);
}

TEST_P(LogShipperTest, AStalledLogLeavesRoomForOthers) {
  Write("huge", std::string(64 << 20, 'x'));
  archive_.With([](ArchiveState& state) { state.holds_answers = true; });
  Connect();
  Ship("huge", false);
  ASSERT_TRUE(archive_.Eventually([](ArchiveState& s) { return s.logs.contains("huge/out"); }));
  archive_.With([](ArchiveState& state) { state.holds_answers = false; });
  Write("short", "text");
  Ship("short", false);
  EXPECT_TRUE(EventuallyHas("short/out", "text"));
}

TEST_P(LogShipperTest, ADroppedRunIsNeitherSentNorReported) {
  Connect();
  Ship("a", false);
  Write("a", "one");
  ASSERT_TRUE(EventuallyHas("a/out", "one"));
  shipper_->Drop("a");
  Write("b", "two");
  Ship("b", true);
  ASSERT_TRUE(EventuallyShipped("b"));
  EXPECT_FALSE(archive_.With([](ArchiveState& state) { return state.shipped.contains("a"); }));
}

TEST_P(LogShipperTest, ThousandsOfLogsNeedFewDescriptors) {
  Connect();
  constexpr int kRuns = 1000;
  for (int i = 0; i < kRuns; ++i) {
    Write(std::to_string(i), "text");
    Ship(std::to_string(i), false);
  }
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(EventuallyHas(std::to_string(i) + "/out", "text"));
  int open = 0;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator("/proc/self/fd"))
    ++open;
  EXPECT_LT(open, 400);
  for (int i = 0; i < kRuns; ++i) Ship(std::to_string(i), true);
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(EventuallyShipped(std::to_string(i)));
}

TEST_P(LogShipperTest, AnUnreadableLogWaitsForItsCureAndLosesNothing) {
  std::filesystem::create_directory(Path("a", "out"));
  Connect();
  Ship("a", true);
  Write("b", "two");
  Ship("b", true);
  ASSERT_TRUE(EventuallyShipped("b"));
  EXPECT_FALSE(archive_.With([](ArchiveState& state) { return state.shipped.contains("a"); }));
  // The change comes in one step: without the log in between, or with an empty one, it would be
  // whole as it is.
  Write("cure", "one");
  ASSERT_EQ(renameat2(AT_FDCWD, Path("cure", "out").c_str(), AT_FDCWD, Path("a", "out").c_str(),
                      RENAME_EXCHANGE),
            0);
  ASSERT_TRUE(EventuallyShipped("a"));
  EXPECT_EQ(archive_.With([](ArchiveState& state) { return state.logs["a/out"].bytes; }), "one");
}

class LogShipperOnAHostTest : public LogShipperTest {};

INSTANTIATE_TEST_SUITE_P(Where, LogShipperOnAHostTest, testing::Values(true));

TEST_P(LogShipperOnAHostTest, AThousandLogsAreLookedAtTogether) {
  constexpr int kRuns = 500;  // of two logs each
  Connect();
  for (int i = 0; i < kRuns; ++i) {
    const std::string key = "k-" + std::to_string(i);
    Write(key, key);
    Ship(key, false);
  }
  for (int i = 0; i < kRuns; ++i) {
    const std::string key = "k-" + std::to_string(i);
    ASSERT_TRUE(EventuallyHas(key + "/out", key));
  }
  ASSERT_TRUE(archive_.Eventually(
      [&](ArchiveState& state) { return state.most_in_one_look == 2 * kRuns; }));
  Write("k-7", "more");
  ASSERT_TRUE(EventuallyHas("k-7/out", "k-7more"));
  for (int i = 0; i < kRuns; ++i) Ship("k-" + std::to_string(i), true);
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(EventuallyShipped("k-" + std::to_string(i)));
}

}  // namespace
}  // namespace muster::agents
