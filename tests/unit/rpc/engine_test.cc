// Tests the parts of the engine that are worth a test of their own: the inbox, the committer, the
// cache of specs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "broker/engine/committer.h"
#include "broker/engine/inbox.h"
#include "broker/engine/spec_cache.h"
#include "daemon/log.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

constexpr Inbox::Cost kRoom{1'000'000, 1'000'000};

Inbox::Entry Entry(uint64_t job, Inbox::Cost cost = {}) {
  return {core::Cancel{.ticket = 0, .jobs = {job}, .reason = "", .user = ""}, nullptr, cost};
}

std::vector<uint64_t> Jobs(const std::vector<Inbox::Entry>& batch) {
  std::vector<uint64_t> jobs;
  for (const Inbox::Entry& entry : batch)
    jobs.push_back(std::get<core::Cancel>(entry.input).jobs.at(0));
  return jobs;
}

TEST(Inbox, ABatchTakesFromEveryLaneHoweverFullOneIs) {
  Inbox inbox({kRoom, kRoom, kRoom}, 2);
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(i)));
  ASSERT_TRUE(inbox.Push(Inbox::Lane::kAgents, Entry(10)));
  ASSERT_TRUE(inbox.Push(Inbox::Lane::kRequests, Entry(20)));
  EXPECT_THAT(Jobs(inbox.Take(absl::ZeroDuration())), ElementsAre(10, 20, 1, 2));
  EXPECT_THAT(Jobs(inbox.Take(absl::ZeroDuration())), ElementsAre(3, 4));
}

TEST(Inbox, AFullLaneRefusesAndLeavesTheOthersAlone) {
  Inbox inbox({kRoom, kRoom, Inbox::Cost{2, 100}}, 10);
  EXPECT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(1, {1, 60})));
  EXPECT_FALSE(inbox.Push(Inbox::Lane::kSubmits, Entry(2, {1, 60}))) << "too many bytes";
  EXPECT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(3, {1, 40})));
  EXPECT_FALSE(inbox.Push(Inbox::Lane::kSubmits, Entry(4, {1, 0}))) << "too many items";
  EXPECT_TRUE(inbox.Push(Inbox::Lane::kRequests, Entry(5)));
  inbox.Take(absl::ZeroDuration());
  EXPECT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(6, {1, 60})));
}

TEST(Inbox, AnEntryThatIsLargerThanItsLaneIsTakenAlone) {
  Inbox inbox({kRoom, kRoom, Inbox::Cost{2, 100}}, 10);
  EXPECT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(1, {1000, 0})));
  EXPECT_FALSE(inbox.Push(Inbox::Lane::kSubmits, Entry(2)));
}

TEST(Inbox, WhileHeldALittleWaitsAndMuchDoesNot) {
  Inbox inbox({kRoom, kRoom, kRoom}, 1000);
  inbox.Hold();
  ASSERT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(1)));
  std::vector<uint64_t> taken;
  std::thread consumer([&] { taken = Jobs(inbox.Take(absl::InfiniteDuration())); });
  ASSERT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(2, {Inbox::kEagerItems, 0})));
  consumer.join();
  EXPECT_THAT(taken, ElementsAre(1, 2)) << "one batch, although the consumer waited from the first";

  ASSERT_TRUE(inbox.Push(Inbox::Lane::kSubmits, Entry(3)));
  consumer = std::thread([&] { taken = Jobs(inbox.Take(absl::InfiniteDuration())); });
  inbox.Release();
  consumer.join();
  EXPECT_THAT(taken, ElementsAre(3));
}

TEST(Inbox, WhatWaitsAtTheCloseIsStillHandedOut) {
  Inbox inbox({kRoom, kRoom, kRoom}, 10);
  ASSERT_TRUE(inbox.Push(Inbox::Lane::kRequests, Entry(1)));
  inbox.Close();
  EXPECT_FALSE(inbox.Push(Inbox::Lane::kRequests, Entry(2)));
  EXPECT_FALSE(inbox.drained());
  EXPECT_THAT(Jobs(inbox.Take(absl::InfiniteDuration())), ElementsAre(1));
  EXPECT_TRUE(inbox.drained());
}

