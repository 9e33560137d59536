#include "broker/app/file_expiry.h"

#include <gtest/gtest.h>

#include <future>

#include "broker/app/submit_jobs.h"
#include "broker/files/upload.h"
#include "digest/sha256.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

// Enough for a pass, which goes on after every few calls.
constexpr int kMaxCalls = 1000;

class FileExpiryTest : public AppTest {
 protected:
  void SetUp() override {
    AppTest::SetUp();
    job_files_.reset();
    files_.reset();
    files_ = *files::FileStore::Open(directory_ / "old", {.keep_free_bytes = 0},
                                     [this] { return now_; });
    job_files_.emplace(files_.get());
    services_.files = files_.get();
    services_.job_files = &*job_files_;
  }

  std::string Keep(const std::string& content) {
    std::string sha256 = Sha256Of(content);
    files::Upload upload(files_.get(), files::Viewer::All("alice"));
    EXPECT_TRUE(upload.Begin(sha256, content.size()).ok());
    EXPECT_TRUE(upload.Append(content).ok());
    EXPECT_TRUE(upload.Finish().ok());
    return sha256;
  }
  bool IsKept(const std::string& sha256) const {
    return std::filesystem::exists(directory_ / "old/kept" / sha256);
  }

  absl::Time now_ = absl::Now();
};

TEST_F(FileExpiryTest, TheVariablesOfAnUnfinishedJobStay) {
  const std::string named = Keep("A=1"), other = Keep("B=2");
  v1::SubmitJobRequest request;
  request.mutable_spec()->mutable_command()->set_script("#!/bin/sh\ntrue\n");
  request.mutable_spec()
      ->mutable_slurm()
      ->mutable_batch_script()
      ->mutable_environment()
      ->set_file_sha256(named);
  const auto submitted = Await<v1::SubmitJobResponse>(
      [&](SubmitJobDone done) { SubmitJob(alice_, services_, request, std::move(done)); });
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  now_ += files_->options().retention + absl::Hours(1);
  WorkerPool pool({.threads = 1});
  FileExpiry expiry(files_.get(), &*job_files_, &store_, &pool);
  expiry.Begin();
  for (int i = 0; i < kMaxCalls && IsKept(other); ++i) {
    std::promise<void> called;
    ASSERT_TRUE(pool.PostCall([&] { called.set_value(); }));
    called.get_future().wait();
  }
  pool.Stop();
  EXPECT_FALSE(IsKept(other));
  EXPECT_TRUE(IsKept(named));
}

}  // namespace
}  // namespace muster::broker
