// Tests that acknowledged data survives whatever the disk does, and that other data is there whole
// or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/errors.h"
#include "tests/unit/store/fault_vfs.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::HasSubstr;

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() {
    options_.directory = directory_.path();
    options_.vfs = FaultVfs::kName;
    options_.readers = 1;
    // Small, so that checkpoints happen all the time.
    options_.checkpoint_wal_bytes = 100 << 10;
    options_.restart_wal_bytes = 200 << 10;
    options_.idle_checkpoint_bytes = 0;
  }

  void Open() {
    store_.reset();
    auto opened = SqliteStore::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    CheckWhole();
  }

  // Job n, its labels and its transition come in one commit, some of them large.
  absl::Status CommitNext() {
    const uint64_t id = acknowledged_ + 1;
    const size_t bytes = id % 5 == 0 ? 20'000 : 100;
    absl::Status status = store_->Commit(
        {Insert(id,
                {.labels = {{"n", std::to_string(id)}}, .request_id = "r", .script_bytes = bytes}),
         RunOf(id, 1, v1::RUN_STATE_RUNNING), Update(id, v1::JOB_STATE_RUNNING, 2, "here"),
         Step(id, id, 1)});
    if (status.ok()) ++acknowledged_;
    return status;
  }

  // Everything acknowledged is there, and at most the one commit after it; each whole.
  void CheckWhole() {
    auto restored = store_->Restore(kStart);
    ASSERT_TRUE(restored.ok()) << restored.status();
    const uint64_t found = restored->jobs.size();
    EXPECT_GE(found, acknowledged_);
    EXPECT_LE(found, acknowledged_ + 1);
    EXPECT_EQ(restored->runs.size(), found);
    EXPECT_EQ(restored->requests.size(), found);
    EXPECT_EQ(restored->next_job_id, found + 1);
    EXPECT_EQ(restored->next_sequence, found + 1);
    acknowledged_ = found;
    if (found == 0) return;
    auto last = store_->GetJob(Scope::All(), found);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(last->state(), v1::JOB_STATE_RUNNING);
  }

  FaultVfs vfs_;
  TemporaryDirectory directory_;
  SqliteOptions options_;
  std::unique_ptr<SqliteStore> store_;
  uint64_t acknowledged_ = 0;
};

TEST_F(FaultsTest, WhatWasAcknowledgedSurvivesAPowerLossAtAnyCall) {
  constexpr int kLosses = 200;
  std::mt19937_64 random(20251121);
  for (int loss = 0; loss < kLosses; ++loss) {
    Open();
    ASSERT_FALSE(HasFailure()) << "after loss " << loss;
    vfs_.CutPowerAt(static_cast<int>(random() % 800));
    absl::Status status;
    while (status.ok()) {
      status = CommitNext();
      if (status.ok() && random() % 10 == 0) status = store_->Idle();
    }
    EXPECT_TRUE(vfs_.power_is_off());
    store_.reset();
    vfs_.LosePower(random);
  }
  EXPECT_GT(acknowledged_, 1000u);
}

TEST_F(FaultsTest, AFirstStartThatLosesPowerCanBeRepeated) {
  std::mt19937_64 random(7);
  for (int call = 0; call < 60; ++call) {
    TemporaryDirectory fresh;
    options_.directory = fresh.path();
    vfs_.CutPowerAt(call);
    auto opened = SqliteStore::Open(options_);
    const bool cut = vfs_.power_is_off();
    if (opened.ok()) opened->reset();
    vfs_.LosePower(random);
    EXPECT_TRUE(cut || opened.ok()) << opened.status();
    opened = SqliteStore::Open(options_);
    EXPECT_TRUE(opened.ok()) << "call " << call << ": " << opened.status();
  }
}

TEST_F(FaultsTest, AnyCallMayFailOnceAndNothingIsLostOrHalfDone) {
  for (int error : {SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_FULL}) {
    for (int call = 0; call < 100; ++call) {
      Open();
      ASSERT_FALSE(HasFailure()) << "call " << call << ", error " << error;
      vfs_.FailCall(call, error);
      absl::Status status;
      for (int i = 0; i < 30 && status.ok(); ++i) status = CommitNext();
      EXPECT_EQ(vfs_.fired(), !status.ok()) << status;
      if (!status.ok()) {
        // The store is at its end: it does not acknowledge what it can no longer promise.
        EXPECT_FALSE(store_->Commit({core::PutBrokerEpoch{1}}).ok());
      }
      store_.reset();
      vfs_.Heal();
    }
  }
}

TEST_F(FaultsTest, AFullDiskIsNamedAndTheStoreGoesOnOnceThereIsRoom) {
  Open();
  vfs_.LimitBytes(300'000);
  absl::Status status;
  while (status.ok()) status = CommitNext();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(contract::GetErrorInfo(status)->reason(), "DISK_FULL");
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.path()));
  store_.reset();
  vfs_.Heal();
  Open();
  EXPECT_OK(CommitNext());
}

}  // namespace
}  // namespace muster::store
