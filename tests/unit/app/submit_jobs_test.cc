#include "broker/app/submit_jobs.h"

#include <gtest/gtest.h>

#include "broker/files/upload.h"
#include "contract/errors.h"
#include "contract/task_array.h"
#include "digest/sha256.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

class SubmitJobsTest : public AppTest {
 protected:
  static v1::SubmitJobRequest TrueJob() {
    v1::SubmitJobRequest request;
    request.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
    return request;
  }
  absl::StatusOr<v1::SubmitJobResponse> One(const Principal& principal,
                                            const v1::SubmitJobRequest& request) {
    return Await<v1::SubmitJobResponse>([&](SubmitJobDone done) {
      broker::SubmitJob(principal, services_, request, std::move(done));
    });
  }
  absl::StatusOr<v1::SubmitJobsResponse> Many(const v1::SubmitJobsRequest& request) {
    return Await<v1::SubmitJobsResponse>(
        [&](SubmitDone done) { broker::SubmitJobs(alice_, services_, request, std::move(done)); });
  }
  static std::string FieldOf(const absl::Status& status) {
    const auto bad = contract::GetBadRequest(status);
    return bad && bad->field_violations_size() > 0 ? bad->field_violations(0).field() : "";
  }
};

TEST_F(SubmitJobsTest, AJobIsOfWhoSubmitsIt) {
  const auto submitted = One(alice_, TrueJob());
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->job_id(), 1u);
  EXPECT_EQ(Read(1).user(), "alice");
}

TEST_F(SubmitJobsTest, ABadSpecIsNamedByItsPath) {
  EXPECT_EQ(FieldOf(One(alice_, {}).status()), "spec");
  v1::SubmitJobsRequest request;
  *request.add_requests() = TrueJob();
  request.add_requests();
  EXPECT_EQ(FieldOf(Many(request).status()), "requests[1].spec");
  *request.mutable_requests(1) = TrueJob();
  request.mutable_requests(1)->set_validate_only(true);
  EXPECT_EQ(FieldOf(Many(request).status()), "requests[1].validate_only");
  EXPECT_TRUE(absl::IsNotFound(store_.GetJob(store::Scope::All(), 1).status())) << "none";
}

TEST_F(SubmitJobsTest, AScriptsVariablesMustBeHere) {
  v1::SubmitJobsRequest request;
  for (int i = 0; i < 2; ++i) {
    v1::JobSpec& spec = *request.add_requests()->mutable_spec();
    spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
    spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(
        Sha256Of("A=1"));
  }
  const absl::Status missing = Many(request).status();
  const auto info = contract::GetErrorInfo(missing);
  ASSERT_TRUE(info.has_value()) << missing;
  EXPECT_EQ(info->reason(), "FILES_MISSING");
  EXPECT_EQ(info->metadata().at("field"),
            "requests[0].spec.slurm.batch_script.environment.file_sha256");
  files::Upload upload(files_.get(), files::Viewer::All("alice"));
  EXPECT_TRUE(upload.Begin(Sha256Of("A=1"), 3).ok());
  EXPECT_TRUE(upload.Append("A=1").ok());
  EXPECT_TRUE(upload.Finish().ok());
  const auto submitted = Many(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->responses_size(), 2);
}

// Returns the task at this place of an array of `count`: 1, 3, 5 ...
v1::SubmitJobRequest Task(uint32_t place, uint32_t count) {
  v1::SubmitJobRequest request;
  request.mutable_spec()->mutable_command()->set_script("true");
  request.mutable_spec()->mutable_slurm()->mutable_batch_script();
  contract::SetArrayTask({.id = 1 + 2 * place,
                          .count = count,
                          .min_id = 1,
                          .max_id = 2 * count - 1,
                          .step = 2,
                          .place = place},
                         request.mutable_spec());
  return request;
}

TEST_F(SubmitJobsTest, ATaskWithoutTheRestOfItsArrayIsAnArrayOfItsOwn) {
  ASSERT_TRUE(One(alice_, TrueJob()).ok());
  const auto submitted = One(alice_, Task(/*place=*/3, /*count=*/5));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const auto task = contract::FindArrayTask(Read(submitted->job_id()).spec());
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->id, 7u);
  EXPECT_EQ(task->count, 1u);
  EXPECT_EQ(contract::ArrayNumber(submitted->job_id(), *task), submitted->job_id());
}

TEST_F(SubmitJobsTest, ATaskAmongOthersKeepsItsPlaceIfItsArrayIsWhole) {
  v1::SubmitJobsRequest request;
  *request.add_requests() = TrueJob();
  for (uint32_t place = 0; place < 3; ++place) *request.add_requests() = Task(place, 3);
  for (uint32_t place = 0; place < 2; ++place) *request.add_requests() = Task(place, 3);
  *request.add_requests() = TrueJob();
  *request.add_requests() = Task(2, 3);
  const auto submitted = Many(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  std::vector<uint32_t> counts;
  for (const int task : {1, 2, 3, 4, 5, 7}) {
    counts.push_back(
        contract::FindArrayTask(Read(submitted->responses(task).job_id()).spec())->count);
  }
  EXPECT_EQ(counts, (std::vector<uint32_t>{3, 3, 3, 1, 1, 1}));
}

TEST_F(SubmitJobsTest, ATaskIsAnArrayOfItsOwnIfAnotherTaskOfItsArrayIsKnown) {
  v1::SubmitJobsRequest request;
  for (uint32_t place = 0; place < 3; ++place) *request.add_requests() = Task(place, 3);
  for (uint32_t place = 0; place < 2; ++place) *request.add_requests() = Task(place, 2);
  request.mutable_requests(1)->set_request_id("known");
  const auto known = One(alice_, request.requests(1));
  ASSERT_TRUE(known.ok()) << known.status();
  const auto submitted = Many(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->responses(1).job_id(), known->job_id());
  std::vector<uint32_t> counts;
  for (const v1::SubmitJobResponse& one : submitted->responses()) {
    counts.push_back(contract::FindArrayTask(Read(one.job_id()).spec())->count);
  }
  EXPECT_EQ(counts, (std::vector<uint32_t>{1, 1, 1, 2, 2}));
}

TEST_F(SubmitJobsTest, AnArrayIsWholeAlsoWhenItIsRepeated) {
  v1::SubmitJobsRequest request;
  for (uint32_t place = 0; place < 3; ++place) {
    *request.add_requests() = Task(place, 3);
    request.mutable_requests(static_cast<int>(place))->set_request_id(std::to_string(place));
  }
  const auto first = Many(request);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto repeat = Many(request);
  ASSERT_TRUE(repeat.ok()) << repeat.status();
  for (int place = 0; place < 3; ++place) {
    EXPECT_EQ(repeat->responses(place).job_id(), first->responses(place).job_id());
    const auto task = contract::FindArrayTask(Read(repeat->responses(place).job_id()).spec());
    EXPECT_EQ(task->count, 3u);
  }
}

TEST_F(SubmitJobsTest, ManyAreSubmittedTogether) {
  v1::SubmitJobsRequest request;
  for (int i = 0; i < 3; ++i) *request.add_requests() = TrueJob();
  const auto submitted = Many(request);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->responses(2).job_id(), 3u);
}

TEST_F(SubmitJobsTest, WhoHasNoRightSubmitsNothing) {
  EXPECT_TRUE(absl::IsPermissionDenied(One(stranger_, TrueJob()).status()));
  EXPECT_TRUE(absl::IsNotFound(store_.GetJob(store::Scope::All(), 1).status()));
}

}  // namespace
}  // namespace muster::broker
