// Tests the file of the audit log: what is found when somebody changed it, and when it was cut.
#include "broker/audit/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "broker/audit/chain.h"
#include "daemon/sqlite.h"
#include "tests/unit/audit/directory.h"

namespace muster::audit {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kManyBytes = uint64_t{1} << 40;
constexpr int kRecords = 5;

class AuditFileTest : public ::testing::Test {
 protected:
  AuditFileTest() : file_(*AuditFile::Open(directory_.file())) {}

  void Fill(int count = kRecords) {
    for (int i = 1; i <= count; ++i) {
      Record record = CancelOf(std::to_string(i), i);
      ASSERT_TRUE(file_->Append(absl::MakeSpan(&record, 1)).ok());
    }
  }
  // Changes the file behind its owner's back.
  void Tamper(const std::string& sql) {
    const auto database = Database::Open(directory_.file(), SQLITE_OPEN_READWRITE, {});
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status status = (*database)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  Findings Check(const std::optional<Head>& known = std::nullopt) {
    const auto found = Verify(directory_.file(), known, [] { return false; });
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(Findings());
  }
  std::vector<uint64_t> Seqs(const RecordFilter& filter, size_t most = 100) {
    std::vector<uint64_t> seqs;
    const auto page = ReadRecords(directory_.file(), filter, most, 1000);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const Record& record : page->records) seqs.push_back(record.seq);
    return seqs;
  }

