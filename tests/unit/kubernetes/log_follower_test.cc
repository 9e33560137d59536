#include "agents/kubernetes/logs/log_follower.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <sstream>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/logs/log_read.h"
#include "agents/kubernetes/logs/log_spool.h"
#include "agents/kubernetes/logs/log_track.h"
#include "fmt/format.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Line(int number, const std::string& text) {
  return fmt::format("2026-11-21T14:53:20.{:09}Z {}\n", number, text);
}

ScriptedReply Refusal(int status, const std::string& kind, const std::string& message,
                      const Json& causes = Json::array()) {
  const Json body = {
      {"kind", "Status"}, {"message", message}, {"details", {{"kind", kind}, {"causes", causes}}}};
  return {.status = status, .body = body.dump()};
}

PodObject Pod(ContainerState state, const std::string& name = "pod-0", uint32_t rank = 0) {
  PodObject pod;
  pod.name = {.name_space = "lab",
              .name = name,
              .uid = "uid-" + name,
              .resource_version = "1",
              .run_key = "run"};
  pod.index = rank;
  pod.phase = state == ContainerState::kTerminated ? "Succeeded" : "Running";
  ContainerObject main;
  main.name = "main";
  main.state = state;
  main.started = absl::FromUnixSeconds(1'700'000'000);
  pod.containers = {main};
  return pod;
}

class LogFollowerTest : public ::testing::Test {
 protected:
  // Serves logs by `answer`; whether the server tells streams apart.
  void Serve(std::function<ScriptedReply(const std::string& target)> answer,
             bool can_split = false) {
    server_ = std::make_unique<ScriptedServer>(
        [this, answer, can_split](const ScriptedRequest& request) -> ScriptedReply {
          if (request.target.ends_with("stream=Muster")) {
            return Refusal(
                422, "PodLogOptions", "no",
                {{{"field", "stream"},
                  {"reason", can_split ? "FieldValueNotSupported" : "FieldValueForbidden"}}});
          }
          {
            const std::lock_guard lock(mutex_);
            targets_.push_back(request.target);
            changed_.notify_all();
          }
          return answer(request.target);
        });
    Endpoint endpoint;
    endpoint.server = server_->url();
    api_ = std::make_unique<Api>(endpoint, &host_);
    Restart();
  }
  void Restart() {
    follower_.reset();
    LogFollowerOptions options;
    options.max_refusals = 3;
    options.first_pause = absl::Milliseconds(1);
    options.longest_pause = absl::Milliseconds(20);
    options.end_grace = absl::Milliseconds(50);
    options.disk_pause = absl::Milliseconds(20);
    options.max_streams = max_streams_;
    options.last_read_silence = last_read_silence_;
    follower_ = std::make_unique<LogFollower>(
        directory_ / "spool", api_.get(), [this] { Changed(); }, options);
  }
  void Changed() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  // Looks whenever something has changed, and now and then.
  template <typename Condition>
  void Await(const Condition& condition, const char* what) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << what << "; " << follower_->health();
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
  }
  void AwaitEnd(const std::vector<PodObject>& pods) {
    Await([&] { return follower_->IsComplete("run", pods); }, "the log's end");
  }
  std::string Output(const std::string& name = "rank-0.out") {
    std::stringstream text;
    text << std::ifstream(directory_ / "spool/run/" + name).rdbuf();
    return text.str();
  }
  size_t asked() {
    const std::lock_guard lock(mutex_);
    return targets_.size();
  }

  hosts::TempDir directory_;
  hosts::LocalHost host_;
  size_t max_streams_ = 100;
  absl::Duration last_read_silence_ = absl::Seconds(60);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> targets_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<LogFollower> follower_;
};

// Its own pause is a millisecond here.
TEST_F(LogFollowerTest, ALogThatIsSentAwayIsAskedForNoEarlierThanTheServerSays) {
  std::vector<absl::Time> times;
  Serve([&](const std::string&) -> ScriptedReply {
    times.push_back(absl::Now());
    if (times.size() > 1) return {.body = Line(1, "one")};
    return {.status = 429, .body = "come later", .headers = {"Retry-After: 1"}};
  });
  follower_->Watch(Pod(ContainerState::kTerminated), "run");
  AwaitEnd({Pod(ContainerState::kTerminated)});
  server_.reset();
  EXPECT_GE(times.at(1) - times.at(0), absl::Seconds(1));
}

