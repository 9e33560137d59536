#include "agents/kubernetes/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"

namespace muster::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kRun[] = "k7m2-42-1";

Json MakeJob(const std::string& uid, const std::string& version = "1") {
  return {{"metadata",
           {{"name", kRun},
            {"namespace", "lab"},
            {"uid", uid},
            {"resourceVersion", version},
            {"creationTimestamp", "2026-11-21T10:00:00Z"},
            {"labels", {{kRunLabel, kRun}}}}}};
}

Json MakePod(const std::string& uid, const std::string& phase) {
  return {
      {"metadata",
       {{"name", std::string(kRun) + "-" + uid}, {"uid", uid}, {"labels", {{kRunLabel, kRun}}}}},
      {"status", {{"phase", phase}}}};
}

Json MakeEvent(const std::string& uid, const std::string& object) {
  return {{"metadata", {{"uid", uid}}},
          {"involvedObject", {{"name", object}}},
          {"type", "Warning"},
          {"reason", "FailedMount"}};
}

class RunStoreTest : public testing::Test {
 protected:
  RunStoreTest() {
    store.SetWaker([this] { ++wakes; });
    store.Want(kRun);
    store.TakeNews();
  }

  std::vector<PodObject> heard;
  RunStore store{[this](const PodObject& pod) { heard.push_back(pod); }, absl::Now};
  int wakes = 0;
};

TEST_F(RunStoreTest, AnEventBelongsToTheRunThatItsObjectIsNamedAfter) {
  EXPECT_EQ(RunKeyOfName("k7m2-42-1"), "k7m2-42-1");
  EXPECT_EQ(RunKeyOfName("k7m2-42-1-0-x8f2p"), "k7m2-42-1");
  EXPECT_EQ(RunKeyOfName("k7m2-42"), "");
  EXPECT_EQ(RunKeyOfName("a-b-c-d"), "");
  store.events()->OnChange(MakeEvent("e1", "k7m2-42-1-0-x8f2p"));
  store.events()->OnChange(MakeEvent("e2", "k7m2-43-1"));
  EXPECT_EQ(store.Facts(kRun).events.size(), 1);
}

TEST_F(RunStoreTest, OnlyTheLatestWarningsOfARunAreKept) {
  for (int i = 0; i < 20; ++i) store.events()->OnChange(MakeEvent("e" + std::to_string(i), kRun));
  store.events()->OnChange(MakeEvent("e19", kRun));  // it has happened again
  const std::vector<EventObject> events = store.Facts(kRun).events;
  ASSERT_EQ(events.size(), kMaxEventsOfRun);
  EXPECT_EQ(events.front().uid, "e12");
  EXPECT_EQ(events.back().uid, "e19");
}

TEST_F(RunStoreTest, OfManyWarningsTheFirstOfEachReasonIsKept) {
  for (int i = 10; i < 40; ++i) {
    Json event = MakeEvent("e" + std::to_string(i), kRun);
    event["firstTimestamp"] = "2026-11-21T15:02:" + std::to_string(i) + "Z";
    store.events()->OnChange(event);
  }
  const std::vector<EventObject> events = store.Facts(kRun).events;
  ASSERT_EQ(events.size(), kMaxEventsOfRun);
  EXPECT_EQ(events.front().uid, "e10") << "since when";
  EXPECT_EQ(events[1].uid, "e33");
}

TEST_F(RunStoreTest, SinceWhenALaunchIsCompleteIsKeptForTheSameJob) {
  Json job = MakeJob("u1", "1");
  store.jobs()->OnChange(job);
  EXPECT_FALSE(store.Facts(kRun).job->launch_complete_since.has_value());
  job["metadata"]["annotations"] = {{kLaunchAnnotation, kLaunchComplete}};
  job["metadata"]["resourceVersion"] = "2";
  store.jobs()->OnChange(job);
  const auto since = store.Facts(kRun).job->launch_complete_since;
  ASSERT_TRUE(since.has_value());
  job["metadata"]["resourceVersion"] = "3";
  store.jobs()->OnChange(job);
  EXPECT_EQ(store.Facts(kRun).job->launch_complete_since, since);
  job["metadata"]["uid"] = "u2";
  store.jobs()->OnChange(job);
  EXPECT_GT(store.Facts(kRun).job->launch_complete_since, since);
}

TEST_F(RunStoreTest, NewsOfAWantedRunWakesAndIsToldOnce) {
  store.jobs()->OnChange(MakeJob("u1"));
  EXPECT_EQ(wakes, 1);
  EXPECT_THAT(store.TakeNews(), ElementsAre(kRun));
  EXPECT_THAT(store.TakeNews(), IsEmpty());
}

TEST_F(RunStoreTest, NewsOfAnotherRunDoesNotWake) {
  Json job = MakeJob("u1");
  job["metadata"]["labels"][kRunLabel] = "k7m2-43-1";
  store.jobs()->OnChange(job);
  EXPECT_EQ(wakes, 0);
  EXPECT_THAT(store.TakeNews(), IsEmpty());
}

