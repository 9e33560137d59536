// Runs that bring their files along, on the agent's own machine.
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agents/files/job_files.h"
#include "agents/machines/files_lane.h"
#include "tests/unit/agent_files/fake_source.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class BroughtFilesTest : public BackendTest {
 protected:
  void SetUp() override { StartAgent(); }
  void StartAgent() {
    absl::StatusOr<std::unique_ptr<uploads::FileCache>> cache =
        uploads::FileCache::Open(cache_dir_.path() + "/files", {.keep_free_bytes = 0}, &source_);
    ASSERT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    files_.emplace(cache_.get());
    config_.files = &*files_;
    StartBackend();
  }
  void StopAgent() {
    cache_->Stop();
    StopBackend();
    source_.SetAway(false);
  }

  // A job that brings along a script and what it reads, and runs `text` there.
  v1::JobSpec Bringing(const std::string& text) {
    v1::JobSpec spec = Script(text);
    source_.Add(kScript);
    source_.Add("data\n");
    uploads::Bring(&source_,
                   uploads::Tree({uploads::File("data/in", "data\n"),
                                  uploads::File("run.sh", kScript, /*executable=*/true)}),
                   "", &spec);
    return spec;
  }
  void Forget(const std::string& run_key) {
    EXPECT_TRUE(ForgetOne(*backend_, handles_[run_key]).ok());
    handles_.erase(run_key);
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
    while (Exists(RunDir(run_key) + "/spec") && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_FALSE(Exists(RunDir(run_key) + "/spec"));
  }
  // Makes the job ask for the whole machine.
  static v1::JobSpec Whole(v1::JobSpec spec) {
    spec.mutable_resources()->set_cpu_millis(2000);
    return spec;
  }
  // One that has its files and waits for the whole machine, which another has.
  std::string SubmitBehind(const std::string& gate) {
    Submit(Whole(Script("cat " + gate)));
    const std::string run_key = Submit(Whole(Bringing("true")));
    AwaitReason(run_key, "waiting for");
    return run_key;
  }
  void ExpectNothingLeftOf(const std::string& run_key) {
    StopAgent();
    EXPECT_FALSE(Exists(RunDir(run_key) + "/work"));
    EXPECT_FALSE(Exists(RunDir(run_key) + "/spec"));
    EXPECT_TRUE(IsLayoutsEmpty());
  }
  bool IsLayoutsEmpty() const { return std::filesystem::is_empty(dir_ / "layouts"); }

  static constexpr char kScript[] = "#!/bin/sh\ncat data/in; echo changed >data/in\n";

  hosts::TempDir cache_dir_;  // outlives the backend in the base: it is stopped first
  uploads::FakeSource source_;
  std::unique_ptr<uploads::FileCache> cache_;
  std::optional<uploads::JobFiles> files_;

  void TearDown() override { StopBackend(); }
};

TEST_F(BroughtFilesTest, TheInventorySaysThatTheyAreTaken) {
  EXPECT_TRUE(backend_->Inventory()->takes_uploads());
  config_.files = nullptr;
  StartBackend();
  EXPECT_FALSE(backend_->Inventory()->takes_uploads());
}

TEST_F(BroughtFilesTest, EachRunStartsInACopyOfItsOwn) {
  for (int i = 0; i < 2; ++i) {
    const std::string run_key = Submit(Bringing("./run.sh"));
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
    EXPECT_EQ(Stdout(run_key), "data\n");
    EXPECT_EQ(ReadAll(RunDir(run_key) + "/work/data/in"), "changed\n");
  }
  EXPECT_EQ(source_.asked().size(), 3u) << "the second run has fetched something";
  EXPECT_TRUE(IsLayoutsEmpty());
}

TEST_F(BroughtFilesTest, SetupFindsThemToo) {
  v1::JobSpec spec = Bringing("cat made");
  spec.set_setup("cp data/in made");
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "data\n");
}