core::Output OutputOf(uint64_t job) {
  core::Output output;
  output.changes.push_back(core::PutBrokerEpoch{job});
  output.effects.push_back(core::StatusReply{.ticket = job});
  return output;
}

TEST(Committer, WhatWaitsIsCommittedTogetherAndCarriedOutInOrder) {
  GatedStore store;
  std::vector<size_t> commits;
  std::vector<uint64_t> carried;
  Committer committer(
      {}, &store, [](bool) {},
      [&](core::Output committed) {
        commits.push_back(committed.changes.size());
        for (const auto& e : committed.effects) {
          carried.push_back(std::get<core::StatusReply>(e).ticket);
        }
      },
      [](const absl::Status&) {});
  store.CloseGate();
  committer.Start();
  committer.Offer(OutputOf(1));
  store.AwaitCommit();
  for (uint64_t i = 2; i <= 5; ++i) committer.Offer(OutputOf(i));
  store.OpenGate();
  committer.Stop();
  EXPECT_THAT(commits, ElementsAre(1, 4));
  EXPECT_THAT(carried, ElementsAre(1, 2, 3, 4, 5));
}

TEST(Committer, NoCommitHasMoreAssignmentsToCarryOutThanItsBound) {
  GatedStore store;
  size_t most = 0;
  Committer committer(
      {.max_waiting_rows = 3}, &store, [](bool) {},
      [&](core::Output committed) { most = std::max(most, committed.effects.size()); },
      [](const absl::Status&) {});
  committer.Start();
  core::Output resend;
  resend.effects.push_back(core::SendAssignments{1, std::vector<agent::v1::Assignment>(3)});
  for (int i = 0; i < 1000; ++i) committer.Offer(resend);
  committer.Stop();
  EXPECT_EQ(most, 1u) << "each of them is as much as may wait";
}

TEST(Committer, AfterAFailureNothingIsCarriedOut) {
  GatedStore store;
  store.FailCommits(absl::DataLossError("the disk is gone"));
  int carried = 0;
  int failures = 0;
  Committer committer(
      {}, &store, [](bool) {}, [&](core::Output) { ++carried; },
      [&](const absl::Status&) { ++failures; });
  committer.Start();
  for (uint64_t i = 1; i <= 100; ++i) committer.Offer(OutputOf(i));
  committer.Stop();
  EXPECT_EQ(carried, 0);
  EXPECT_EQ(failures, 1);
}

TEST(SpecCache, KeepsTheNewestWithinItsBounds) {
  SpecCache cache(2, 1000);
  const auto spec = std::make_shared<const v1::JobSpec>(TrueSpec());
  for (uint64_t job = 1; job <= 3; ++job) cache.Put(job, {spec, "ada"});
  EXPECT_FALSE(cache.Take(1).has_value());
  EXPECT_EQ(cache.Take(3)->user, "ada");
  EXPECT_FALSE(cache.Take(3).has_value()) << "what was taken is gone";
  v1::JobSpec large = TrueSpec();
  large.set_working_directory(std::string(2000, 'd'));
  cache.Put(4, {std::make_shared<const v1::JobSpec>(large), "ada"});
  EXPECT_EQ(cache.size(), 0u);
}

std::string Format(bool json, const std::string& payload) {
  EventFormatter formatter(json);
  spdlog::memory_buf_t out;
  formatter.format(spdlog::details::log_msg("l", spdlog::level::warn, payload), out);
  return std::string(out.data(), out.size());
}

TEST(EventLog, QuotesWhatCouldBeMisread) {
  const std::string payload =
      "agent_closed\x1f"
      "cluster\x1f"
      "gpu\x1fwhy\x1fsaid \"no\"\n";
  EXPECT_THAT(
      Format(false, payload),
      ::testing::EndsWith("WARN agent_closed cluster=gpu why=\"said \\\"no\\\"\\u000a\"\n"));
  EXPECT_THAT(
      Format(true, payload),
      ::testing::HasSubstr(R"("event":"agent_closed","cluster":"gpu","why":"said \"no\"\u000a"})"));
}

}  // namespace
}  // namespace muster::broker
