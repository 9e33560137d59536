#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/app/download_file.h"
#include "broker/app/find_missing_files.h"
#include "broker/files/upload.h"
#include "contract/errors.h"
#include "digest/sha256.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

class FilesOfJobsTest : public AppTest {
 protected:
  std::string Keep(const std::string& content) {
    Sha256 digest;
    digest.Add(content);
    const std::string sha256 = digest.Finish();
    files::Upload upload(files_.get());
    EXPECT_TRUE(upload.Begin(sha256, content.size()).ok());
    EXPECT_TRUE(upload.Append(content).ok());
    EXPECT_TRUE(upload.Finish().ok());
    return sha256;
  }

  static std::string ContentOf(const FileSource::Pulled& pulled) {
    std::string content;
    for (const v1::DownloadFileResponse& message : pulled.messages) content += message.chunk();
    return content;
  }

  const std::string unknown_ = std::string(64, 'a');
};

TEST_F(FilesOfJobsTest, MissingAreThoseThatAreNotHereEachOnce) {
  const std::string kept = Keep("here");
  v1::FindMissingFilesRequest request;
  for (const std::string& sha256 : {unknown_, kept, unknown_}) request.add_sha256(sha256);
  const auto found = FindMissingFiles(alice_, services_, request);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->missing_sha256(), ElementsAre(unknown_));
  EXPECT_EQ(found->max_job_bytes(), files_->options().max_job_bytes);
  EXPECT_TRUE(absl::IsPermissionDenied(FindMissingFiles(stranger_, services_, request).status()));
  request.add_sha256("not hex");
  EXPECT_TRUE(absl::IsInvalidArgument(FindMissingFiles(alice_, services_, request).status()));
}

TEST_F(FilesOfJobsTest, AFileComesBackFromAnyOffset) {
  v1::DownloadFileRequest request;
  request.set_sha256(Keep("0123456789"));
  for (const uint64_t offset : {0, 7, 10}) {
    request.set_offset(offset);
    const auto source = DownloadFile(alice_, services_, request);
    ASSERT_TRUE(source.ok()) << source.status();
    const auto pulled = PullAll(**source);
    EXPECT_EQ(ContentOf(pulled), std::string("0123456789").substr(offset));
    EXPECT_TRUE(pulled.final_status->ok()) << *pulled.final_status;
  }
  request.set_offset(11);
  const auto beyond = PullAll(**DownloadFile(alice_, services_, request));
  EXPECT_EQ(contract::GetErrorInfo(*beyond.final_status)->reason(), "OFFSET_BEYOND_END");
}

TEST_F(FilesOfJobsTest, DownloadsOfNothingAreRefused) {
  v1::DownloadFileRequest request;
  EXPECT_TRUE(absl::IsInvalidArgument(DownloadFile(alice_, services_, request).status()));
  request.set_sha256(unknown_);
  EXPECT_TRUE(absl::IsPermissionDenied(DownloadFile(stranger_, services_, request).status()));
  const auto pulled = PullAll(**DownloadFile(alice_, services_, request));
  EXPECT_EQ(contract::GetErrorInfo(*pulled.final_status)->reason(), "FILE_NOT_FOUND");
}

}  // namespace
}  // namespace muster::broker