  Directory directory_;
  std::unique_ptr<AuditFile> file_;
};

TEST_F(AuditFileTest, AnUntouchedLogIsIntact) {
  EXPECT_TRUE(Check().is_intact);
  Fill();
  const Findings found = Check();
  EXPECT_TRUE(found.is_intact) << found.problem;
  EXPECT_EQ(found.records, kRecords);
  EXPECT_EQ(found.head.seq, kRecords);
  EXPECT_TRUE(Check(found.head).is_intact);
}

TEST_F(AuditFileTest, AChangeOfAnyFieldIsFound) {
  Fill();
  const std::string changes[] = {
      "micros = micros + 1", "user = 'eve'",    "user = user || char(0)", "role = 'admin'",
      "credential = 'x'",    "origin = 'fd:8'", "action = 'x'",           "jobs = '4'",
      "target = ''",         "result = 'OK '",  "left_out = 1",           "hash = zeroblob(32)"};
  for (const std::string& change : changes) {
    Tamper("CREATE TABLE kept AS SELECT * FROM record");
    Tamper("UPDATE record SET " + change + " WHERE seq = 3");
    const Findings found = Check();
    EXPECT_FALSE(found.is_intact) << change;
    EXPECT_EQ(found.bad_seq, 3u) << change;
    EXPECT_EQ(found.records, 2u) << change;
    Tamper("DELETE FROM record; INSERT INTO record SELECT * FROM kept; DROP TABLE kept");
  }
  EXPECT_TRUE(Check().is_intact);
}

TEST_F(AuditFileTest, TextThatMovesFromOneFieldToTheNextIsFound) {
  Fill();
  Tamper("UPDATE record SET user = 'ad', role = 'aoperator' WHERE seq = 2");
  EXPECT_EQ(Check().bad_seq, 2u);
}

TEST_F(AuditFileTest, ARemovedRecordIsFound) {
  Fill();
  Tamper("DELETE FROM record WHERE seq = 3");
  const Findings found = Check();
  EXPECT_FALSE(found.is_intact);
  EXPECT_THAT(found.problem, HasSubstr("record 3 is missing"));
}

TEST_F(AuditFileTest, ARemovedRecordIsFoundWhenTheOthersMoveUp) {
  Fill();
  Tamper("DELETE FROM record WHERE seq = 3; UPDATE record SET seq = seq - 1 WHERE seq > 3");
  EXPECT_EQ(Check().bad_seq, 3u);
}

TEST_F(AuditFileTest, ACutBeginningIsFound) {
  Fill();
  Tamper("DELETE FROM record WHERE seq < 3");
  EXPECT_THAT(Check().problem, HasSubstr("record 1 is missing"));
}

TEST_F(AuditFileTest, AnInsertedRecordIsFound) {
  Fill();
  Tamper(
      "UPDATE record SET seq = -seq WHERE seq >= 3; UPDATE record SET seq = 1 - seq WHERE seq < "
      "0; INSERT INTO record SELECT 3, micros, user, role, credential, origin, action, jobs, "
      "target, result, left_out, hash FROM record WHERE seq = 2");
  EXPECT_EQ(Check().bad_seq, 3u);
}

TEST_F(AuditFileTest, ASwapOfTwoRecordsIsFound) {
  Fill();
  Tamper(
      "UPDATE record SET seq = -2 WHERE seq = 2; UPDATE record SET seq = 2 WHERE seq = 3; "
      "UPDATE record SET seq = 3 WHERE seq = -2");
  EXPECT_EQ(Check().bad_seq, 2u);
}

TEST_F(AuditFileTest, ACutTailIsFoundByAHashThatWasNotedElsewhere) {
  Fill();
  const Head head = Check().head;
  Tamper("DELETE FROM record WHERE seq > 3");
  EXPECT_TRUE(Check().is_intact);  // the file alone cannot know
  EXPECT_THAT(Check(head).problem, HasSubstr("tail was cut off"));
  // The broker goes on, and has other records in their place.
  Fill(3);
  EXPECT_TRUE(Check().is_intact);
  EXPECT_THAT(Check(head).problem, HasSubstr("written anew"));
}

TEST_F(AuditFileTest, RetentionKeepsTheRestVerifiable) {
  Fill();
  const auto removed = file_->Retain(3, kManyBytes, 1000, 10);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(*removed, 2u);
  EXPECT_EQ(Seqs({}), (std::vector<uint64_t>{3, 4, 5, 6}));
  EXPECT_EQ(Seqs({.action = "audit.retention"}), (std::vector<uint64_t>{6}));
  EXPECT_TRUE(Check().is_intact) << Check().problem;
  // It removes its own older records, too.
  ASSERT_EQ(*file_->Retain(20, kManyBytes, 1000, 20), 3u);
  EXPECT_EQ(Seqs({}), (std::vector<uint64_t>{6, 7}));
  EXPECT_TRUE(Check().is_intact) << Check().problem;
}

TEST_F(AuditFileTest, MoreThanTheRetentionRemovedIsFound) {
  Fill();
  ASSERT_TRUE(file_->Retain(3, kManyBytes, 1000, 10).ok());
  Tamper("DELETE FROM record WHERE seq = 3");
  EXPECT_THAT(Check().problem, HasSubstr("record 3 is missing"));
}

TEST_F(AuditFileTest, ARetentionThatSaysMoreThanItRemovedIsFound) {
  Fill();
  ASSERT_TRUE(file_->Retain(3, kManyBytes, 1000, 10).ok());
  Tamper("DELETE FROM record WHERE seq = 3");
  Tamper("UPDATE record SET target = replace(target, 'through=2', 'through=3') WHERE seq = 6");
  EXPECT_FALSE(Check().is_intact);
}

TEST_F(AuditFileTest, NothingOldIsNoRecordOfARetention) {
  Fill();
  EXPECT_EQ(*file_->Retain(0, kManyBytes, 1000, 10), 0u);
  EXPECT_EQ(Seqs({}).size(), size_t{kRecords});
}

TEST_F(AuditFileTest, OneRoundOfARetentionIsBounded) {
  Fill();
  EXPECT_EQ(*file_->Retain(100, kManyBytes, 2, 10), 2u);
  EXPECT_TRUE(Check().is_intact);
}

TEST_F(AuditFileTest, TheOldestMakeRoom) {
  std::vector<Record> many;
  for (int i = 0; i < 20'000; ++i) many.push_back(CancelOf("1", 100));
  ASSERT_TRUE(file_->Append(absl::MakeSpan(many)).ok());
  constexpr uint64_t kBytes = 1 << 20;
  ASSERT_TRUE(file_->Retain(0, kBytes, kManyBytes, 200).ok());
  EXPECT_EQ(*file_->Retain(0, kBytes, kManyBytes, 200), 0u);  // it fits now
  const Findings found = Check();
  EXPECT_TRUE(found.is_intact) << found.problem;
  EXPECT_GT(found.records, 1000u);
  EXPECT_LT(found.records, 10'000u);
}

TEST_F(AuditFileTest, AHashOlderThanTheLogIsRefused) {
  Fill();
  const Head old{.seq = 1, .hash = std::string(32, 'x')};
  ASSERT_TRUE(file_->Retain(3, kManyBytes, 1000, 10).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Verify(directory_.file(), old, [] { return false; }).status()));
}

TEST_F(AuditFileTest, AWriterThatIsKilledLeavesAWholeChain) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto file = AuditFile::Open(directory_.file());
    for (int i = 1; file.ok(); ++i) {
      std::vector<Record> group(7, CancelOf("1", i));
      if (!(*file)->Append(absl::MakeSpan(group)).ok() || write(pipe_ends[1], "x", 1) != 1) break;
    }
    _exit(1);
  }
  constexpr int kGroups = 20;
  for (int i = 0; i < kGroups; ++i) {
    char byte = 0;
    ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  }
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  const Findings found = Check();
  EXPECT_TRUE(found.is_intact) << found.problem;
  EXPECT_GE(found.records, 7u * kGroups);
  EXPECT_EQ(found.records % 7, 0u);
}

