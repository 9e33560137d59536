#include "agents/kubernetes/api/api.h"

#include <fstream>
#include <mutex>

#include "absl/time/clock.h"
#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ApiTest : public ::testing::Test {
 protected:
  // Answers in turn, and goes on with the last one.
  void Script(std::vector<ScriptedReply> replies) {
    server_ = std::make_unique<ScriptedServer>([this, replies](const ScriptedRequest& request) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      return replies[std::min(requests_.size(), replies.size()) - 1];
    });
    Endpoint endpoint;
    endpoint.server = server_->url();
    endpoint.identity.token_file = directory_ / "token";
    std::ofstream(endpoint.identity.token_file) << "first";
    api_ = std::make_unique<Api>(endpoint, &host_);
  }
  static ScriptedReply Refusal(int status, const std::string& reason, const std::string& message) {
    return {.status = status,
            .body = Json{{"kind", "Status"}, {"reason", reason}, {"message", message}}.dump()};
  }
  size_t request_count() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

  hosts::TempDir directory_;
  hosts::LocalHost host_;
  std::mutex mutex_;
  std::vector<ScriptedRequest> requests_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Api> api_;
};

TEST_F(ApiTest, ACallCarriesItsBodyAndWhoAsks) {
  Script({{.status = 201, .body = R"({"kind": "Job"})"}});
  const auto answer = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body["kind"], "Job");
  EXPECT_EQ(requests_[0].method, "POST");
  EXPECT_EQ(requests_[0].target, "/jobs");
  EXPECT_EQ(requests_[0].body, R"({"a":1})");
  EXPECT_EQ(requests_[0].headers["authorization"], "Bearer first");
  EXPECT_EQ(requests_[0].headers["content-type"], "application/json");
  EXPECT_EQ(api_->Calls()["POST"], 1u);
}

TEST_F(ApiTest, WhatAKeptConnectionMayHaveMadeIsRememberedWhileTheServerSendsTheCallAway) {
  for (const int away : {401, 429}) {
    requests_.clear();
    Script({{.body = "{}"},      // the connection is kept
            {.hangs_up = true},  // it has done so, and nobody heard
            {.status = away},    // what was sent again
            Refusal(409, "AlreadyExists", "it is there")});
    ASSERT_TRUE(api_->Get("/version", "the version").ok());
    const auto answer = api_->Call({.method = "POST", .path = "/secrets", .body = {{"a", 1}}});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 409);
    EXPECT_EQ(request_count(), 4u);
    EXPECT_TRUE(answer->was_sent_again) << "after " << away;
  }
}

