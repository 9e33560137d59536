#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/app/download_file.h"
#include "broker/app/find_missing_files.h"
#include "broker/app/submit_jobs.h"
#include "broker/files/upload.h"
#include "contract/errors.h"
#include "digest/sha256.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

class FilesOfJobsTest : public AppTest {
 protected:
  std::string Keep(const std::string& content,
                   const files::Viewer& viewer = files::Viewer::All("alice")) {
    const std::string sha256 = Sha256Of(content);
    files::Upload upload(files_.get(), viewer);
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

// A user with a role in a project alone.
Principal MemberOf(const std::string& project, const std::string& user,
                   Role role = Role::kSubmitter) {
  return {.user = user,
          .known_by = KnownBy::kToken,
          .role = Role::kMember,
          .memberships = {{project, role}}};
}

TEST_F(FilesOfJobsTest, AFileIsThereForThoseWhoBroughtItAndForTheirProject) {
  const std::string theirs = Keep("theirs", files::Viewer::Of("ada", {}));
  const auto finds = [&](const Principal& who) {
    v1::FindMissingFilesRequest request;
    request.add_sha256(theirs);
    const auto found = FindMissingFiles(who, services_, request);
    EXPECT_TRUE(found.ok()) << found.status();
    v1::DownloadFileRequest download;
    download.set_sha256(theirs);
    const auto pulled = PullAll(**DownloadFile(who, services_, download));
    const bool is_there = found->missing_sha256().empty();
    EXPECT_EQ(pulled.final_status->ok(), is_there) << who.user;
    return is_there;
  };
  const Principal ada = MemberOf("vision", "ada"), carl = MemberOf("vision", "carl");
  const Principal bob = MemberOf("speech", "bob", Role::kAdmin);
  EXPECT_TRUE(finds(ada));
  EXPECT_TRUE(finds(alice_)) << "an admin of the broker may read all";
  EXPECT_FALSE(finds(carl)) << "nothing of it is in the project yet";
  EXPECT_FALSE(finds(bob));
  EXPECT_FALSE(finds(carol_)) << "a submitter over the whole broker has her own files";
  ASSERT_TRUE(files_->AddOwner({theirs}, files::OwnerOfProject("vision")).ok());
  EXPECT_TRUE(finds(carl));
  EXPECT_FALSE(finds(bob));
  Principal agent = carol_;
  agent.is_agent = true;
  v1::DownloadFileRequest request;
  request.set_sha256(theirs);
  EXPECT_TRUE(PullAll(**DownloadFile(agent, services_, request)).final_status->ok())
      << "an agent fetches for the jobs of all";
}

TEST_F(FilesOfJobsTest, AJobBringsNoFileOfOthersAlongAndItsProjectHasWhatItBrings) {
  const Principal ada = MemberOf("vision", "ada"), carl = MemberOf("vision", "carl");
  const std::string variables = Keep("A=1", files::Viewer::Of("ada", {"vision"}));
  const auto submit = [&](const Principal& who, const std::string& project) {
    v1::SubmitJobRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_project(project);
    spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
    spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(variables);
    return Await<v1::SubmitJobResponse>(
        [&](SubmitJobDone done) { SubmitJob(who, services_, request, std::move(done)); });
  };
  const auto reason = [](const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : "";
  };
  EXPECT_EQ(reason(submit(MemberOf("speech", "bob"), "speech").status()), "FILES_MISSING");
  EXPECT_EQ(reason(submit(carl, "vision").status()), "FILES_MISSING");
  const auto first = submit(ada, "vision");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = submit(carl, "vision");
  EXPECT_TRUE(second.ok()) << "the job of the same project has brought it: " << second.status();
  EXPECT_EQ(reason(submit(MemberOf("speech", "bob"), "speech").status()), "FILES_MISSING");
}

TEST_F(FilesOfJobsTest, ARefusedSubmitGivesItsProjectNothing) {
  const Principal ada = MemberOf("vision", "ada"), carl = MemberOf("vision", "carl");
  const std::string variables = Keep("A=1", files::Viewer::Of("ada", {"vision"}));
  v1::SubmitJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_project("vision");
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(variables);
  spec.mutable_placement()->add_clusters("nowhere");
  const auto submit = [&] {
    return Await<v1::SubmitJobResponse>(
        [&](SubmitJobDone done) { SubmitJob(ada, services_, request, std::move(done)); });
  };
  const auto carl_lacks = [&] {
    v1::FindMissingFilesRequest find;
    find.add_sha256(variables);
    return FindMissingFiles(carl, services_, find)->missing_sha256_size() == 1;
  };
  EXPECT_TRUE(absl::IsNotFound(submit().status())) << submit().status();
  EXPECT_TRUE(carl_lacks());
  request.set_validate_only(true);
  request.mutable_spec()->clear_placement();
  EXPECT_TRUE(submit().ok()) << submit().status();
  EXPECT_TRUE(carl_lacks()) << "a submit that only validates is no job";
  request.set_validate_only(false);
  EXPECT_TRUE(submit().ok());
  EXPECT_FALSE(carl_lacks()) << "the files are shared before the answer";
}

TEST_F(FilesOfJobsTest, ASubmitFindsAPlaceToShareItsFilesOrIsRefusedWhole) {
  const std::string variables = Keep("A=1");
  v1::SubmitJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(variables);
  const auto submit = [&] {
    return Await<v1::SubmitJobResponse>(
        [&](SubmitJobDone done) { SubmitJob(alice_, services_, request, std::move(done)); });
  };
  file_workers_.places = 0;
  EXPECT_TRUE(absl::IsResourceExhausted(submit().status()));
  EXPECT_TRUE(store_.ListJobs(store::Scope::All(), {})->jobs.empty());
  file_workers_.places = 1;
  EXPECT_TRUE(submit().ok());
  EXPECT_EQ(file_workers_.places, 1);
}

}  // namespace
}  // namespace muster::broker
