// Tests the room in the API server for the files that jobs bring along, and the jobs that wait for
// it.
#include "agents/kubernetes/file_room.h"

#include "agents/files/job_files.h"
#include "agents/kubernetes/manifest/brought_files.h"
#include "agents/kubernetes/objects/objects.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agent_files/fake_source.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

class CountingSink final : public ObjectSink {
 public:
  void OnAll(std::vector<Json> objects) override { count += objects.size(); }
  void OnChange(Json) override { ++count; }
  void OnDelete(Json) override { ++count; }

  size_t count = 0;
};

Json MakeJob(const std::string& run_key, uint64_t bytes) {
  return {{"metadata",
           {{"name", run_key},
            {"labels", {{kRunLabel, run_key}}},
            {"annotations", {{kArchiveAnnotation, std::to_string(bytes)}}}}}};
}

class FileRoomTest : public testing::Test {
 protected:
  bool Takes(const std::string& run_key, uint64_t bytes) { return room_.Take(run_key, bytes).ok(); }

  void PassCompaction() { now_ += kUntilCompacted; }
  FileRoomOptions Options(uint64_t max_bytes) {
    return {.max_bytes = max_bytes, .path = dir_ / "archive-bytes", .now = [this] { return now_; }};
  }

  hosts::TempDir dir_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(24 * 365 * 50);
  FileRoom room_{Options(/*max_bytes=*/100)};
  CountingSink next_;
  const std::unique_ptr<ObjectSink> jobs_ = room_.Listen("lab", &next_);
  const std::unique_ptr<ObjectSink> other_jobs_ = room_.Listen("other", &next_);
};

TEST_F(FileRoomTest, TheRunBeyondTheBoundWaitsUntilAnothersJobIsGone) {
  EXPECT_TRUE(Takes("a", 50));
  EXPECT_TRUE(Takes("b", 50));
  const absl::Status full = room_.Take("c", 50);
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("100 of the 100"));
  jobs_->OnChange(MakeJob("a", 50));
  other_jobs_->OnChange(MakeJob("b", 50));
  EXPECT_FALSE(Takes("c", 50)) << "what is listed counts once";
  jobs_->OnDelete(MakeJob("a", 50));
  EXPECT_FALSE(Takes("c", 50)) << "etcd has it still";
  PassCompaction();
  EXPECT_TRUE(Takes("c", 50));
  EXPECT_FALSE(Takes("d", 1));
  EXPECT_EQ(next_.count, 3u) << "all is passed on";
}

TEST_F(FileRoomTest, WhatAnAgentThatWasStartedAnewFindsCounts) {
  jobs_->OnAll({MakeJob("a", 60), MakeJob("b", 30), {{"metadata", {{"name", "c"}}}}});
  EXPECT_FALSE(Takes("d", 11));
  EXPECT_TRUE(Takes("a", 60)) << "it has its room";
  jobs_->OnAll({MakeJob("b", 30)});
  EXPECT_FALSE(Takes("d", 70)) << "it went while nobody watched, maybe just now";
  PassCompaction();
  EXPECT_TRUE(Takes("d", 70));
}

TEST_F(FileRoomTest, WhatWentWhileNoAgentRanCountsAsGoneNow) {
  EXPECT_TRUE(Takes("a", 60));
  EXPECT_TRUE(Takes("b", 30));
  FileRoom again(Options(100));
  const std::unique_ptr<ObjectSink> jobs = again.Listen("lab", &next_);
  EXPECT_FALSE(again.Take("c", 11).ok()) << "nothing is listed yet";
  again.Leave("c");
  jobs->OnAll({MakeJob("b", 30)});
  EXPECT_FALSE(again.Take("c", 11).ok()) << "60 are gone, 30 are there";
  PassCompaction();
  EXPECT_TRUE(again.Take("c", 70).ok());
}

TEST_F(FileRoomTest, WhatWasGivenUpLongBeforeARestartCountsNoMore) {
  EXPECT_TRUE(Takes("a", 90));
  jobs_->OnChange(MakeJob("a", 90));
  jobs_->OnDelete(MakeJob("a", 90));
  PassCompaction();
  EXPECT_EQ(room_.Settle(), "");
  FileRoom again(Options(100));
  EXPECT_TRUE(again.Take("b", 100).ok());
}

TEST_F(FileRoomTest, WhatIsGoneCountsNoLongerBecauseOfRestarts) {
  EXPECT_TRUE(Takes("a", 60));
  jobs_->OnChange(MakeJob("a", 60));
  for (int restart = 0; restart < 3; ++restart) {
    FileRoom again(Options(100));
    const std::unique_ptr<ObjectSink> jobs = again.Listen("lab", &next_);
    // The first start finds that the Job has gone, just then perhaps.
    jobs->OnAll({});
    EXPECT_FALSE(again.Take("b", 50).ok()) << restart;
    now_ += kUntilCompacted / 4;
    EXPECT_EQ(again.Settle(),
              "1 runs wait, because what they bring along (50) and what others have "
              "brought (60) is more than the 100 that Kubernetes may be given at a time");
  }
  now_ += kUntilCompacted / 4 + absl::Minutes(1);
  FileRoom last(Options(100));
  EXPECT_TRUE(last.Take("b", 100).ok());
}

TEST_F(FileRoomTest, WhatANamespaceHasThatWasNotListedYetIsNotGone) {
  EXPECT_TRUE(Takes("a", 60));
  FileRoom again(Options(100));
  const std::unique_ptr<ObjectSink> jobs = again.Listen("lab", &next_);
  const std::unique_ptr<ObjectSink> other_jobs = again.Listen("other", &next_);
  jobs->OnAll({});
  other_jobs->OnAll({MakeJob("a", 60)});
  EXPECT_TRUE(again.Take("b", 40).ok()) << "it counts once";
}

