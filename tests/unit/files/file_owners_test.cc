#include "broker/files/file_owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/files/files_fixture.h"

namespace muster::files {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OwnedFilesTest : public FilesTest {
 protected:
  void SetUp() override { Open(); }

  FileStore::Counts PutAs(const Viewer& viewer, const std::string& content) {
    Upload upload(store_.get(), viewer);
    EXPECT_TRUE(Send(&upload, content).ok());
    return upload.Finish().value_or(FileStore::Counts{});
  }
  bool Sees(const Viewer& viewer, const std::string& content) {
    const auto size = store_->Use(Sha256Of(content), viewer);
    EXPECT_TRUE(size.ok()) << size.status();
    return size.ok() && size->has_value();
  }
  // Returns the digests that have owners, as the file on disk has them.
  std::vector<std::string> Owned() {
    store_.reset();
    const auto owners = FileOwners::Open((directory_ / "files/owners.db").native());
    EXPECT_TRUE(owners.ok()) << owners.status();
    return *(*owners)->After("", 100);
  }

  const Viewer ada_ = Viewer::Of("ada", {"vision"});
  const Viewer bob_ = Viewer::Of("bob", {"speech"});
  const Viewer broker_ = Viewer::All("root");
};

TEST_F(OwnedFilesTest, AFileIsKnownToItsOwnersAloneAndStoredOnce) {
  PutAs(ada_, "abc");
  EXPECT_TRUE(Sees(ada_, "abc"));
  EXPECT_TRUE(Sees(broker_, "abc"));
  EXPECT_FALSE(Sees(bob_, "abc"));
  EXPECT_FALSE(Sees(Viewer::Of("vision", {"ada"}), "abc")) << "a user is no project";
  EXPECT_EQ(Reason(store_->OpenKept(Sha256Of("abc"), bob_).status()), "FILE_NOT_FOUND");
  EXPECT_EQ(Reason(store_->ReadKept(Sha256Of("abc"), bob_).status()), "FILE_NOT_FOUND");
  const FileStore::Counts brought = PutAs(bob_, "abc");
  EXPECT_EQ(brought.stored, 1u) << "nothing tells that others have it";
  EXPECT_EQ(brought.known, 0u);
  EXPECT_TRUE(Sees(bob_, "abc"));
  EXPECT_EQ(FilesIn("kept"), 1u);
  EXPECT_EQ(store_->used_bytes(), kBlockBytes);
  EXPECT_EQ(PutAs(bob_, "abc").known, 1u);
}

TEST_F(OwnedFilesTest, AnUploadOfAFileOfOthersIsRefusedAsThatOfANewOne) {
  options_.max_job_bytes = 20 << 20;
  Open();
  PutAs(ada_, "abc");
  for (const std::string content : {"abc", "never seen"}) {
    Upload large(store_.get(), bob_);
    EXPECT_EQ(Reason(large.Begin(Sha256Of(content), (20 << 20) + 1)), "FILE_TOO_LARGE") << content;
    Upload wrong(store_.get(), bob_);
    EXPECT_TRUE(wrong.Begin(Sha256Of(content), 3).ok());
    EXPECT_TRUE(wrong.Append("xyz").ok());
    EXPECT_EQ(Reason(wrong.Finish().status()), "WRONG_DIGEST") << content;
    EXPECT_FALSE(Sees(bob_, content)) << "who has not the bytes gets no file";
  }
}

TEST_F(OwnedFilesTest, WhoSeesAFileAndBringsItAllTheSameOwnsIt) {
  PutAs(broker_, "abc");
  ASSERT_TRUE(store_->AddOwner({Sha256Of("abc")}, OwnerOfProject("vision")).ok());
  EXPECT_EQ(PutAs(ada_, "abc").known, 1u);
  EXPECT_TRUE(Sees(Viewer::Of("ada", {}), "abc"));
}

TEST_F(OwnedFilesTest, OwnersSurviveARestart) {
  PutAs(ada_, "abc");
  Open();
  EXPECT_TRUE(Sees(ada_, "abc"));
  EXPECT_FALSE(Sees(bob_, "abc"));
}

TEST_F(OwnedFilesTest, FilesFromBeforeOwnersWereKeptAreNobodysUntilTheyComeAgain) {
  PutAs(ada_, "abc");
  store_.reset();
  std::filesystem::remove(directory_ / "files/owners.db");
  Open();
  EXPECT_FALSE(Sees(ada_, "abc"));
  EXPECT_TRUE(Sees(broker_, "abc"));
  PutAs(ada_, "abc");
  EXPECT_TRUE(Sees(ada_, "abc"));
}

TEST_F(OwnedFilesTest, OwnersGoWithTheirFile) {
  PutAs(ada_, "old");
  now_ += options_.retention + absl::Hours(1);
  PutAs(ada_, "new");
  EXPECT_EQ(Expire(), 1);
  EXPECT_THAT(Owned(), ElementsAre(Sha256Of("new")));
}

TEST_F(OwnedFilesTest, AFileOfOthersThatWasDueToGoStaysForThoseWhoBringItAgain) {
  PutAs(ada_, "abc");
  now_ += options_.retention + absl::Hours(1);
  PutAs(bob_, "abc");
  EXPECT_EQ(Expire(), 0);
  EXPECT_TRUE(Sees(bob_, "abc"));
}

TEST_F(OwnedFilesTest, OwnersOfAFileThatWasLostOtherwiseGoWhenItComesAgain) {
  PutAs(ada_, "abc");
  std::filesystem::remove(Kept("abc"));
  PutAs(bob_, "abc");
  EXPECT_FALSE(Sees(ada_, "abc"));
  EXPECT_TRUE(Sees(bob_, "abc"));
}

TEST_F(OwnedFilesTest, AFileHasABoundedNumberOfOwnersAndTheEarliestGoes) {
  for (int i = 0; i <= kMaxOwnersPerFile; ++i) {
    PutAs(Viewer::Of("user" + std::to_string(i), {}), "abc");
    now_ += absl::Microseconds(1);
  }
  EXPECT_FALSE(Sees(Viewer::Of("user0", {}), "abc"));
  EXPECT_TRUE(Sees(Viewer::Of("user1", {}), "abc"));
  EXPECT_TRUE(Sees(Viewer::Of("user" + std::to_string(kMaxOwnersPerFile), {}), "abc"));
  std::filesystem::remove(Kept("abc"));
  now_ += options_.retention + absl::Hours(1);
  Expire();
  EXPECT_THAT(Owned(), IsEmpty());
}

TEST_F(OwnedFilesTest, AQuestionOfOthersIsNoUseOfAFile) {
  PutAs(ada_, "abc");
  now_ += options_.retention + absl::Hours(1);
  EXPECT_FALSE(Sees(bob_, "abc"));
  EXPECT_EQ(Expire(), 1);
}

class ManyOwnersTest : public FilesTest {
 protected:
  void SetUp() override {
    const std::string path = (directory_ / "owners.db").native();
    auto owners = FileOwners::Open(path);
    ASSERT_TRUE(owners.ok()) << owners.status();
    owners_ = *std::move(owners);
    other_ = *Database::Open(path, SQLITE_OPEN_READWRITE, {});
  }
  static std::vector<std::string> Digests(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(Sha256Of(std::to_string(i)));
    return all;
  }