TEST_F(BroughtFilesTest, NobodyElseMayReadThem) {
  const std::string run_key = Submit(Bringing("true"));
  AwaitEnd(run_key);
  struct stat info {};
  ASSERT_EQ(stat(RunDir(run_key).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(BroughtFilesTest, WhatTheBrokerLacksEndsTheRunForGoodAndLeavesNothing) {
  const v1::JobSpec spec = Bringing("true");
  source_.Remove(Sha256Of("data\n"));
  const std::string run_key = Submit(spec);
  const agents::Observation end = AwaitEnd(run_key);
  EXPECT_EQ(end.state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->remedy(), HasSubstr("Submit the job again"));
  // Another agent does not take it up again.
  source_.Add("data\n");
  StopAgent();
  StartAgent();
  EXPECT_TRUE(backend_->Observe({handles_[run_key]}).observations.empty());
  Forget(run_key);
  ExpectNothingLeftOf(run_key);
}

TEST_F(BroughtFilesTest, ARunWaitsUntilThereIsRoomForItsFiles) {
  StopBackend();
  ASSERT_EQ(mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=512k"), 0) << "takes root";
  StartBackend();
  v1::JobSpec spec = Script("wc -c <large");
  const std::string large(1 << 20, 'l');
  source_.Add(large);
  uploads::Bring(&source_, uploads::Tree({uploads::File("large", large)}), "", &spec);
  const std::string run_key = Submit(spec);
  EXPECT_EQ(AwaitReason(run_key, "No space left on device").state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(RunToEnd(Script("true")).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_TRUE(IsLayoutsEmpty());
  ASSERT_EQ(mount("tmpfs", dir_.path().c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "1048576\n");
  StopBackend();
  EXPECT_EQ(umount2(dir_.path().c_str(), MNT_DETACH), 0);
}

TEST_F(BroughtFilesTest, WhoBringsNothingDoesNotWaitForWhoeverDoes) {
  source_.SetHanging(true);
  std::vector<std::string> bringing;
  for (int i = 0; i < 5; ++i) bringing.push_back(Submit(Bringing("./run.sh")));
  EXPECT_EQ(RunToEnd(Script("true")).state, v1::RUN_STATE_SUCCEEDED);
  for (const std::string& run_key : bringing)
    EXPECT_EQ(AwaitReason(run_key, FetchesFiles().message()).state, v1::RUN_STATE_PENDING);
  source_.SetHanging(false);
  for (const std::string& run_key : bringing)
    EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(BroughtFilesTest, WhoWaitedForItsFilesHasItsPlaceInTheOrder) {
  const std::string gate = Gate("gate");
  Submit(Whole(Script("cat " + gate)));
  source_.SetHanging(true);
  const std::string first = Submit(Whole(Bringing("echo first >>" + (dir_ / "order"))));
  const std::string second = Submit(Whole(Script("echo second >>" + (dir_ / "order"))));
  AwaitReason(second, "waiting for");
  source_.SetHanging(false);
  AwaitReason(first, "waiting for");
  Open(gate);
  AwaitEnd(second);
  EXPECT_EQ(ReadAll(dir_ / "order"), "first\nsecond\n");
}

TEST_F(BroughtFilesTest, ACancelEndsARunWhoseFilesAreBeingFetchedAtOnce) {
  source_.SetHanging(true);
  const std::string run_key = Submit(Bringing("true"));
  AwaitReason(run_key, FetchesFiles().message());
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  source_.SetHanging(false);
  Forget(run_key);
  ExpectNothingLeftOf(run_key);
}

TEST_F(BroughtFilesTest, ARunThatIsHeldWhileItsFilesComeStaysHeld) {
  source_.SetHanging(true);
  const std::string run_key = Submit(Bringing("true"));
  ASSERT_TRUE(HoldOne(*backend_, handles_[run_key], true).ok());
  AwaitReason(run_key, "held");
  source_.SetHanging(false);
  EXPECT_EQ(RunToEnd(Bringing("true")).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(AwaitReason(run_key, "held").state, v1::RUN_STATE_PENDING);
  ASSERT_TRUE(HoldOne(*backend_, handles_[run_key], false).ok());
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(BroughtFilesTest, AnAgentThatEndsWhileFilesComeHasTheNextOneRunItOnce) {
  source_.SetHanging(true);
  const std::string run_key = Submit(Bringing("./run.sh; echo ran >>" + (dir_ / "count")));
  AwaitReason(run_key, FetchesFiles().message());
  StopAgent();
  EXPECT_FALSE(Exists(RunDir(run_key) + "/work"));
  StartAgent();
  EXPECT_EQ(backend_->Lookup(handles_[run_key]).kind, agents::LookupOutcome::Kind::kFound);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "data\n");
  EXPECT_EQ(ReadAll(dir_ / "count"), "ran\n");
}

TEST_F(BroughtFilesTest, ADirectoryOfResultsIsThereBesideThem) {
  const std::string run_key = Submit(Bringing("test -d \"$MUSTER_RESULTS_DIR\""));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(BroughtFilesTest, AFileInPlaceOfTheDirectoryOfResultsIsNamed) {
  v1::JobSpec spec = Script("true");
  source_.Add("text");
  uploads::Bring(&source_, uploads::Tree({uploads::File("results", "text")}), "", &spec);
  const agents::Observation end = RunToEnd(spec);
  EXPECT_EQ(end.failure->failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(end.failure->message(),
              StartsWith("The directory for the results cannot be made: results_directory: the job "
                         "brings along a file \"results\""));
  EXPECT_EQ(end.failure->code(), v1::FAILURE_CODE_RESULTS_DIRECTORY);
  EXPECT_THAT(end.failure->remedy(), HasSubstr("Name another results_directory"));
}

TEST_F(BroughtFilesTest, APlanTellsOfAFileInPlaceOfTheDirectoryOfResults) {
  v1::JobSpec spec = Script("true");
  source_.Add("text");
  uploads::Bring(&source_, uploads::Tree({uploads::File("results", "text")}), "", &spec);
  const auto seen = [&] {
    const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "ada");
    EXPECT_TRUE(plan.ok()) << plan.status();
    const v1::ClusterCheck& check = plan->checks().Get(0);
    return check.result() == v1::CHECK_RESULT_FAIL ? check.seen() : std::string();
  };
  EXPECT_THAT(seen(), HasSubstr("results_directory: the job brings along a file \"results\""));
  spec.set_results_directory(dir_ / "elsewhere");
  EXPECT_EQ(seen(), "");
}

TEST_F(BroughtFilesTest, APlanSaysNothingOfFilesThatTheBrokerCannotGive) {
  v1::JobSpec spec = Script("true");
  uploads::Bring(&source_, uploads::Tree({uploads::File("results", "text")}), "", &spec);
  source_.SetAway(true);
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(spec, "ada");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->checks().Get(0).result(), v1::CHECK_RESULT_OK);
}

TEST_F(BroughtFilesTest, ADirectoryOfThatNameIsTaken) {
  v1::JobSpec spec = Script("test -s results/old");
  source_.Add("text");
  uploads::Bring(&source_, uploads::Tree({uploads::File("results/old", "text")}), "", &spec);
  EXPECT_EQ(backend_->Plan(spec, "ada")->checks().Get(0).result(), v1::CHECK_RESULT_OK);
  EXPECT_EQ(RunToEnd(spec).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(BroughtFilesTest, ACacheThatSomebodyRemovedIsNothingOfTheJobs) {
  std::filesystem::remove_all(cache_dir_.path() + "/files");
  std::filesystem::remove_all(dir_ / "layouts");
  EXPECT_EQ(RunToEnd(Bringing("./run.sh")).state, v1::RUN_STATE_SUCCEEDED);
}

TEST_F(BroughtFilesTest, ALaunchThatWasCutShortIsMadeAnewAndOnce) {
  const std::string run_key = RunKeyOf(1);
  const v1::JobSpec spec = Bringing("./run.sh; echo ran >>" + (dir_ / "count"));
  // An agent that was killed after it had moved the files, and before the run was in the queue.
  StopBackend();
  std::filesystem::create_directories(RunDir(run_key) + "/work/data");
  std::ofstream(RunDir(run_key) + "/work/data/in") << "half";
  std::filesystem::create_directories(dir_ / "layouts/" + run_key);
  std::ofstream(dir_ / ("layouts/" + run_key + "/rest")) << "rest";
  agents::RunHandle& handle = handles_[run_key];
  handle.run_key = run_key;
  handle.state = v1::RUN_STATE_LAUNCH_UNKNOWN;
  StartBackend();
  EXPECT_TRUE(IsLayoutsEmpty());
  EXPECT_EQ(backend_->Lookup(handle).kind, agents::LookupOutcome::Kind::kAbsent);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Launch(run_key, spec).kind, agents::LaunchOutcome::Kind::kLaunched);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "data\n");
  EXPECT_EQ(ReadAll(dir_ / "count"), "ran\n");
}

TEST_F(BroughtFilesTest, TheCopyOfARunThatWasCanceledInTheQueueGoesWithIt) {
  const std::string gate = Gate("gate");
  const std::string run_key = SubmitBehind(gate);
  EXPECT_TRUE(Exists(RunDir(run_key) + "/work/run.sh"));
  Cancel(run_key);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_CANCELED);
  Forget(run_key);
  EXPECT_FALSE(Exists(RunDir(run_key) + "/work"));
  Open(gate);
}

TEST_F(BroughtFilesTest, WhatARunHasHadIsItsUsersAndStaysWhateverItsAge) {
  config_.keep_finished_runs = 0;
  StopBackend();
  StartBackend();
  // `mv` and `cp -p` keep the time of a file, and a link in place of work/ leads elsewhere.
  const std::string run_key =
      Submit(Bringing("mkdir empty; mv run.sh moved; cp -p moved copy; cd ..; mv work real; "
                      "ln -s real work"));
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  Forget(run_key);
  StopBackend();
  StartBackend();  // which looks at all that is left
  for (const char* name : {"moved", "copy", "data/in", "empty"})
    EXPECT_TRUE(Exists(RunDir(run_key) + "/real/" + name)) << name;
}

TEST_F(BroughtFilesTest, ARefusalAfterTheFilesWereLaidOutLeavesNothing) {
  v1::JobSpec spec = Bringing("true");
  std::ofstream(dir_ / "file") << "in the way";
  spec.set_results_directory(dir_ / "file/results");
  EXPECT_EQ(Launch(RunKeyOf(1), spec).kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_FALSE(Exists(RunDir(RunKeyOf(1))));
}

TEST_F(BroughtFilesTest, WhoeverWaitsInTheQueueHasItsFilesAfterARestartWithoutTheBroker) {
  const std::string gate = Gate("gate");
  v1::JobSpec block = Script("cat " + gate);
  block.mutable_resources()->set_cpu_millis(2000);
  const std::string blocker = Submit(block);
  const std::string run_key = Submit(Bringing("./run.sh"));
  AwaitState(blocker, v1::RUN_STATE_RUNNING);
  AwaitReason(run_key, "waiting for");
  source_.SetAway(true);
  StartBackend();
  Open(gate);
  EXPECT_EQ(AwaitEnd(run_key).state, v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(Stdout(run_key), "data\n");
  AwaitEnd(blocker);
}

}  // namespace
}  // namespace muster::machines
