// Tests the ends of runs that cannot go on.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BackendEndTest : public ScriptedClusterTest {
 protected:
  static constexpr char kHopeless[] = "k7m2-1-1";
  static constexpr char kWell[] = "k7m2-99-1";

  static Json PodOf(const std::string& run_key, const std::string& status) {
    return {{"metadata",
             {{"name", run_key + "-0"},
              {"namespace", "lab"},
              {"uid", "p-" + run_key},
              {"resourceVersion", "6"},
              {"labels", {{kRunLabel, run_key}}}}},
            {"spec", {{"nodeName", "node-1"}}},
            {"status", Json::parse(status)}};
  }
  static Json RunningPod(const std::string& run_key) {
    return PodOf(run_key, R"({"phase": "Running", "containerStatuses": [
        {"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:30Z"}}}]})");
  }
  // Returns the status of a pod whose program has.
  static std::string Ended(int code) {
    return absl::StrCat(R"({"phase": ")", code == 0 ? "Succeeded" : "Failed",
                        R"(", "containerStatuses": [{"name": "main", "state": {"terminated": {
                          "exitCode": )",
                        code, R"(, "reason": ")", code == 0 ? "Completed" : "Error",
                        R"(", "startedAt": "2026-01-01T00:00:30Z",
                          "finishedAt": "2026-01-01T00:00:31Z"}}}]})");
  }
  // A run whose image can never be had, and one that is well.
  void AddHopeless(const std::string& run_key) {
    jobs_.push_back(MakeJob(run_key));
    pods_.push_back(PodOf(run_key, R"({"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "InvalidImageName"}}}]})"));
  }
  void AddWell() {
    jobs_.push_back(MakeJob(kWell));
    pods_.push_back(RunningPod(kWell));
  }
  // Returns the run as the last look that reported it saw it.
  agents::Observation Await(const std::string& run_key, v1::RunState state,
                            const std::string& words = "") {
    agents::Observation last;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (absl::Now() < end) {
      for (const agents::Observation& seen : Observe(run_key).observations) last = seen;
      if (last.state == state && last.reason.message().find(words) != std::string::npos) break;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return last;
  }
  std::vector<std::string> TakeDeletions() {
    std::vector<std::string> changes = TakeChanges();
    std::erase_if(changes, [](const auto& change) { return !change.starts_with("DELETE "); });
    return changes;
  }
  std::vector<std::string> AwaitDeletions(size_t count) {
    std::vector<std::string> deletions;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (deletions.size() < count && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      for (std::string& deletion : TakeDeletions()) deletions.push_back(std::move(deletion));
    }
    return deletions;
  }
  void AnswerDeletionsWith(ScriptedReply reply) {
    Set([&] {
      answer_first_ = [reply](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
        if (request.method != "DELETE") return std::nullopt;
        return reply;
      };
    });
  }
};