  std::unique_ptr<FileOwners> owners_;
  std::unique_ptr<Database> other_;  // a connection of the test's own
  const Viewer ada_ = Viewer::Of("ada", {});
};

TEST_F(ManyOwnersTest, ManyFilesAreAddedInSeveralTransactions) {
  const auto all = Digests(2 * static_cast<int>(kMaxFilesPerTransaction) + 1);
  const std::string& refused = all[kMaxFilesPerTransaction + 1];
  ASSERT_TRUE(other_
                  ->Execute("CREATE TRIGGER refuse BEFORE INSERT ON owner WHEN NEW.sha256 = x'" +
                            refused + "' BEGIN SELECT RAISE(ABORT, 'refused'); END")
                  .ok());
  EXPECT_FALSE(owners_->Add(all, ada_.self(), now_).ok());
  EXPECT_TRUE(*owners_->MayKnow(ada_, all[kMaxFilesPerTransaction - 1]));
  EXPECT_FALSE(*owners_->MayKnow(ada_, all[kMaxFilesPerTransaction]));
  ASSERT_TRUE(other_->Execute("DROP TRIGGER refuse").ok());
  EXPECT_EQ(*owners_->Add(all, ada_.self(), now_), kMaxFilesPerTransaction + 1);
  EXPECT_TRUE(*owners_->MayKnow(ada_, all.back()));
}

TEST_F(ManyOwnersTest, QuestionsDoNotWaitForThoseWhoWrite) {
  const auto all = Digests(2);
  ASSERT_TRUE(owners_->Add({all[0]}, ada_.self(), now_).ok());
  // Each row takes a second or so.
  ASSERT_TRUE(other_
                  ->Execute("CREATE TRIGGER slow AFTER INSERT ON owner BEGIN DELETE FROM owner "
                            "WHERE (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                            "WHERE i < 10000000) SELECT max(i) FROM n) = 0; END")
                  .ok());
  std::atomic<bool> is_done = false;
  std::thread writer([&] {
    // The look below may hold the lock of the file.
    while (!owners_->Add({all[1]}, ada_.self(), now_).ok()) {
    }
    is_done = true;
  });
  while (other_->Execute("BEGIN IMMEDIATE").ok()) EXPECT_TRUE(other_->Execute("ROLLBACK").ok());
  EXPECT_TRUE(*owners_->MayKnow(ada_, all[0]));
  EXPECT_FALSE(*owners_->MayKnow(ada_, all[1])) << "it is not committed";
  EXPECT_FALSE(is_done);
  writer.join();
  EXPECT_TRUE(*owners_->MayKnow(ada_, all[1]));
}

}  // namespace
}  // namespace muster::files
