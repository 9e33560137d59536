// The queue in front of the audit log's file.
#include "broker/audit/audit_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/sqlite.h"
#include "tests/unit/audit/directory.h"

namespace muster::audit {
namespace {

constexpr std::chrono::hours kNever{24};

// Calls of different users do not share a record.
Record CancelBy(int user) {
  Record record = CancelOf("2");
  record.user = fmt::format("user{}", user);
  return record;
}

class AuditLogTest : public ::testing::Test {
 protected:
  void Open(Options options = {}) {
    options.path = directory_.file();
    auto log = AuditLog::Open(
        options, [this] { return absl::FromUnixSeconds(now_s_); },
        [this](const absl::Status& status) { failed_.set_value(status); });
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  std::vector<Record> Records(const RecordFilter& filter = {}) {
    auto page = ReadRecords(directory_.file(), filter, 100'000, 100'000);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? page->records : std::vector<Record>();
  }
  // Holds the writing thread until the returned promise is set.
  std::unique_ptr<std::promise<void>> HoldWriter() {
    auto go = std::make_unique<std::promise<void>>();
    std::promise<void> held;
    EXPECT_TRUE(log_->Append(CancelOf("1"), true, [&held, go = go->get_future().share()] {
      held.set_value();
      go.wait();
    }));
    held.get_future().wait();
    return go;
  }

  Directory directory_;
  std::atomic<int64_t> now_s_ = 1'000'000;
  std::promise<absl::Status> failed_;
  std::unique_ptr<AuditLog> log_;
};

TEST_F(AuditLogTest, ARecordThatSomebodyWaitsForIsOnDisk) {
  Open({.max_delay = kNever});
  EXPECT_FALSE(log_->Append(CancelOf("1"), false, nullptr));
  log_->AppendAndWait(CancelOf("2"));
  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 2u);  // with those that came before it
  EXPECT_EQ(records[1].jobs, "2");
  EXPECT_EQ(records[1].micros, now_s_ * 1'000'000);
}

TEST_F(AuditLogTest, ARecordIsWrittenWithoutAnybodyWaiting) {
  Open({.max_delay = std::chrono::milliseconds(0)});
  log_->Append(CancelOf("1"), false, nullptr);
  while (Records().empty()) std::this_thread::yield();
}

TEST_F(AuditLogTest, StopWritesWhatIsQueued) {
  Open({.max_delay = kNever});
  for (int i = 0; i < 100; ++i) log_->Append(CancelBy(i), false, nullptr);
  log_->Stop();
  EXPECT_EQ(Records().size(), 100u);
  EXPECT_FALSE(log_->Append(CancelOf("1"), true, [] {}));
}

TEST_F(AuditLogTest, CallsOfABurstShareARecordWithAllTheirJobs) {
  Open({.max_delay = kNever});
  for (int job = 1; job <= 100; ++job) {
    now_s_ += 1;
    EXPECT_FALSE(log_->Append(CancelOf(fmt::format("{}", job)), false, nullptr));
  }
  log_->AppendAndWait(CancelOf("7"));
  const std::vector<Record> records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].jobs, "1-100");
  EXPECT_EQ(records[0].micros, 1'000'001 * int64_t{1'000'000});
  EXPECT_EQ(records[1].jobs, "7");  // somebody waits for it
}

TEST_F(AuditLogTest, AnswersWaitWhenTheQueueIsFullAndNothingIsLost) {
  Open({.max_delay = kNever, .max_queued = 3});
  const auto go = HoldWriter();
  std::atomic<int> written = 0;
  for (int i = 0; i < 10; ++i) {
    const bool waits = log_->Append(CancelBy(i), false, [&] { ++written; });
    EXPECT_EQ(waits, i >= 3) << i;
  }
  go->set_value();
  log_->Stop();
  EXPECT_EQ(written, 7);
  EXPECT_EQ(Records().size(), 11u);
}

TEST_F(AuditLogTest, RefusedCallsNeverFillTheQueue) {
  Open({.max_delay = kNever, .max_queued = 3});
  const auto go = HoldWriter();
  for (int i = 0; i < 10; ++i) log_->AppendRefusal(CancelOf("2"));
  go->set_value();
  log_->Stop();
  const std::vector<Record> left_out = Records({.action = "audit.left_out"});
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].left_out, 7u);
  EXPECT_EQ(left_out[0].user, "ada");
}

TEST_F(AuditLogTest, RefusedCallsOfOneUserAreBoundedAndCounted) {
  Open();
  Record eve = CancelOf("1");
  eve.user = "eve";
  for (uint64_t i = 0; i < kMaxRefusalsOfUser + 5; ++i) log_->AppendRefusal(eve);
  log_->AppendRefusal(CancelOf("2"));  // of somebody else
  now_s_ += 60;
  log_->AppendRefusal(eve);
  log_->Stop();
  EXPECT_EQ(Records({.user = "ada"}).size(), 1u);
  EXPECT_EQ(Records({.user = "eve", .action = "JobsService"}).size(), kMaxRefusalsOfUser + 1);
  const std::vector<Record> left_out = Records({.action = "audit.left_out"});
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].left_out, 5u);
  EXPECT_EQ(left_out[0].user, "eve");
}

TEST_F(AuditLogTest, ManyRefusedUsersShareOneCount) {
  RefusalRate rate;
  const absl::Time now = absl::FromUnixSeconds(1);
  for (size_t i = 0; i < kMaxRefusedUsers; ++i) rate.Admit(std::to_string(i), true, now);
  for (uint64_t i = 0; i < kMaxRefusalsOfUser; ++i) {
    EXPECT_TRUE(rate.Admit("later-" + std::to_string(i), true, now));
  }
  EXPECT_FALSE(rate.Admit("one more", true, now));
  EXPECT_EQ(rate.Take(now, true), (RefusalRate::LeftOut{{"", 1}}));
  EXPECT_TRUE(rate.Take(now, true).empty());
}

TEST_F(AuditLogTest, HousekeepingRemovesWhatIsTooOld) {
  Open({.retention = absl::Hours(1)});
  log_->AppendAndWait(CancelOf("1"));
  now_s_ += 3600;
  log_->AppendAndWait(CancelOf("2"));
  now_s_ += 1;
  log_->Housekeep();
  while (Records({.action = "audit.retention"}).empty()) std::this_thread::yield();
  EXPECT_TRUE(Records({.job = 1}).empty());
  EXPECT_EQ(Records({.job = 2}).size(), 1u);
}

TEST_F(AuditLogTest, ALogThatCannotBeWrittenSaysSoAndHoldsNobody) {
  Open();
  const auto database = Database::Open(directory_.file(), SQLITE_OPEN_READWRITE, {});
  ASSERT_TRUE((*database)->Execute("DROP TABLE record").ok());
  log_->AppendAndWait(CancelOf("1"));
  EXPECT_FALSE(failed_.get_future().get().ok());
  EXPECT_FALSE(log_->Append(CancelOf("1"), true, [] {}));
}

}  // namespace
}  // namespace muster::audit