TEST_F(ApiTest, WhatWasSentAwayIsNotSaidToHaveBeenHeard) {
  Script({{.status = 429}, Refusal(409, "AlreadyExists", "it is there")});
  const auto answer = api_->Call({.method = "POST", .path = "/secrets", .body = {{"a", 1}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 409);
  EXPECT_FALSE(answer->was_sent_again);
}

// Variables of this process, for as long as it lives.
class Environment {
 public:
  using Values = std::map<std::string, std::string>;
  explicit Environment(Values values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const Values values_;
};

TEST_F(ApiTest, TheProxyOfTheEnvironmentIsThatOfTheServersSchemeInCapitalsAndNoOther) {
  Script({{.body = "{}"}});
  Endpoint far;
  far.server = "http://api.invalid";
  {
    const Environment environment(Environment::Values{{"HTTP_PROXY", server_->url()}});
    EXPECT_TRUE(Api(far, &host_).Get("/x", "x").ok());
    EXPECT_EQ(requests_.back().target, "http://api.invalid/x");
  }
  const Environment environment(
      Environment::Values{{"ALL_PROXY", server_->url()}, {"HTTPS_PROXY", server_->url()}});
  EXPECT_FALSE(Api(far, &host_).Get("/x", "x").ok());
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(ApiTest, AProxyOfTheKubeconfigIsAskedWhateverTheEnvironmentSays) {
  Script({{.body = "{}"}});
  Endpoint far;
  far.server = "http://api.invalid";
  far.proxy_url = server_->url();
  const Environment environment(Environment::Values{{"NO_PROXY", "*"}});
  EXPECT_TRUE(Api(far, &host_).Get("/x", "x").ok());
}

TEST_F(ApiTest, ARefusalIsToldWholeAndByItsKind) {
  Script({Refusal(409, "AlreadyExists", "jobs.batch \"x\" already exists")});
  const auto answer = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->ok());
  const absl::Status status = RefusalOf(*answer, "create Job x");
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("create Job x: the API server answered 409 AlreadyExists: jobs.batch \"x\" "
                        "already exists"));
}

TEST(RefusalTest, WhoeverSendsNoGoodCredentialsIsToldWhatToDo) {
  const auto words = [](int status, const char* message) {
    ApiAnswer answer;
    answer.status = status;
    answer.message = message;
    return std::string(RefusalOf(answer, "get x").message());
  };
  EXPECT_THAT(words(401, "Unauthorized"), HasSubstr("Unauthorized; the credentials have expired"));
  EXPECT_THAT(words(403, "x is forbidden: User \"system:anonymous\" cannot get"),
              HasSubstr("; no credentials were sent: name a user"));
  EXPECT_THAT(words(403, "x is forbidden: User \"bob\" cannot get"), EndsWith("cannot get"));
  EXPECT_THAT(words(401, "admission webhook \"w\" denied the request: no"), EndsWith(": no"))
      << "the status that a webhook chose";
}

TEST_F(ApiTest, A401IsAskedAgainOnceWithTheTokenOfNow) {
  Script({{.body = "{}"}, Refusal(401, "Unauthorized", "Unauthorized"), {.body = "{}"}});
  ASSERT_TRUE(api_->Call({.path = "/a"}).ok());
  std::ofstream(directory_ / "token") << "second";
  const auto answer = api_->Call({.path = "/b"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  ASSERT_EQ(request_count(), 3u);
  EXPECT_EQ(requests_[1].headers["authorization"], "Bearer first");
  EXPECT_EQ(requests_[2].headers["authorization"], "Bearer second");
}

TEST_F(ApiTest, AnotherThanOne401IsTheAnswer) {
  Script({Refusal(401, "Unauthorized", "Unauthorized")});
  const auto answer = api_->Call({.path = "/a"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 401);
  EXPECT_EQ(request_count(), 2u);
}

TEST_F(ApiTest, AServerThatSaysLaterIsAskedLater) {
  Script({{.status = 429, .body = "", .headers = {"Retry-After: 1"}}, {.body = "{}"}});
  const absl::Time start = absl::Now();
  const auto answer = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_GE(absl::Now() - start, absl::Seconds(1)) << "as Retry-After says";
}

TEST_F(ApiTest, TheServersTimeIsThatOfItsLatestAnswer) {
  Script({{.body = "{}", .headers = {"Date: Thu, 01 Jan 2026 00:00:00 GMT"}},
          {.body = "{}", .headers = {"Date: no date"}}});
  EXPECT_LT(absl::AbsDuration(api_->ServerTime() - absl::Now()), absl::Hours(1)) << "nobody knows";
  const absl::Time told = absl::FromCivil(absl::CivilDay(2026, 1, 1), absl::UTCTimeZone());
  for (int answer = 0; answer < 2; ++answer) {
    ASSERT_TRUE(api_->Call({.path = "/a"}).ok());
    EXPECT_GE(api_->ServerTime(), told);
    EXPECT_LT(api_->ServerTime(), told + absl::Hours(1));
  }
}

TEST_F(ApiTest, WhatAdmissionDeniesIsNotAskedAgainWhateverStatusItChose) {
  Script({Refusal(429, "", "admission webhook \"budget\" denied the request: later")});
  const auto answer = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->IsDenied());
  EXPECT_EQ(api_->Calls()["POST"], 1u);
}

TEST_F(ApiTest, AFaultOfTheServerIsAskedAgainForReadsOnly) {
  Script({Refusal(503, "ServiceUnavailable", "starting"), {.body = "{}"}});
  const auto read = api_->Call({.path = "/a"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, 200);
  Script({Refusal(500, "InternalError", "etcd")});
  requests_.clear();
  const auto write = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->status, 500) << "it may have been done";
  EXPECT_EQ(request_count(), 1u);
}

TEST_F(ApiTest, ACallThatIsNotAnsweredEndsInItsTime) {
  Script({{.body = "{", .stays_open = true}});
  const auto answer = api_->Call({.path = "/a", .timeout = absl::Milliseconds(200)});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded) << answer.status();
}

TEST_F(ApiTest, AServerThatIsNotThereHasDoneNothingAndOneThatHangsUpMayHave) {
  Script({{.hangs_up = true}});
  const auto cut = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kAborted) << cut.status();
  server_.reset();
  const auto gone = api_->Call({.method = "POST", .path = "/jobs", .body = {{"a", 1}}});
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kUnavailable) << gone.status();
}

TEST(EscapeTest, WhatAQueryCannotHoldIsEscaped) {
  EXPECT_EQ(Escape("a=b,c in (d)/~é"), "a%3Db%2Cc%20in%20%28d%29%2F~%C3%A9");
}

}  // namespace
}  // namespace muster::kubernetes
