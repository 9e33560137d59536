// The service Files, and submits of jobs that bring files along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "contract/errors.h"
#include "contract/file_tree.h"
#include "digest/sha256.h"
#include "muster/v1/file_tree.pb.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

std::string BadField(const grpc::Status& status) {
  const auto bad = contract::GetBadRequest(rpc::FromGrpc(status));
  return bad ? bad->field_violations(0).field() : "";
}

// Sends files in chunks; nothing of them is wrong but what `adjust` makes so.
grpc::Status Upload(TestBroker& broker, const std::vector<std::string>& contents,
                    v1::UploadFilesResponse* response = nullptr,
                    const std::function<void(v1::UploadFilesRequest&)>& adjust = nullptr) {
  v1::UploadFilesResponse ignored;
  const auto context = Call();
  const auto stream = broker.files().UploadFiles(context.get(), response ? response : &ignored);
  const auto send = [&](v1::UploadFilesRequest part) {
    if (adjust) adjust(part);
    return stream->Write(part);
  };
  for (const std::string& content : contents) {
    v1::UploadFilesRequest head;
    head.mutable_head()->set_sha256(Sha256Of(content));
    head.mutable_head()->set_size_bytes(content.size());
    bool open = send(head);
    for (size_t at = 0; open && at < content.size(); at += contract::kMaxFileChunkBytes) {
      v1::UploadFilesRequest chunk;
      chunk.set_chunk(content.substr(at, contract::kMaxFileChunkBytes));
      open = send(chunk);
    }
    if (!open) break;
  }
  stream->WritesDone();
  return stream->Finish();
}

std::vector<std::string> Missing(TestBroker& broker, const std::vector<std::string>& contents) {
  v1::FindMissingFilesRequest request;
  for (const std::string& content : contents) request.add_sha256(Sha256Of(content));
  v1::FindMissingFilesResponse response;
  const grpc::Status status = broker.files().FindMissingFiles(Call().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(response.max_job_bytes(), 0u);
  return {response.missing_sha256().begin(), response.missing_sha256().end()};
}

grpc::Status Download(TestBroker& broker, const std::string& sha256, uint64_t offset,
                      std::string* content) {
  v1::DownloadFileRequest request;
  request.set_sha256(sha256);
  request.set_offset(offset);
  const auto context = Call();
  const auto stream = broker.files().DownloadFile(context.get(), request);
  content->clear();
  v1::DownloadFileResponse piece;
  while (stream->Read(&piece)) {
    EXPECT_LE(piece.chunk().size(), contract::kMaxFileChunkBytes);
    *content += piece.chunk();
  }
  return stream->Finish();
}

// Makes a tree of one file.
std::string TreeOf(const std::string& content) {
  v1::FileTree tree;
  v1::FileTreeEntry& entry = *tree.add_entries();
  entry.set_path("train.py");
  entry.set_kind(v1::FILE_KIND_FILE);
  entry.set_size_bytes(content.size());
  entry.set_sha256(Sha256Of(content));
  tree.set_total_bytes(content.size());
  return tree.SerializeAsString();
}

v1::SubmitJobRequest SubmitTree(const std::string& content, const std::string& request_id = "") {
  v1::SubmitJobRequest request = SubmitTrue(request_id);
  request.mutable_spec()->add_uploads()->set_tree_sha256(Sha256Of(TreeOf(content)));
  return request;
}

grpc::Status Submit(TestBroker& broker, const v1::SubmitJobRequest& request,
                    v1::SubmitJobResponse* response = nullptr) {
  v1::SubmitJobResponse ignored;
  return broker.jobs().SubmitJob(Call().get(), request, response ? response : &ignored);
}

TEST(Files, WhatIsUploadedIsMissingNoMoreAndIsDownloadedAsItWas) {
  TestBroker broker;
  const std::string large(1'000'000, 'x');
  EXPECT_THAT(Missing(broker, {large, "small", large}),
              ElementsAre(Sha256Of(large), Sha256Of("small")));
  v1::UploadFilesResponse response;
  ASSERT_TRUE(Upload(broker, {large, "small", ""}, &response).ok());
  EXPECT_EQ(response.stored_files(), 3u);
  EXPECT_THAT(Missing(broker, {large, "small", ""}), IsEmpty());
  ASSERT_TRUE(Upload(broker, {large, "new"}, &response).ok());
  EXPECT_EQ(response.stored_files(), 1u);
  EXPECT_EQ(response.known_files(), 1u);
  std::string content;
  ASSERT_TRUE(Download(broker, Sha256Of(large), 0, &content).ok());
  EXPECT_TRUE(content == large);
}

TEST(Files, ADownloadBeginsAtItsOffset) {
  TestBroker broker;
  ASSERT_TRUE(Upload(broker, {"abcdef"}).ok());
  std::string content;
  EXPECT_TRUE(Download(broker, Sha256Of("abcdef"), 4, &content).ok());
  EXPECT_EQ(content, "ef");
  EXPECT_TRUE(Download(broker, Sha256Of("abcdef"), 6, &content).ok());
  EXPECT_EQ(content, "");
  EXPECT_EQ(Download(broker, Sha256Of("abcdef"), 7, &content).error_code(), grpc::OUT_OF_RANGE);
}

TEST(Files, AFileThatTheDiskHasChangedIsNotGivenAwayAndIsUploadedAnew) {
  TestBroker broker;
  const std::string large(2'000'000, 'x');
  const std::string sha256 = Sha256Of(large);
  ASSERT_TRUE(Upload(broker, {large}).ok());
  {
    std::fstream kept(broker.directory() / "files/kept" / sha256);
    kept.seekp(1'234'567);
    kept.put('y');
  }
  std::string content;
  grpc::Status status = Download(broker, sha256, 1'500'000, &content);
  EXPECT_TRUE(status.ok()) << "it goes on with what is good: " << status.error_message();
  status = Download(broker, sha256, 0, &content);
  EXPECT_EQ(Reason(status), "FILE_NOT_FOUND");
  EXPECT_LT(content.size(), large.size()) << "nobody may take it for whole";
  EXPECT_THAT(Missing(broker, {large}), ElementsAre(sha256));
  ASSERT_TRUE(Upload(broker, {large}).ok());
  EXPECT_TRUE(Download(broker, sha256, 0, &content).ok());
  EXPECT_TRUE(content == large);
}

TEST(Files, WhatIsNotThereOrNoDigestIsRefusedByName) {
  TestBroker broker;
  std::string content;
  grpc::Status status = Download(broker, Sha256Of("no"), 0, &content);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr(Sha256Of("no")));
  EXPECT_EQ(BadField(Download(broker, "../broker.db", 0, &content)), "sha256");
  v1::FindMissingFilesRequest request;
  request.add_sha256(Sha256Of("a"));
  request.add_sha256("b");
  v1::FindMissingFilesResponse response;
  status = broker.files().FindMissingFiles(Call().get(), request, &response);
  EXPECT_EQ(BadField(status), "sha256[1]");
  for (size_t i = 0; i < contract::kMaxDigestsPerRequest; ++i) request.add_sha256(Sha256Of("a"));
  status = broker.files().FindMissingFiles(Call().get(), request, &response);
  EXPECT_EQ(BadField(status), "sha256");
}