TEST_F(RunStoreTest, AJobThatANewListLacksIsNeitherThereNorDeletedUntilTheServerSaysSo) {
  store.jobs()->OnChange(MakeJob("u1"));
  store.jobs()->OnAll({});
  EXPECT_FALSE(store.Facts(kRun).job.has_value());
  EXPECT_FALSE(store.Facts(kRun).deleted_job.has_value());
  store.PutAbsent(kRun);
  ASSERT_TRUE(store.Facts(kRun).deleted_job.has_value());
  EXPECT_EQ(store.Facts(kRun).deleted_job->name.uid, "u1");
}

TEST_F(RunStoreTest, AJobYoungerThanTheListIsThereOnceTheServerHasShownIt) {
  store.jobs()->OnChange(MakeJob("u1"));
  store.jobs()->OnAll({});
  store.Put(ParseJob(MakeJob("u1")));
  store.PutAbsent(kRun);
  EXPECT_TRUE(store.Facts(kRun).job.has_value());
}

TEST_F(RunStoreTest, AnAnswerThatComesLateBringsNothingBack) {
  store.jobs()->OnChange(MakeJob("u1", "11"));
  store.Put(ParseJob(MakeJob("u1", "9")));
  EXPECT_EQ(store.Facts(kRun).job->name.resource_version, "11");
  store.jobs()->OnDelete(MakeJob("u1", "12"));
  store.Put(ParseJob(MakeJob("u1", "11")));
  EXPECT_FALSE(store.Facts(kRun).job.has_value());
  store.Put(ParseJob(MakeJob("u2", "13")));
  EXPECT_TRUE(store.Facts(kRun).job.has_value());
}

TEST_F(RunStoreTest, AWatchThatIsBehindDoesNotUndoAnAnswerButANewListDoes) {
  store.Put(ParseJob(MakeJob("u1", "10")));
  store.TakeNews();
  store.jobs()->OnChange(MakeJob("u1", "9"));
  EXPECT_EQ(store.Facts(kRun).job->name.resource_version, "10");
  EXPECT_THAT(store.TakeNews(), IsEmpty());
  store.jobs()->OnChange(MakeJob("u1", "11"));
  EXPECT_EQ(store.Facts(kRun).job->name.resource_version, "11");
  store.jobs()->OnAll({MakeJob("u1", "9")});
  EXPECT_EQ(store.Facts(kRun).job->name.resource_version, "9") << "the server was set back";
}

TEST_F(RunStoreTest, AWatchOfPodsThatIsBehindDoesNotUndoAnAnswerButANewListDoes) {
  const auto pod = [](const char* phase, const char* version) {
    Json made = MakePod("p1", phase);
    made["metadata"]["resourceVersion"] = version;
    return made;
  };
  const auto phase = [this] { return store.Facts(kRun).pods[0].phase; };
  store.PutPods({ParsePod(pod("Failed", "10"))});
  ASSERT_EQ(heard.size(), 1);
  store.pods()->OnChange(pod("Running", "9"));
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(heard.size(), 1);
  store.PutPods({ParsePod(pod("Running", "8"))});
  EXPECT_EQ(phase(), "Failed");
  store.pods()->OnAll({pod("Running", "9")});
  EXPECT_EQ(phase(), "Running") << "the server was set back";
}

TEST_F(RunStoreTest, TheDeletionOfAnOlderJobOfTheSameNameIsNotThatOfThePresentOne) {
  store.jobs()->OnChange(MakeJob("u2"));
  store.jobs()->OnDelete(MakeJob("u1"));
  EXPECT_TRUE(store.Facts(kRun).job.has_value());
}

TEST_F(RunStoreTest, ADeletedPodThatHadEndedIsRememberedAndOthersAreNot) {
  store.pods()->OnChange(MakePod("p1", "Running"));
  store.pods()->OnChange(MakePod("p2", "Running"));
  store.pods()->OnDelete(MakePod("p1", "Failed"));
  store.pods()->OnDelete(MakePod("p2", "Running"));
  const std::vector<PodObject> pods = store.Facts(kRun).pods;
  ASSERT_EQ(pods.size(), 1);
  EXPECT_EQ(pods[0].phase, "Failed");
  EXPECT_TRUE(heard.back().is_gone);
}

TEST_F(RunStoreTest, WhatANewListOfPodsLacksIsGoneUnlessItTellsHowItEnded) {
  store.pods()->OnChange(MakePod("p1", "Succeeded"));
  store.pods()->OnChange(MakePod("p2", "Running"));
  store.pods()->OnAll({MakePod("p3", "Pending")});
  std::vector<std::string> phases;
  for (const PodObject& pod : store.Facts(kRun).pods) phases.push_back(pod.phase);
  EXPECT_THAT(phases, ElementsAre("Succeeded", "Pending"));
}

TEST_F(RunStoreTest, AJobIsLeftOverOnceNobodyWantsIt) {
  store.jobs()->OnChange(MakeJob("u1"));
  const absl::Time later = absl::Now() + kAbandonedAfter;
  EXPECT_THAT(store.FindLeftovers(later), IsEmpty());
  const std::optional<Leftover> left = store.Forget(kRun);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->due, CleanUp::kDelete) << "half a launch";
  ASSERT_EQ(store.FindLeftovers(absl::UnixEpoch()).size(), 1) << "what was let go is due at once";
  store.Want(kRun);
  EXPECT_THAT(store.FindLeftovers(later), IsEmpty());
}

}  // namespace
}  // namespace muster::kubernetes
