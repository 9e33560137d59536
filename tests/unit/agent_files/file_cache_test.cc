#include "agents/files/file_cache.h"

#include <thread>

#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using testing::HasSubstr;

using FileCacheTest = FilesTest;

TEST_F(FileCacheTest, AFileIsFetchedOnceAndReadAsItIs) {
  source_.Add("hello");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Fetch("hello").ok());
  EXPECT_EQ(source_.asked().size(), 1u);
  EXPECT_EQ(cache_->ReadAll(Sha256Of("hello")).value(), "hello");
}

TEST_F(FileCacheTest, ARestartForgetsNothing) {
  source_.Add("hello");
  ASSERT_TRUE(Fetch("hello").ok());
  Open();
  ASSERT_TRUE(Fetch("hello").ok());
  EXPECT_EQ(source_.asked().size(), 1u);
  EXPECT_EQ(cache_->used_bytes(), 4096u);
}

TEST_F(FileCacheTest, AnEmptyFileIsAFile) {
  source_.Add("");
  ASSERT_TRUE(Fetch("").ok());
  EXPECT_EQ(cache_->ReadAll(Sha256Of("")).value(), "");
}

TEST_F(FileCacheTest, ABrokenConnectionGoesOnWhereItEnded) {
  const std::string content(1 << 20, 'x');
  source_.Add(content);
  source_.Cut(2);
  ASSERT_TRUE(Fetch(content).ok());
  const auto asked = source_.asked();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[1].offset, content.size() / 2);
  EXPECT_EQ(asked[2].offset, content.size() / 4 * 3);
}

TEST_F(FileCacheTest, ARestartGoesOnWhereFetchingEnded) {
  const std::string content(1 << 20, 'x');
  source_.Add(content);
  source_.Cut(1000);
  EXPECT_TRUE(absl::IsUnavailable(FetchAll({Want(content)}, absl::ZeroDuration())));
  source_.Cut(0);
  Open();
  ASSERT_TRUE(Fetch(content).ok());
  EXPECT_EQ(source_.asked().back().offset, content.size() / 2);
}

TEST_F(FileCacheTest, UntilThePastNobodyIsAskedAndNothingGivesWay) {
  source_.Add("here");
  source_.Add("there");
  ASSERT_TRUE(Fetch("here").ok());
  const size_t asked = source_.asked().size();
  EXPECT_TRUE(FetchAll({Want("here")}, -absl::InfiniteDuration()).ok());
  EXPECT_TRUE(
      absl::IsUnavailable(FetchAll({Want("here"), Want("there")}, -absl::InfiniteDuration())));
  EXPECT_EQ(source_.asked().size(), asked);
  EXPECT_TRUE(IsKept("here"));
}

TEST_F(FileCacheTest, APartThatWasDamagedMeanwhileIsFetchedAnew) {
  const std::string content = "0123456789";
  source_.Add(content);
  Spill(IncomingPath(content), "01x34");
  ASSERT_TRUE(Fetch(content).ok());
  EXPECT_EQ(cache_->ReadAll(Sha256Of(content)).value(), content);
  Spill(IncomingPath("abc"), "far too long");
  source_.Add("abc");
  EXPECT_TRUE(Fetch("abc").ok());
}

