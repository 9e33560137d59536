#include "broker/http/json_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "broker/http/methods.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::http {
namespace {

using testing::HasSubstr;

constexpr char kRequest[] = "muster.v1.SubmitJobRequest";

TEST(JsonCodec, TakesBothSpellingsOfAField) {
  for (const char* const text :
       {R"({"requestId":"a","spec":{"name":"n"}})", R"({"request_id":"a","spec":{"name":"n"}})"}) {
    v1::SubmitJobRequest request;
    const auto bytes = FromJson(kRequest, text);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(request.ParseFromString(*bytes));
    EXPECT_EQ(request.request_id(), "a");
    EXPECT_EQ(request.spec().name(), "n");
  }
}

TEST(JsonCodec, TakesNothingForAnEmptyMessage) {
  EXPECT_EQ(*FromJson(kRequest, ""), "");
  EXPECT_EQ(*FromJson(kRequest, "{}"), "");
}

TEST(JsonCodec, WritesNumbersOf64BitsAsTextAndEnumsByName) {
  v1::Job job;
  job.set_id(42);
  job.set_state(v1::JOB_STATE_QUEUED);
  const auto json = nlohmann::json::parse(*ToJson("muster.v1.Job", job.SerializeAsString()));
  EXPECT_EQ(json, (nlohmann::json{{"id", "42"}, {"state", "JOB_STATE_QUEUED"}}));
}

TEST(JsonCodec, RefusesAnUnknownFieldByItsName) {
  const auto bytes = FromJson(kRequest, R"({"spec":{"colour":"n"}})");
  ASSERT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ToStd(bytes.status().message())), HasSubstr("colour:"));
  EXPECT_EQ(contract::GetErrorInfo(bytes.status())->reason(), "BAD_JSON");
}

TEST(JsonCodec, RefusesWhatIsNoJsonAndWhatIsTooDeep) {
  EXPECT_FALSE(FromJson(kRequest, "{").ok());
  EXPECT_FALSE(FromJson(kRequest, R"({"spec":7})").ok());
  EXPECT_FALSE(FromJson(kRequest, std::string(100'000, '[')).ok());
}

TEST(Methods, AreThoseOfTheServicesThatAreNamed) {
  const Methods methods({"muster.v1.JobsService", "muster.v1.NoService"});
  const Method* const watch = methods.Find("/muster.v1.JobsService/WatchJobs");
  ASSERT_NE(watch, nullptr);
  EXPECT_TRUE(watch->server_streams);
  EXPECT_FALSE(watch->client_streams);
  EXPECT_EQ(watch->input, "muster.v1.WatchJobsRequest");
  EXPECT_TRUE(methods.Find("/muster.v1.JobsService/GetJob")->IsUnary());
  EXPECT_EQ(methods.Find("/muster.v1.ClustersService/ListClusters"), nullptr);
  EXPECT_EQ(methods.Find("muster.v1.JobsService/GetJob"), nullptr);
}

}  // namespace
}  // namespace muster::http
