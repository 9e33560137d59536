// Judges runs whose users can write the exit record.
#include <optional>

#include "agents/slurm/verdict.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

constexpr Patience kUsersPatience{absl::Seconds(30), absl::Seconds(60)};

// Makes slurm job 17, with a record of the code.
RunFacts UsersFacts(int code) {
  RunFacts facts;
  facts.run_key = "k7m2-42-1";
  facts.job_id = {17};
  facts.now = absl::FromUnixSeconds(1000);
  facts.queue_answered = true;
  facts.record_is_the_users = true;
  facts.record = ExitRecord{};
  facts.record->job_id = {17};
  facts.record->phase = "command";
  facts.record->code = code;
  facts.record->start = absl::FromUnixSeconds(901);
  facts.record->end = absl::FromUnixSeconds(950);
  facts.ended_for = facts.missing_for = absl::Hours(1);
  return facts;
}

RunFacts UsersInQueue(RunFacts facts, const char* state) {
  facts.queue = QueueRow{};
  facts.queue->job_id = {17};
  facts.queue->state = ParseState(state);
  facts.queue->node_list = "n1";
  return facts;
}

v1::RunState UsersState(const RunFacts& facts) {
  const std::optional<agents::Observation> seen = Judge(facts, kUsersPatience);
  return seen.has_value() ? seen->state : v1::RUN_STATE_UNSPECIFIED;
}

TEST(UsersVerdictTest, ARecordOfTheUsersMakesNoSuccess) {
  EXPECT_FALSE(ProvesSuccess(UsersFacts(0)));
  EXPECT_EQ(UsersState(UsersInQueue(UsersFacts(0), "RUNNING")), v1::RUN_STATE_FINISHING);
  EXPECT_EQ(UsersState(UsersInQueue(UsersFacts(0), "COMPLETED")), v1::RUN_STATE_SUCCEEDED);
  EXPECT_EQ(UsersState(UsersInQueue(UsersFacts(0), "FAILED")), v1::RUN_STATE_FAILED);
  EXPECT_EQ(UsersState(UsersInQueue(UsersFacts(0), "TIMEOUT")), v1::RUN_STATE_FAILED);
  RunFacts forgotten = UsersFacts(0);
  forgotten.history_answer = RunFacts::History::kUnavailable;
  EXPECT_EQ(UsersState(forgotten), v1::RUN_STATE_LOST);
  forgotten.record_is_the_users = false;
  EXPECT_EQ(UsersState(forgotten), v1::RUN_STATE_SUCCEEDED);
}

TEST(UsersVerdictTest, TheCodeIsSlurmsWhereTheRecordDenies) {
  RunFacts facts = UsersInQueue(UsersFacts(0), "FAILED");
  EXPECT_TRUE(NeedsHistory(facts));
  facts.history_answer = RunFacts::History::kAnswered;
  facts.history = HistoryRow{};
  facts.history->job_id = {17};
  facts.history->state = ParseState("FAILED");
  facts.history->exit_code = 5;
  facts.history->node_list = "n1";
  const std::optional<agents::Observation> seen = Judge(facts, kUsersPatience);
  ASSERT_TRUE(seen.has_value() && seen->exit.has_value());
  EXPECT_EQ(seen->exit->code(), 5);
}

TEST(UsersVerdictTest, ARecordAddsToAFailure) {
  const std::optional<agents::Observation> seen =
      Judge(UsersInQueue(UsersFacts(3), "FAILED"), kUsersPatience);
  ASSERT_TRUE(seen.has_value() && seen->exit.has_value());
  EXPECT_EQ(seen->exit->code(), 3);
}

}  // namespace
}  // namespace muster::slurm
