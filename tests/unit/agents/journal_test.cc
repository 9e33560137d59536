#include "agents/core/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "agents/core/journal_content.h"

namespace muster::agents {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string pattern = testing::TempDir() + "/journal.XXXXXX";
    options_.state_dir = mkdtemp(pattern.data());
    options_.cluster = "here";
  }
  ~JournalTest() override { std::filesystem::remove_all(options_.state_dir); }

  std::string path() const { return options_.state_dir + "/journal.db"; }

  std::unique_ptr<Journal> Open() {
    absl::StatusOr<std::unique_ptr<Journal>> journal = OpenJournal(options_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : nullptr;
  }
  JournalContent Reopened() { return Open()->TakeContent(); }

  static JournalRun RunOf(uint64_t order, size_t spec_bytes = 3) {
    auto assignment = std::make_shared<agent::v1::Assignment>();
    assignment->set_run_key("k7m2-" + std::to_string(order) + "-1");
    assignment->mutable_spec()->set_name(std::string(spec_bytes, 'x'));
    JournalRun run;
    run.assignment = std::move(assignment);
    run.state = v1::RUN_STATE_ASSIGNED;
    run.order = order;
    return run;
  }
  static agent::v1::RunEvent EventOf(uint64_t sequence) {
    agent::v1::RunEvent event;
    event.set_sequence(sequence);
    event.set_run_key("k7m2-1-1");
    return event;
  }
  PutMeta Next(uint64_t sequence) const { return PutMeta{{id_, "k7m2", 3, sequence}}; }

  JournalOptions options_;
  std::string id_;
};

TEST_F(JournalTest, AFreshJournalHasANameThatStays) {
  const std::string id = Reopened().meta.journal_id;
  EXPECT_EQ(id.size(), 32);
  EXPECT_EQ(Reopened().meta.journal_id, id);
}

TEST_F(JournalTest, WhatWasCommittedIsThereAfterAReopen) {
  JournalRun run = RunOf(1);
  {
    auto journal = Open();
    id_ = journal->TakeContent().meta.journal_id;
    ASSERT_TRUE(journal
                    ->Commit({PutRun{run}, PutRun{RunOf(2)}, PutEvent{EventOf(1)},
                              PutEvent{EventOf(2)}, Next(3)})
                    .ok());
    run.state = v1::RUN_STATE_RUNNING;
    run.external_id = "77";
    run.cancel_requested = true;
    run.launch_time = absl::FromUnixSeconds(42);
    ASSERT_TRUE(journal->Commit({PutRun{run}, DeleteRun{"k7m2-2-1"}, DeleteEventsUpTo{1}}).ok());
  }
  const JournalContent content = Reopened();
  EXPECT_EQ(content.meta, (JournalMeta{id_, "k7m2", 3, 3}));
  ASSERT_THAT(content.events, SizeIs(1));
  EXPECT_EQ(content.events[0].sequence(), 2);
  ASSERT_THAT(content.runs, SizeIs(1));
  EXPECT_EQ(content.runs[0].assignment->SerializeAsString(), run.assignment->SerializeAsString());
  EXPECT_EQ(content.runs[0].state, v1::RUN_STATE_RUNNING);
  EXPECT_EQ(content.runs[0].external_id, "77");
  EXPECT_TRUE(content.runs[0].cancel_requested);
  EXPECT_FALSE(content.runs[0].logs_complete);
  EXPECT_EQ(content.runs[0].launch_time, absl::FromUnixSeconds(42));
}

TEST_F(JournalTest, AnEventOfAnEarlierReleaseKeepsItsReason) {
  agent::v1::RunEvent event = EventOf(1);
  // A sentence, as that release wrote it.
  event.GetReflection()->MutableUnknownFields(&event)->AddLengthDelimited(6, "deleted by others");
  ASSERT_TRUE(Open()->Commit({PutEvent{event}, Next(2)}).ok());
  const JournalContent content = Reopened();
  ASSERT_THAT(content.events, SizeIs(1));
  EXPECT_EQ(content.events[0].state_reason().code(), v1::STATE_REASON_CODE_OTHER);
  EXPECT_EQ(content.events[0].state_reason().message(), "deleted by others");
}

TEST_F(JournalTest, ARunThatWasNeverLaunchedStaysSo) {
  Open()->Commit({PutRun{RunOf(1)}}).IgnoreError();
  EXPECT_EQ(Reopened().runs[0].launch_time, absl::InfinitePast());
}