TEST_F(AuditFileTest, TwoWritersMakeOneChain) {
  const auto other = AuditFile::Open(directory_.file());
  ASSERT_TRUE(other.ok());
  Fill(2);
  Record record = CancelOf("9");
  ASSERT_TRUE((*other)->Append(absl::MakeSpan(&record, 1)).ok());
  Fill(2);
  EXPECT_TRUE(Check().is_intact);
  EXPECT_EQ(Check().records, 5u);
}

TEST_F(AuditFileTest, AFileOfANewerReleaseIsRefused) {
  file_.reset();
  Tamper("PRAGMA user_version = 2");
  EXPECT_TRUE(absl::IsFailedPrecondition(AuditFile::Open(directory_.file()).status()));
}

TEST_F(AuditFileTest, FiltersChooseRecords) {
  Fill();
  Record other{.micros = 9, .user = "eve", .action = "IdentityService.WhoAmI", .result = "NO"};
  ASSERT_TRUE(file_->Append(absl::MakeSpan(&other, 1)).ok());
  EXPECT_EQ(Seqs({.user = "eve"}), (std::vector<uint64_t>{6}));
  EXPECT_EQ(Seqs({.action = "IdentityService"}), (std::vector<uint64_t>{6}));
  EXPECT_EQ(Seqs({.action = "Identity"}), (std::vector<uint64_t>{}));
  EXPECT_EQ(Seqs({.job = 4}), (std::vector<uint64_t>{4}));
  EXPECT_EQ(Seqs({.result = "NO"}), (std::vector<uint64_t>{6}));
  EXPECT_EQ(Seqs({.since_micros = 4, .until_micros = 9}), (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(Seqs({.since_micros = 100}), (std::vector<uint64_t>{}));
}

TEST_F(AuditFileTest, PagesFollowEachOther) {
  Fill();
  const auto first = ReadRecords(directory_.file(), {}, 2, 1000);
  EXPECT_EQ(first->last_seq, 2u);
  EXPECT_EQ(Seqs({.after_seq = 2}), (std::vector<uint64_t>{3, 4, 5}));
  EXPECT_EQ(ReadRecords(directory_.file(), {.after_seq = 3}, 2, 1000)->last_seq, 0u);
  // Nobody reads more than was allowed, whatever the filter.
  const auto bounded = ReadRecords(directory_.file(), {.user = "nobody"}, 2, 3);
  EXPECT_TRUE(bounded->records.empty());
  EXPECT_EQ(bounded->last_seq, 3u);
}

TEST(HasJob, ReadsNumbersAndRanges) {
  EXPECT_TRUE(HasJob("3,7-9", 3));
  EXPECT_TRUE(HasJob("3,7-9", 8));
  EXPECT_FALSE(HasJob("3,7-9", 6));
  EXPECT_FALSE(HasJob("3,7-9,...", 10));
  EXPECT_FALSE(HasJob("", 1));
}

}  // namespace
}  // namespace muster::audit