TEST(Files, AnUploadThatIsNotAsAnnouncedIsRefused) {
  TestBroker broker;
  grpc::Status status = Upload(broker, {"abc"}, nullptr, [](v1::UploadFilesRequest& part) {
    if (part.has_chunk()) part.set_chunk("abd");
  });
  EXPECT_EQ(Reason(status), "WRONG_DIGEST");
  status =
      Upload(broker, {"abc"}, nullptr, [](v1::UploadFilesRequest& part) { part.mutable_chunk(); });
  EXPECT_EQ(BadField(status), "chunk") << "a chunk without a head";
  status = Upload(broker, {"abc"}, nullptr, [](v1::UploadFilesRequest& part) { part.Clear(); });
  EXPECT_EQ(BadField(status), "part");
  status = Upload(broker, {"abc"}, nullptr, [](v1::UploadFilesRequest& part) {
    if (part.has_chunk()) part.set_chunk(std::string(contract::kMaxFileChunkBytes + 1, 'x'));
  });
  EXPECT_EQ(BadField(status), "chunk");
  EXPECT_THAT(Missing(broker, {"abc"}), ElementsAre(Sha256Of("abc")));
}

TEST(Files, MoreUploadsThanMayBeUnderWayAreRefusedAndPlacesComeBack) {
  TestBroker broker;
  constexpr int kMaxUploads = 32;
  struct Open {
    std::unique_ptr<grpc::ClientContext> context = Call();
    v1::UploadFilesResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::UploadFilesRequest>> stream;
  };
  std::vector<Open> open(kMaxUploads);
  v1::UploadFilesRequest head;
  head.mutable_head()->set_sha256(Sha256Of("abc"));
  head.mutable_head()->set_size_bytes(3);
  for (Open& one : open) {
    one.stream = broker.files().UploadFiles(one.context.get(), &one.response);
    ASSERT_TRUE(one.stream->Write(head));
    one.stream->WaitForInitialMetadata();  // it has its place
  }
  grpc::Status status = Upload(broker, {"abc"});
  EXPECT_EQ(Reason(status), "TOO_MANY_UPLOADS");
  for (Open& one : open) {
    one.stream->WritesDone();
    EXPECT_EQ(Reason(one.stream->Finish()), "WRONG_SIZE");
  }
  do {
    status = Upload(broker, {"abc"});
  } while (Reason(status) == "TOO_MANY_UPLOADS");
  EXPECT_TRUE(status.ok()) << status.error_message();
}

class SubmitFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(agent_.Connect(
        [](agent::v1::AgentHello& hello) { hello.mutable_inventory()->set_takes_uploads(true); }));
  }

  TestBroker broker_;
  FakeAgent agent_{broker_};
};