TEST_F(FileCacheTest, ABrokerThatSendsSomethingElseIsNotBelieved) {
  source_.Claim(Sha256Of("right"), "wrong");
  const absl::Status status = Fetch("right");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another SHA-256"));
  source_.Claim(Sha256Of("right"), "right, and more than was announced");
  EXPECT_EQ(Fetch("right").code(), absl::StatusCode::kDataLoss);
  source_.Claim(Sha256Of("right"), "rig");
  EXPECT_EQ(Fetch("right").code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(IsKept("right"));
  EXPECT_FALSE(std::filesystem::exists(IncomingPath("right")));
}

TEST_F(FileCacheTest, WhatTheBrokerLacksIsNotFoundAtOnce) {
  EXPECT_TRUE(absl::IsNotFound(Fetch("gone")));
  EXPECT_EQ(source_.asked().size(), 1u);
}

TEST_F(FileCacheTest, ABrokerThatIsAwayIsTriedUntilTheDeadline) {
  source_.Add("hello");
  source_.SetAway(true);
  EXPECT_TRUE(absl::IsUnavailable(FetchAll({Want("hello")}, absl::Milliseconds(500))));
  EXPECT_GT(source_.asked().size(), 1u);
  std::thread back([&] { source_.SetAway(false); });
  EXPECT_TRUE(Fetch("hello").ok());
  back.join();
}

TEST_F(FileCacheTest, ManyWhoWantTheSameFilesFetchEachOnce) {
  std::vector<Wanted> files;
  for (int i = 0; i < 200; ++i) {
    const std::string content = "file " + std::to_string(i);
    source_.Add(content);
    files.push_back(Want(content));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_TRUE(FetchAll(files).ok()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(source_.asked().size(), 200u);
}

TEST_F(FileCacheTest, AFileThatWasDamagedOnDiskIsDroppedAndFetchedAnew) {
  source_.Add("hello");
  ASSERT_TRUE(Fetch("hello").ok());
  Spill(KeptPath("hello"), "hellO");
  const absl::Status status = cache_->ReadAll(Sha256Of("hello")).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(KeptPath("hello")));
  ASSERT_TRUE(Fetch("hello").ok());
  EXPECT_EQ(cache_->ReadAll(Sha256Of("hello")).value(), "hello");
}

TEST_F(FileCacheTest, TheLongestUnusedGoesWhenThereAreTooMany) {
  options_.max_bytes = 2 * 4096;
  Open();
  for (const char* content : {"one", "two", "three"}) {
    source_.Add(content);
    ASSERT_TRUE(Fetch(content).ok());
    now_ += absl::Hours(1);
  }
  EXPECT_FALSE(IsKept("one"));
  ASSERT_TRUE(Fetch("two").ok());  // is used again
  now_ += absl::Hours(1);
  ASSERT_TRUE(Fetch("one").ok());
  EXPECT_TRUE(IsKept("two"));
  EXPECT_FALSE(IsKept("three"));
  EXPECT_EQ(cache_->used_bytes(), 2u * 4096);
}

TEST_F(FileCacheTest, WhatALaunchUsesStaysHoweverFullItIs) {
  options_.max_bytes = 0;
  Open();
  source_.Add("held");
  source_.Add("other");
  {
    const auto hold = cache_->Fetch({Want("held")}, absl::Seconds(30));
    ASSERT_TRUE(hold.ok());
    ASSERT_TRUE(Fetch("other").ok());
    EXPECT_TRUE(IsKept("held"));
    EXPECT_FALSE(IsKept("other"));
  }
  EXPECT_FALSE(IsKept("held"));
}

TEST_F(FileCacheTest, WhatNobodyHasUsedForAWeekGoes) {
  source_.Add("old");
  source_.Add("new");
  ASSERT_TRUE(Fetch("old").ok());
  Spill(IncomingPath("part"), "pa");
  now_ += absl::Hours(24 * 8);
  ASSERT_TRUE(Fetch("new").ok());
  EXPECT_FALSE(IsKept("old"));
  EXPECT_TRUE(IsKept("new"));
  EXPECT_FALSE(std::filesystem::exists(IncomingPath("part")));
}

TEST_F(FileCacheTest, ADiskWithoutRoomIsSaidSoBeforeAnythingIsFetched) {
  options_.keep_free_bytes = uint64_t{1} << 60;
  Open();
  source_.Add("hello");
  const absl::Status status = Fetch("hello");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ / "files"));
  EXPECT_TRUE(source_.asked().empty());
}

TEST_F(FileCacheTest, OfWhatDoesNotFitTogetherNothingIsFetchedAndNothingElseGivesWay) {
  source_.Add("another job's");
  ASSERT_TRUE(Fetch("another job's").ok());
  options_.free_bytes = [](const std::string&) { return 3000; };
  Open();
  std::vector<Wanted> files;
  for (char c = '0'; c < '9'; ++c) {
    files.push_back(Want(std::string(2000, c)));
    source_.Add(std::string(2000, c));
  }
  const size_t asked = source_.asked().size();
  EXPECT_TRUE(absl::IsResourceExhausted(FetchAll(files)));
  EXPECT_EQ(source_.asked().size(), asked);
  EXPECT_TRUE(IsKept("another job's"));
}

TEST_F(FileCacheTest, RoomForOneFileIsNotGivenToTwoAtOnce) {
  options_.free_bytes = [](const std::string&) { return 100; };
  Open();
  const std::string first(60, '1');
  const std::string second(60, '2');
  source_.Add(first);
  source_.Add(second);
  source_.SetHanging(true);
  absl::Status of_first;
  std::thread thread([&] { of_first = Fetch(first); });
  source_.AwaitAsked(1);
  EXPECT_TRUE(absl::IsResourceExhausted(Fetch(second)));
  source_.SetHanging(false);
  thread.join();
  EXPECT_TRUE(of_first.ok()) << of_first;
  // The first fetch has written its files.
  EXPECT_TRUE(Fetch(second).ok());
}

}  // namespace
}  // namespace muster::uploads