TEST_F(BackendEndTest, ADeletionThatTakesItsTimeKeepsNobodyFromBeingSeen) {
  AddHopeless(kHopeless);
  AddWell();
  // The call itself comes again and again meanwhile.
  AnswerDeletionsWith({.status = 429, .headers = {"Retry-After: 1"}});
  Start({kHopeless, kWell});
  TakeChanges();
  const absl::Time begin = absl::Now();
  const agents::ObserveOutcome seen = backend_->Observe({Handle(kHopeless), Handle(kWell)});
  EXPECT_LT(absl::Now() - begin, absl::Seconds(1));
  ASSERT_THAT(seen.observations, SizeIs(2)) << seen.scheduler;
  EXPECT_EQ(seen.observations[0].state, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(seen.observations[0].reason.message(),
              HasSubstr("it cannot go on, and is being taken away"));
  EXPECT_EQ(seen.observations[1].state, v1::RUN_STATE_RUNNING);
  EXPECT_THAT(AwaitDeletions(1), SizeIs(1));
  AnswerDeletionsWith({.body = "{}"});
  backend_.reset();
}

TEST_F(BackendEndTest, ADeletionThatIsRefusedIsTriedAgainAfterAPauseAndSaysSo) {
  for (const bool is_cut : {false, true}) {
    Set([this] {
      jobs_ = pods_ = Json::array();
      AddHopeless(kHopeless);
    });
    AnswerDeletionsWith({.status = 503, .body = "a webhook is away", .hangs_up = is_cut});
    Start({kHopeless});
    TakeChanges();
    const agents::Observation seen =
        Await(kHopeless, v1::RUN_STATE_FINISHING, "could not be deleted");
    EXPECT_THAT(seen.reason.message(), AllOf(HasSubstr("it cannot go on"),
                                             HasSubstr("; its Job could not be deleted yet: ")));
    if (!is_cut) {
      EXPECT_THAT(seen.reason.message(),
                  HasSubstr("delete Job lab/k7m2-1-1: the API server answered 503"));
    }
    TakeChanges();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(HoldOne(*backend_, Handle(kHopeless), false).ok());  // there are news of it
      EXPECT_THAT(Observe(kHopeless).observations, SizeIs(1));
    }
    EXPECT_THAT(TakeDeletions(), IsEmpty()) << "not with each look";
  }
  AnswerDeletionsWith({.body = "{}"});
  const absl::Time refused = absl::Now();
  while (TakeDeletions().empty()) {
    ASSERT_LT(absl::Now() - refused, absl::Seconds(60)) << "it is tried again";
    (void)Await(kHopeless, v1::RUN_STATE_FINISHING);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_GE(absl::Now() - refused, absl::Seconds(8)) << "after a pause";
}

TEST_F(BackendEndTest, OfARunThatIsForgottenNoChangeIsRemembered) {
  for (const bool is_under_way : {false, true}) {
    Set([this] {
      jobs_ = pods_ = Json::array();
      AddHopeless(kHopeless);
    });
    Set([&] {
      answer_first_ = [is_under_way, is_first = true](
                          const ScriptedRequest& request) mutable -> std::optional<ScriptedReply> {
        if (request.method != "DELETE") return std::nullopt;
        if (!std::exchange(is_first, false)) return ScriptedReply{.body = "{}"};
        if (!is_under_way) return ScriptedReply{.status = 503};
        return ScriptedReply{.status = 429, .headers = {"Retry-After: 1"}};
      };
    });
    Start({kHopeless});
    TakeChanges();
    (void)Await(kHopeless, v1::RUN_STATE_FINISHING, is_under_way ? "" : "could not be deleted");
    if (is_under_way) {
      EXPECT_THAT(AwaitDeletions(1), SizeIs(1));
    }
    EXPECT_EQ(backend_->CountChanges(), 1);
    EXPECT_TRUE(ForgetOne(*backend_, Handle(kHopeless)).ok());
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (backend_->CountChanges() > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(2));
    EXPECT_EQ(backend_->CountChanges(), 0) << is_under_way;
  }
}

TEST_F(BackendEndTest, WhatIsBeingDeletedAlreadyIsNotDeletedAgain) {
  AddHopeless(kHopeless);
  Start({kHopeless});
  TakeChanges();
  (void)Await(kHopeless, v1::RUN_STATE_FINISHING);
  EXPECT_THAT(AwaitDeletions(1), SizeIs(1));
  Set([this] { jobs_[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z"; });
  Start({kHopeless});
  EXPECT_EQ(Await(kHopeless, v1::RUN_STATE_FINISHING).state, v1::RUN_STATE_FINISHING);
  backend_.reset();  // all is done that was begun
  EXPECT_THAT(TakeDeletions(), IsEmpty());
}

TEST_F(BackendEndTest, AGangOfWhichARankHasNeverStartedIsTakenAwayThoughAnotherHasRunAndEnded) {
  AddHopeless(kHopeless);
  jobs_[0]["spec"]["completions"] = 2;
  Json ended = PodOf(kHopeless, Ended(3));
  Json running = RunningPod(kHopeless);
  for (Json* pod : {&ended, &running}) {
    (*pod)["metadata"]["name"] = std::string(kHopeless) + "-1";
    (*pod)["metadata"]["uid"] = "p-1";
    (*pod)["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "1";
  }
  pods_.push_back(running);
  AnswerDeletionsWith({.status = 503});
  Start({kHopeless});
  TakeChanges();
  (void)Await(kHopeless, v1::RUN_STATE_FINISHING, "it cannot go on");
  EXPECT_THAT(AwaitDeletions(1), SizeIs(1));
  Set([&] { pods_[1] = ended; });
  Start({kHopeless});
  EXPECT_THAT(Await(kHopeless, v1::RUN_STATE_FINISHING, "it cannot go on").reason.message(),
              HasSubstr("it cannot go on"));
  EXPECT_THAT(AwaitDeletions(1), SizeIs(1));
}

// The last of many runs that are given up, whose pod becomes like this before its deletion has its
// turn.
class BackendLateDeletionTest : public BackendEndTest {
 protected:
  // Returns the run once it is in that state, with such words.
  agents::Observation AwaitLast(const std::string& pod_status, v1::RunState state,
                                const std::string& words) {
    std::vector<std::string> run_keys;
    std::vector<agents::RunHandle> runs;
    for (int job = 1; job <= kDeletionThreads + 1; ++job) {
      run_keys.push_back(absl::StrCat("k7m2-", job, "-1"));
      runs.push_back(Handle(run_keys.back()));
      AddHopeless(run_keys.back());
    }
    const std::string last = run_keys.back();
    jobs_.push_back(MakeJob(kWell));  // and no pod of it yet
    run_keys.push_back(kWell);
    const std::string news = NewsOf(PodOf(last, pod_status)) + NewsOf(RunningPod(kWell));
    bool has_begun = false;
    bool is_busy = true;
    const Meanwhile meanwhile(
        this, [&](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
          if (request.method == "DELETE") return ScriptedReply{.status = is_busy ? 429 : 200};
          const bool is_watch = request.target.find("/pods?") != std::string::npos &&
                                request.target.find("watch=1") != std::string::npos;
          if (!is_watch) return std::nullopt;
          if (!has_begun) return ScriptedReply();  // it is asked for again
          return ScriptedReply{.body = news, .stays_open = true};
        });
    Start(run_keys);
    EXPECT_THAT(backend_->Observe(runs).observations, SizeIs(runs.size()));
    EXPECT_THAT(AwaitDeletions(kDeletionThreads), SizeIs(kDeletionThreads)) << "all are taken";
    Set([&] { has_begun = true; });
    EXPECT_EQ(Await(kWell, v1::RUN_STATE_RUNNING).state, v1::RUN_STATE_RUNNING);
    EXPECT_THAT(Observe(last).observations, IsEmpty()) << "its deletion may be carried out";
    Set([&] { is_busy = false; });
    const agents::Observation seen = Await(last, state, words);
    backend_.reset();  // all is done that was begun
    for (const std::string& deletion : TakeDeletions()) {
      EXPECT_THAT(deletion, testing::Not(HasSubstr("/" + last + " ")));
    }
    return seen;
  }

 private:
  static std::string NewsOf(Json pod) {
    pod["metadata"]["resourceVersion"] = "8";
    return Json{{"type", "MODIFIED"}, {"object", std::move(pod)}}.dump() + "\n";
  }
};

TEST_F(BackendLateDeletionTest, AProgramThatBeginsBeforeItsDeletionHasItsTurnGoesOn) {
  const std::string running = RunningPod("any")["status"].dump();
  EXPECT_EQ(AwaitLast(running, v1::RUN_STATE_RUNNING, "").state, v1::RUN_STATE_RUNNING);
}

TEST_F(BackendLateDeletionTest, AProgramThatHasSucceededBeforeItsDeletionHasItsTurnKeepsItsEnd) {
  const std::string words = "its pods have ended";
  EXPECT_EQ(AwaitLast(Ended(0), v1::RUN_STATE_FINISHING, words).reason.message(), words);
}

TEST_F(BackendLateDeletionTest, AProgramThatHasFailedBeforeItsDeletionHasItsTurnKeepsItsEnd) {
  const std::string words = "a pod of it has failed";
  EXPECT_EQ(AwaitLast(Ended(3), v1::RUN_STATE_FINISHING, words).reason.message(), words);
}

}  // namespace
}  // namespace muster::kubernetes
