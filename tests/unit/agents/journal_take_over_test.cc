// A journal of an older release, opened by this one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "agents/core/agent_core.h"
#include "agents/core/journal.h"
#include "tests/unit/agents/journal_version_1.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class JournalTakeOverTest : public testing::Test {
 protected:
  JournalTakeOverTest() {
    std::string pattern = testing::TempDir() + "/journal.XXXXXX";
    options_.state_dir = mkdtemp(pattern.data());
    options_.cluster = "lab";
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open((options_.state_dir + "/journal.db").c_str(), &raw), SQLITE_OK);
    const std::string dump(kJournalVersion1Dump);
    EXPECT_EQ(sqlite3_exec(raw, dump.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(raw);
    sqlite3_close(raw);
  }
  ~JournalTakeOverTest() override { std::filesystem::remove_all(options_.state_dir); }

  std::unique_ptr<Journal> Open() {
    auto journal = OpenJournal(options_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : nullptr;
  }

  JournalOptions options_;
};

TEST_F(JournalTakeOverTest, TheRunsOfFormat1AreAllThere) {
  const JournalContent content = Open()->TakeContent();
  EXPECT_EQ(content.meta, (JournalMeta{"071a53d0c8d790b125716da2907d05a8", "d5ww", 1, 16}));
  ASSERT_THAT(content.runs, SizeIs(4));
  for (uint64_t job = 1; job <= 4; ++job) {
    const JournalRun& run = content.runs[job - 1];
    EXPECT_EQ(run.order, job);
    EXPECT_EQ(run.assignment->run_key(), fmt::format("d5ww-{}-1", job));
    EXPECT_EQ(run.assignment->job_id(), job);
    EXPECT_EQ(run.assignment->spec().resources().memory_bytes(), 64u << 20);
    EXPECT_EQ(run.cancel_requested, job == 1);
    EXPECT_FALSE(run.logs_complete);
    EXPECT_GT(run.launch_time, absl::FromUnixSeconds(1'795'729'796));
  }
  EXPECT_EQ(content.runs[0].state, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(content.runs[0].external_id, "27330");
  EXPECT_EQ(content.runs[1].state, v1::RUN_STATE_FAILED);
  EXPECT_EQ(content.runs[2].state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(content.runs[2].assignment->spec().labels().at("team"), "vision");
  EXPECT_THAT(content.runs[2].assignment->spec().command().argv().args(),
              ElementsAre("sleep", "100"));
  EXPECT_EQ(content.runs[3].state, v1::RUN_STATE_RUNNING);
}

TEST_F(JournalTakeOverTest, TheEventsOfFormat1SayWhatTheySaid) {
  const JournalContent content = Open()->TakeContent();
  ASSERT_THAT(content.events, SizeIs(3));
  EXPECT_EQ(content.events[0].sequence(), 13u);
  EXPECT_EQ(content.events[0].state(), v1::RUN_STATE_CANCELED);
  EXPECT_EQ(content.events[1].state(), v1::RUN_STATE_RUNNING);
  const agent::v1::RunEvent& failed = content.events[2];
  EXPECT_EQ(failed.run_key(), "d5ww-2-1");
  EXPECT_EQ(failed.state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(failed.exit().code(), 3);
  EXPECT_EQ(failed.failure().failure_class(), v1::FAILURE_CLASS_PROGRAM);
  EXPECT_EQ(failed.failure().message(), "the command ended with exit code 3");
  EXPECT_EQ(failed.failure().phase(), v1::FAILURE_PHASE_COMMAND);
}

TEST_F(JournalTakeOverTest, TheAgentGoesOnWithTheJournalOfFormat1) {
  {
    auto journal = Open();
    Options options;
    options.cluster = options_.cluster;
    options.kind = v1::CLUSTER_KIND_MACHINES;
    const AgentCore core(options, journal->TakeContent());
    EXPECT_TRUE(core.CheckInvariants().ok()) << core.CheckInvariants();
    ASSERT_TRUE(journal->Commit({DeleteRun{"d5ww-2-1"}, DeleteEventsUpTo{15}}).ok());
  }
  const JournalContent content = Open()->TakeContent();
  EXPECT_THAT(content.runs, SizeIs(3));
  EXPECT_THAT(content.events, SizeIs(0));
}

}  // namespace
}  // namespace muster::agents