TEST_F(SubmitFilesTest, AJobIsAcceptedOnceItsFilesAreThere) {
  grpc::Status status = Submit(broker_, SubmitTree("print(1)"));
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  ASSERT_TRUE(Upload(broker_, {TreeOf("print(1)")}).ok());
  status = Submit(broker_, SubmitTree("print(1)"));
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  EXPECT_THAT(status.error_message(), HasSubstr("train.py"));
  ASSERT_TRUE(Upload(broker_, {"print(1)"}).ok());
  broker_.Submit(SubmitTree("print(1)"));
  const auto assignments = agent_.ReadAssignments(1);
  ASSERT_EQ(assignments.size(), 1u);
  EXPECT_EQ(assignments[0].spec().uploads(0).tree_sha256(), Sha256Of(TreeOf("print(1)")));
}

TEST_F(SubmitFilesTest, ABatchNamesTheRequestWhoseFilesAreMissingAndAcceptsNone) {
  ASSERT_TRUE(Upload(broker_, {"a", TreeOf("a")}).ok());
  v1::SubmitJobsRequest batch;
  *batch.add_requests() = SubmitTree("a");
  *batch.add_requests() = SubmitTree("b");
  v1::SubmitJobsResponse response;
  const grpc::Status status = broker_.jobs().SubmitJobs(Call().get(), batch, &response);
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  EXPECT_THAT(status.error_message(), HasSubstr("requests[1].spec.uploads[0].tree_sha256"));
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(broker_.jobs().ListJobs(Call().get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
}

TEST_F(SubmitFilesTest, ARepeatIsAcceptedAlthoughItsFilesHaveGone) {
  ASSERT_TRUE(Upload(broker_, {"a", TreeOf("a")}).ok());
  const uint64_t id = broker_.Submit(SubmitTree("a", "once"));
  std::filesystem::remove_all(broker_.directory() / "files/kept");
  v1::SubmitJobResponse response;
  ASSERT_TRUE(Submit(broker_, SubmitTree("a", "once"), &response).ok());
  EXPECT_EQ(response.job_id(), id);
}

TEST_F(SubmitFilesTest, WhoOnlyAsksWhetherAJobWouldBeAcceptedNeedsNoFiles) {
  v1::SubmitJobRequest request = SubmitTree("never uploaded");
  request.set_validate_only(true);
  EXPECT_TRUE(Submit(broker_, request).ok());
}

TEST_F(SubmitFilesTest, MoreDifferentTreesThanOneCallMayNameAreRefused) {
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < 65; ++i) *batch.add_requests() = SubmitTree(std::to_string(i));
  v1::SubmitJobsResponse response;
  EXPECT_EQ(BadField(broker_.jobs().SubmitJobs(Call().get(), batch, &response)), "requests");
}

TEST(SubmitFiles, AClusterThatTakesNoUploadsIsTheFirstToBeNamed) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  const grpc::Status status = Submit(broker, SubmitTree("never uploaded"));
  EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED");
}

TEST(SubmitFiles, AnArchiveThatIsTooLargeIsRefusedOnceTheListOfFilesIsThere) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](agent::v1::AgentHello& hello) {
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    hello.mutable_inventory()->set_takes_uploads(true);
    v1::AdmissionFacts* facts = hello.mutable_inventory()->mutable_admission();
    facts->set_max_archive_bytes(2 << 20);
    facts->mutable_kubernetes();
  }));
  const std::string content(3 << 20, 'x');
  v1::SubmitJobRequest request = SubmitTree(content);
  request.mutable_spec()->set_image("busybox:1");
  request.set_validate_only(true);
  EXPECT_TRUE(Submit(broker, request).ok()) << "nobody knows how large it is";
  ASSERT_TRUE(Upload(broker, {TreeOf(content)}).ok());
  for (const bool validate_only : {true, false}) {
    request.set_validate_only(validate_only);
    const grpc::Status status = Submit(broker, request);
    EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED") << "before that its files are missing";
    EXPECT_THAT(status.error_message(), HasSubstr("they make an archive of 3"));
  }
}

TEST_F(SubmitFilesTest, HousekeepingRemovesWhatNoUnfinishedJobNames) {
  ASSERT_TRUE(Upload(broker_, {"code", TreeOf("code"), "rubbish"}).ok());
  broker_.Submit(SubmitTree("code"));
  const auto rubbish = broker_.directory() / "files/kept" / Sha256Of("rubbish");
  const auto code = broker_.directory() / "files/kept" / Sha256Of("code");
  // A tree that cannot be read keeps nothing of the others.
  ASSERT_TRUE(Upload(broker_, {"other", TreeOf("other")}).ok());
  broker_.Submit(SubmitTree("other"));
  const auto tree = broker_.directory() / "files/kept" / Sha256Of(TreeOf("other"));
  std::filesystem::remove(tree);
  std::filesystem::create_directory(tree);
  broker_.PassTimeOfFiles(absl::Hours(24 * 8));
  const absl::Time patience = absl::Now() + absl::Seconds(60);
  broker_.broker().Housekeep();
  while (std::filesystem::exists(rubbish) && absl::Now() < patience) std::this_thread::yield();
  EXPECT_FALSE(std::filesystem::exists(rubbish));
  EXPECT_THAT(Missing(broker_, {"code", TreeOf("code")}), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(code));
}

}  // namespace
}  // namespace muster::broker