TEST_F(LogFollowerTest, OutputComesWhileItIsWrittenAndItsEndIsReadOnceMore) {
  Serve([](const std::string& target) -> ScriptedReply {
    if (target.ends_with("follow=true")) return {.body = Line(1, "one"), .stays_open = true};
    return {.body = Line(1, "one") + Line(2, "two")};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  EXPECT_FALSE(follower_->IsComplete("run", {Pod(ContainerState::kRunning)}));
  EXPECT_EQ(follower_->open_streams(), 1u);
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\ntwo\n");
  const std::lock_guard lock(mutex_);
  const std::string path = "/api/v1/namespaces/lab/pods/pod-0/log?container=main&timestamps=true";
  const std::string since = "&sinceTime=2026-11-21T14%3A53%3A18Z";
  EXPECT_THAT(targets_, ElementsAre(path + "&follow=true", path + since, path + since));
}

TEST_F(LogFollowerTest, StreamsThatTheServerTellsApartAreKeptApart) {
  Serve(
      [](const std::string& target) -> ScriptedReply {
        const bool is_error = target.find("stream=Stderr") != std::string::npos;
        return {.body = Line(1, is_error ? "error" : "output")};
      },
      /*can_split=*/true);
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "output\n");
  EXPECT_EQ(Output("rank-0.err"), "error\n");
  const auto sources = follower_->Logs("run", 2);
  ASSERT_EQ(sources.size(), 4u);
  EXPECT_EQ(sources[3].rank, 1u);
  EXPECT_EQ(sources[3].stream, v1::LOG_STREAM_STDERR);
  EXPECT_EQ(sources[3].path, directory_ / "spool/run/rank-1.err");
}

TEST_F(LogFollowerTest, ANodeThatCannotTellStreamsApartIsAskedForAllTogether) {
  Serve(
      [](const std::string& target) -> ScriptedReply {
        if (target.find("stream=") != std::string::npos)
          return Refusal(400, "pods/log", "Please enable PodLogsQuerySplitStreams feature gate");
        return {.body = Line(1, "all")};
      },
      /*can_split=*/true);
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "all\n");
  EXPECT_EQ(Output("rank-0.err"), "");
}

TEST_F(LogFollowerTest, WhatOnceIsReadTogetherStaysTogetherForAnotherProcess) {
  std::atomic<bool> ended = false;
  const auto answer = [&](const std::string& target) -> ScriptedReply {
    EXPECT_EQ(target.find("stream="), std::string::npos) << target;
    return {.body = Line(1, "one"), .stays_open = !ended};
  };
  Serve(answer);
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  follower_.reset();
  ended = true;
  Serve(answer, /*can_split=*/true);
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\n");
}

TEST_F(LogFollowerTest, ACutInTheMiddleOfALineIsNotSeen) {
  std::atomic<int> calls = 0;
  const std::string all = Line(1, "one") + Line(1, "two") + Line(2, "three");
  Serve([&](const std::string&) -> ScriptedReply {
    // The header promises more than comes.
    if (++calls == 1) return {.body = all.substr(0, all.size() - 3)};
    if (calls == 2) return {.hangs_up = true};
    return {.body = all};
  });
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\ntwo\nthree\n");
}