TEST_F(FileRoomTest, NobodyTakesRoomThatARestartWouldForget) {
  FileRoom room({.max_bytes = 100, .path = dir_ / "missing/archive-bytes"});
  EXPECT_FALSE(room.Take("a", 1).ok());
}

TEST_F(FileRoomTest, WhoCameFirstIsPassedByATinyOneAlone) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  FileRoom room(Options(100 * kMiB));
  EXPECT_TRUE(room.Take("a", 50 * kMiB).ok());
  EXPECT_FALSE(room.Take("large", 60 * kMiB).ok());
  EXPECT_FALSE(room.Take("small", kMiB).ok());
  EXPECT_THAT(std::string(room.Take("small", kMiB).message()), HasSubstr("60Mi wait before it"));
  EXPECT_THAT(room.Settle(), HasSubstr("2 runs wait"));
  EXPECT_TRUE(room.Take("tiny", kSmallArchiveBytes).ok());
  EXPECT_FALSE(room.Try(kMiB).ok()) << "it would be the last";
  room.Leave("large");
  EXPECT_TRUE(room.Try(kMiB).ok());
  EXPECT_TRUE(room.Take("small", kMiB).ok());
}

TEST_F(FileRoomTest, ARunOfWhichNothingWasSentGivesItsRoomBackAtOnce) {
  EXPECT_TRUE(Takes("a", 100));
  EXPECT_TRUE(Takes("a", 100)) << "a launch that is repeated";
  EXPECT_FALSE(Takes("b", 100));
  room_.GiveBack("a");
  EXPECT_TRUE(Takes("b", 100));
  room_.Leave("b");
  EXPECT_FALSE(Takes("c", 100)) << "some of it may have been sent";
  PassCompaction();
  EXPECT_TRUE(Takes("c", 100));
}

TEST_F(FileRoomTest, ARunThatWaitsForItsOwnBytesWaitsForNothing) {
  EXPECT_TRUE(Takes("a", 100));
  EXPECT_FALSE(Takes("b", 60));
  jobs_->OnChange(MakeJob("b", 60));
  EXPECT_TRUE(Takes("b", 60));
  EXPECT_EQ(room_.Settle(), "");
}

class FilesLaunchTest : public ScriptedClusterTest {
 protected:
  using Kind = agents::LaunchOutcome::Kind;

  FilesLaunchTest() {
    auto cache = uploads::FileCache::Open(dir_ / "cache", {.keep_free_bytes = 0}, &source_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
    job_files_.emplace(cache_.get());
    config_.files = &*job_files_;
    run_.set_run_key("k7m2-1-1");
    run_.mutable_spec()->set_nodes(1);
    run_.mutable_spec()->set_image("any");
    run_.mutable_spec()->mutable_command()->set_script("true");
  }
  // Brings one file, which the broker has or not.
  void Bring(const std::string& content, bool is_there) {
    if (is_there) source_.Add(content);
    uploads::Bring(&source_, uploads::Tree({uploads::File("f", content)}), "", run_.mutable_spec());
  }
  bool HasMadeJob() {
    for (const std::string& change : TakeChanges()) {
      if (change.starts_with("POST /apis/batch/v1/")) return true;
    }
    return false;
  }

  hosts::TempDir dir_;
  uploads::FakeSource source_;
  std::unique_ptr<uploads::FileCache> cache_;
  std::optional<uploads::JobFiles> job_files_;
  agent::v1::Assignment run_;
};

TEST_F(FilesLaunchTest, ARunWaitsWhileTheFilesOfOthersFillTheClusterAndCanBeCanceled) {
  Bring("content", /*is_there=*/true);
  Json other = ScriptedClusterTest::MakeJob("k7m2-9-1");
  other["metadata"]["annotations"][kArchiveAnnotation] = std::to_string(kMaxBytesOfArchives);
  jobs_ = Json::array({other});
  Start({});
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, run_);
  EXPECT_EQ(outcome.kind, Kind::kDeferred);
  EXPECT_THAT(outcome.evidence.detail(), HasSubstr("256Mi"));
  EXPECT_FALSE(HasMadeJob());
  EXPECT_TRUE(ForgetOne(*backend_, Handle(run_.run_key())).ok());
}

TEST_F(FilesLaunchTest, WhatIsTooLargeIsRefusedBeforeItsContentIsFetched) {
  Bring(std::string(kMaxArchiveBytes, 'l'), /*is_there=*/false);
  Start({});
  const agents::LaunchOutcome outcome = LaunchOne(*backend_, run_);
  EXPECT_EQ(outcome.kind, Kind::kRefused);
  EXPECT_THAT(outcome.failure.message(), HasSubstr("kubernetes.volumes"));
  EXPECT_EQ(source_.asked().size(), 1u) << "the tree alone";
}

TEST_F(FilesLaunchTest, WhatIsWrongElsewhereIsToldBeforeAnythingIsFetched) {
  Bring("content", /*is_there=*/true);
  run_.mutable_spec()->mutable_kubernetes()->set_namespace_("nowhere");
  Start({});
  EXPECT_EQ(LaunchOne(*backend_, run_).kind, Kind::kRefused);
  EXPECT_TRUE(source_.asked().empty());
}

TEST_F(FilesLaunchTest, APlanOfASubmitSaysThatTheFilesAreTooLarge) {
  Bring(std::string(kMaxArchiveBytes, 'l'), /*is_there=*/false);
  Start({});
  const absl::StatusOr<v1::JobPlan> plan = backend_->Plan(run_.spec(), "");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(plan->checks(0).seen(), HasSubstr("uploads"));
}

}  // namespace
}  // namespace muster::kubernetes