TEST_F(JournalTest, NoFileOfItIsForOthersToRead) {
  constexpr auto kOthers = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  std::filesystem::permissions(options_.state_dir, std::filesystem::perms(0755));
  auto journal = Open();
  ASSERT_TRUE(journal->Commit({PutRun{RunOf(1)}}).ok());
  for (const std::string& file : {path(), path() + "-wal"}) {
    EXPECT_EQ(std::filesystem::status(file).permissions() & kOthers, std::filesystem::perms::none)
        << file;
  }
}

TEST_F(JournalTest, ASecondAgentIsRefused) {
  auto first = Open();
  absl::StatusOr<std::unique_ptr<Journal>> second = OpenJournal(options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(options_.state_dir + "/lock"));
}

TEST_F(JournalTest, AnotherClustersJournalIsRefused) {
  Open();
  options_.cluster = "elsewhere";
  const absl::Status status = OpenJournal(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'here'"));
}

TEST_F(JournalTest, AFileThatIsNoDatabaseIsNamedWithTheRemedy) {
  std::ofstream(path()) << std::string(8192, 'z');
  const absl::Status status = OpenJournal(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Move the file away"));
}

TEST_F(JournalTest, ADamagedPageIsFound) {
  {
    auto journal = Open();
    for (uint64_t order = 1; order <= 50; ++order) {
      ASSERT_TRUE(journal->Commit({PutRun{RunOf(order, 2000)}}).ok());
    }
  }
  ASSERT_GT(std::filesystem::file_size(path()), 40'000);
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20'480);
  file << std::string(8192, '\x5a');
  file.close();
  EXPECT_EQ(OpenJournal(options_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, AMissingEventIsFound) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal->Commit({PutEvent{EventOf(1)}, PutEvent{EventOf(3)}, Next(4)}).ok());
  }
  EXPECT_EQ(OpenJournal(options_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalTest, ALaterFormatIsRefusedAndLeftAsItIs) {
  Open();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const absl::Status status = OpenJournal(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format 99"));
}

TEST_F(JournalTest, ACommitBeyondTheBoundChangesNothingAndIsNotTakenForAFullDisk) {
  options_.max_bytes = 200'000;
  auto journal = Open();
  ASSERT_TRUE(journal->Commit({PutRun{RunOf(1, 100'000)}}).ok());
  const std::vector<JournalChange> large = {PutRun{RunOf(2)}, PutRun{RunOf(3, 100'000)}};
  const absl::Status full = journal->Commit(large);
  EXPECT_EQ(full.code(), absl::StatusCode::kOutOfRange) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("its bound"));
  ASSERT_TRUE(journal->Commit({DeleteRun{"k7m2-1-1"}}).ok());
  ASSERT_TRUE(journal->Commit(large).ok());
  journal.reset();
  EXPECT_THAT(Reopened().runs, SizeIs(2));
}

TEST_F(JournalTest, AJournalAtItsBoundTakesWhatMakesRoom) {
  options_.max_bytes = 4'000'000;
  auto journal = Open();
  uint64_t order = 0;
  absl::Status status;
  while (status.ok()) status = journal->Commit({PutRun{RunOf(++order, 10'000)}});
  EXPECT_GT(journal->FilledShare(), 0.99);
  for (uint64_t gone = 1; gone < order; ++gone) {
    const std::string key = "k7m2-" + std::to_string(gone) + "-1";
    ASSERT_TRUE(journal->Commit({DeleteEventsUpTo{gone}, DeleteRun{key}}).ok());
  }
  EXPECT_LT(journal->FilledShare(), 0.1);
}

TEST_F(JournalTest, AJournalThatWasClosedAboveItsBoundCanGrowALittle) {
  ASSERT_TRUE(Open()->Commit({PutRun{RunOf(1, 500'000)}}).ok());
  options_.max_bytes = 400'000;
  auto journal = Open();
  EXPECT_TRUE(journal->Commit({PutEvent{EventOf(1)}}).ok());
  EXPECT_FALSE(journal->Commit({PutRun{RunOf(2, 200'000)}}).ok());
}

TEST_F(JournalTest, TheLargestFleetOfTheLargestSpecsFitsWithinTheBound) {
  constexpr uint64_t kMaxActiveRuns = 100'000;
  EXPECT_GE(MaxJournalBytes(kMaxActiveRuns), kMaxActiveRuns * 2 * (1 << 20));
  options_.max_bytes = MaxJournalBytes(kMaxActiveRuns);
  EXPECT_TRUE(Open()->Commit({PutRun{RunOf(1, 1 << 20)}}).ok());
}

TEST_F(JournalTest, ADirectoryThatCannotBeMadeIsNamed) {
  JournalOptions options = options_;
  options.state_dir = "/proc/muster";
  const absl::Status status = OpenJournal(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/muster"));
}

}  // namespace
}  // namespace muster::agents