TEST_F(LogFollowerTest, APodThatIsGoneLeavesALineThatSaysSo) {
  std::atomic<bool> gone = false;
  Serve([&](const std::string&) -> ScriptedReply {
    if (gone) return Refusal(404, "pods", "pods \"pod-0\" not found");
    return {.body = Line(1, "one") + "2026-11", .stays_open = true};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  gone = true;
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_THAT(Output(), HasSubstr("one\nmuster: the rest of the output of main is missing: "));
  EXPECT_THAT(Output(), HasSubstr("pods \"pod-0\" not found\n"));
}

TEST_F(LogFollowerTest, ThatOfAContainerThatItsNodeHasLostIsGivenUp) {
  const auto is_lost = std::make_shared<std::atomic<bool>>(false);
  Serve([is_lost](const std::string&) -> ScriptedReply {
    if (*is_lost) return Refusal(400, "", "container \"main\" in pod \"pod-0\" is terminated");
    return {.body = Line(1, "one")};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  *is_lost = true;
  // Such a kubelet tells neither when it began nor when it ended.
  PodObject lost = Pod(ContainerState::kTerminated);
  lost.phase = "Failed";
  lost.containers[0].started.reset();
  AwaitEnd({lost});
  EXPECT_THAT(Output(), HasSubstr("one\nmuster: the rest of the output of main is missing: "));
}

TEST_F(LogFollowerTest, ThatOfAPodThatIsGoneAndWhoseEndItsNodeDidNotKnowIsGivenUp) {
  const auto is_gone = std::make_shared<std::atomic<bool>>(false);
  Serve([is_gone](const std::string&) -> ScriptedReply {
    if (*is_gone) return Refusal(404, "pods", "pods \"pod-0\" not found");
    return {.body = Line(1, "one")};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  // The node was killed: its answer ends as one that is whole.
  Await([&] { return Output() == "one\n" && asked() > 1; }, "the first line, told to its end");
  *is_gone = true;
  PodObject lost = Pod(ContainerState::kTerminated);
  lost.phase = "Failed";
  lost.containers[0].started.reset();
  lost.containers[0].finished.reset();
  AwaitEnd({lost});
  EXPECT_THAT(Output(), HasSubstr("one\nmuster: the rest of the output of main is missing: "));
}

TEST_F(LogFollowerTest, ALogThatIsRefusedIsGivenUpAfterSomeTriesInTheServersWords) {
  Serve([](const std::string&) { return Refusal(403, "pods", "pods is forbidden: ask Ada"); });
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(asked(), 3u);
  EXPECT_THAT(Output(), HasSubstr("is missing"));
  EXPECT_THAT(Output(), HasSubstr("pods is forbidden: ask Ada"));
  EXPECT_TRUE(follower_->health().ok()) << "it is over";
}

TEST_F(LogFollowerTest, ARefusalOfARunningContainersLogIsTroubleAndNotTheEnd) {
  std::atomic<bool> refuses = true;
  Serve([&](const std::string&) -> ScriptedReply {
    if (refuses) return Refusal(403, "pods", "pods is forbidden: ask Ada");
    return {.body = Line(1, "one"), .stays_open = true};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return asked() > 5; }, "more tries than those after an end");
  EXPECT_THAT(std::string(follower_->health().message()), HasSubstr("forbidden: ask Ada"));
  refuses = false;
  Await([&] { return Output() == "one\n"; }, "the first line");
}

TEST_F(LogFollowerTest, AServerThatIsNotThereRefusesNothing) {
  std::atomic<int> calls = 0;
  Serve([&](const std::string&) -> ScriptedReply {
    if (++calls < 10) return {.hangs_up = true};
    return {.body = Line(1, "one")};
  });
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\n");
}

// Returns the number of times that a thread of this process has gone to sleep.
long Sleeps() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST_F(LogFollowerTest, AFollowerThatHasNothingToReadSleeps) {
  Serve([](const std::string&) -> ScriptedReply { return {}; });
  const long before = Sleeps();
  // The pause does not wait for anything to happen: nothing may happen for this long.
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_LT(Sleeps() - before, 100) << "one that turns in a circle sleeps a thousand times";
}

TEST_F(LogFollowerTest, ALastReadThatFallsSilentIsAskedAnewAndAFollowMayBeSilent) {
  last_read_silence_ = absl::Seconds(1);
  std::atomic<int> follows = 0;
  std::atomic<int> last_reads = 0;
  Serve([&](const std::string& target) -> ScriptedReply {
    if (target.ends_with("follow=true")) {
      ++follows;
      return {.body = Line(1, "one"), .stays_open = true};
    }
    if (target.find("pod-1") != std::string::npos && ++last_reads == 1)
      return {.body = Line(1, "one"), .stays_open = true};
    return {.body = Line(1, "one") + Line(2, "two")};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  follower_->Watch(Pod(ContainerState::kTerminated, "pod-1", 1), "run");
  Await([&] { return Output("rank-1.out") == "one\ntwo\n"; }, "the rest of the log");
  EXPECT_EQ(Output(), "one\n");
  EXPECT_EQ(follows, 1);
}

TEST(LogTrackTest, OnlyWhatIsToBeReadAnewIsNews) {
  LogTrack track("run", "/nowhere", LogPart::kStdout);
  EXPECT_TRUE(track.Name(Pod(ContainerState::kRunning)));
  EXPECT_FALSE(track.Name(Pod(ContainerState::kRunning)));
  EXPECT_TRUE(track.Name(Pod(ContainerState::kTerminated)));
  EXPECT_FALSE(track.Name(Pod(ContainerState::kTerminated)));
}

TEST_F(LogFollowerTest, WordsOfTheNodeInPlaceOfALogAreNoOutputAndAreAskedAgain) {
  std::atomic<int> calls = 0;
  Serve([&](const std::string&) -> ScriptedReply {
    if (++calls < 3) return {.body = "failed to try resolving symlinks in path \"/var\""};
    return {.body = Line(1, "one")};
  });
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\n");
}

TEST_F(LogFollowerTest, ARotationThatTookOutputAlongIsTold) {
  std::atomic<bool> rotated = false;
  Serve([&](const std::string&) -> ScriptedReply {
    if (rotated) return {.body = Line(5, "five")};
    return {.body = Line(1, "one"), .stays_open = true};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  rotated = true;
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), std::string("one\n") + kRotatedLine + "five\n");
}

TEST_F(LogFollowerTest, AnotherProcessGoesOnAndGivesUpWhatNobodyNames) {
  Serve([](const std::string&) -> ScriptedReply {
    return {.body = Line(1, "one"), .stays_open = true};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  Restart();
  AwaitEnd({});
  EXPECT_EQ(Output(), "one\nmuster: the rest of the output of main is missing: its pod is gone\n");
  Restart();
  AwaitEnd({});
}

TEST_F(LogFollowerTest, InitContainersComeFirstAndOnlyThoseThatStartedAreAskedFor) {
  Serve([](const std::string& target) -> ScriptedReply {
    const size_t begin = target.find("container=") + 10;
    return {.body = Line(1, target.substr(begin, target.find('&') - begin))};
  });
  PodObject pod = Pod(ContainerState::kTerminated);
  ContainerObject setup = pod.containers[0];
  setup.is_init = true;
  setup.name = "setup";
  ContainerObject proxy = pod.containers[0];
  proxy.name = "proxy";
  ContainerObject sidecar = setup;
  sidecar.name = "sidecar";
  sidecar.state = ContainerState::kRunning;
  ContainerObject broken = setup;
  broken.name = "broken";
  broken.started.reset();
  pod.containers = {setup, sidecar, broken, proxy, pod.containers[0]};
  AwaitEnd({pod});
  EXPECT_EQ(Output(), "setup\nmain\n");
  AwaitEnd({Pod(ContainerState::kWaiting, "pod-1", 1)});
  EXPECT_EQ(Output("rank-1.out"), "");
}

TEST_F(LogFollowerTest, APodThatTakesARanksPlaceAddsToItsOutput) {
  Serve([](const std::string& target) -> ScriptedReply {
    return {.body = Line(1, target.find("pod-0") != std::string::npos ? "first" : "second")};
  });
  AwaitEnd({Pod(ContainerState::kTerminated)});
  const std::vector<PodObject> both = {Pod(ContainerState::kTerminated, "pod-1"),
                                       Pod(ContainerState::kTerminated)};
  AwaitEnd(both);
  EXPECT_EQ(Output(), "first\nsecond\n");
  Restart();
  AwaitEnd(both);
  EXPECT_EQ(Output(), "first\nsecond\n");
}

TEST_F(LogFollowerTest, MoreLogsThanStreamsWaitAndAreReadAtTheirEndAtTheLatest) {
  max_streams_ = 2;
  std::atomic<int> open = 0;
  Serve([&](const std::string& target) -> ScriptedReply {
    if (target.ends_with("follow=true")) {
      ++open;
      return {.body = Line(1, "one"), .stays_open = true};
    }
    return {.body = Line(1, "one")};
  });
  std::vector<PodObject> pods;
  for (uint32_t rank = 0; rank < 5; ++rank)
    pods.push_back(Pod(ContainerState::kTerminated, fmt::format("pod-{}", rank), rank));
  for (uint32_t rank = 0; rank < 5; ++rank)
    follower_->Watch(Pod(ContainerState::kRunning, fmt::format("pod-{}", rank), rank), "run");
  Await([&] { return Output("rank-1.out") == "one\n"; }, "the second stream");
  follower_->Watch(pods[4], "run");
  Await([&] { return Output("rank-4.out") == "one\n"; }, "an end, which waits for none that runs");
  EXPECT_EQ(open, 2);
  AwaitEnd(pods);
}

TEST_F(LogFollowerTest, AForgottenRunLeavesNothingAndLateNewsDoesNotBringItBack) {
  Serve([](const std::string&) -> ScriptedReply {
    return {.body = Line(1, "one"), .stays_open = true};
  });
  follower_->Watch(Pod(ContainerState::kRunning), "run");
  Await([&] { return Output() == "one\n"; }, "the first line");
  follower_->Forget("run");
  follower_->Watch(Pod(ContainerState::kTerminated), "run");
  Await([&] { return follower_->open_streams() == 0; }, "the stream's end");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "spool/run"));
  EXPECT_EQ(asked(), 1u);
}

TEST_F(LogFollowerTest, AFullDiskPausesAndLosesNothing) {
  Serve([](const std::string&) -> ScriptedReply { return {.body = Line(1, "one")}; });
  std::filesystem::create_directories(directory_ / "spool/run");
  std::ofstream(directory_ / "spool/run/together").put('\n');
  std::filesystem::create_symlink("/dev/full", directory_ / "spool/run/rank-0.out");
  follower_->Watch(Pod(ContainerState::kTerminated), "run");
  Await([&] { return !follower_->health().ok(); }, "the warning");
  EXPECT_EQ(follower_->health().code(), absl::StatusCode::kResourceExhausted);
  std::filesystem::remove(directory_ / "spool/run/rank-0.out");
  AwaitEnd({Pod(ContainerState::kTerminated)});
  EXPECT_EQ(Output(), "one\n");
  EXPECT_TRUE(follower_->health().ok());
}

TEST_F(LogFollowerTest, WhoBringsNewsOfPodsDoesNotWaitForADiskThatHangs) {
  Serve([](const std::string&) { return ScriptedReply{.body = Line(1, "hello")}; });
  const std::string run = directory_ / "spool/run";
  std::filesystem::create_directories(run);
  const std::string position = run + "/rank-0.out.position";
  ASSERT_EQ(mkfifo(position.c_str(), 0600), 0);
  follower_->Watch(Pod(ContainerState::kTerminated), "run");
  // The follower reads there until this end is closed.
  int disk = -1;
  Await([&] { return (disk = open(position.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }, "the read");
  auto news = std::async(std::launch::async, [&] {
    follower_->Watch(Pod(ContainerState::kTerminated, "pod-1", 1), "run");
  });
  const bool was_free = news.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  std::filesystem::remove(position);
  close(disk);
  EXPECT_TRUE(was_free);
  news.get();
  AwaitEnd({Pod(ContainerState::kTerminated), Pod(ContainerState::kTerminated, "pod-1", 1)});
  EXPECT_EQ(Output(), "hello\n");
  EXPECT_EQ(Output("rank-1.out"), "hello\n");
}

}  // namespace
}  // namespace muster::kubernetes
