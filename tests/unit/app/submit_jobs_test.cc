#include "broker/app/submit_jobs.h"

#include <gtest/gtest.h>

#include "contract/errors.h"
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
