#include "broker/http/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "contract/errors.h"

namespace muster::http {
namespace {

using testing::HasSubstr;

const Methods& AllMethods() {
  static const Methods methods({"muster.v1.JobsService", "muster.v1.FilesService"});
  return methods;
}

Head Post(const std::string& path, const std::string& content_type = "application/json") {
  Head head;
  head.method = "POST";
  head.path = path;
  head.is_http11 = true;
  head.host = "lab:7071";
  head.content_type = content_type;
  return head;
}

std::variant<Route, Refusal> Decide(const Head& head) {
  return RouteOf(head, AllMethods(), Cors({"https://page.example"}), {});
}

Refusal RefusalOfHead(const Head& head) {
  auto decided = Decide(head);
  const auto* refusal = std::get_if<Refusal>(&decided);
  EXPECT_NE(refusal, nullptr);
  return refusal ? *refusal : Refusal{};
}

std::string ReasonOf(const Refusal& refusal) {
  const auto info = contract::GetErrorInfo(refusal.status);
  return info ? info->reason() : "";
}

constexpr char kGetJob[] = "/muster.v1.JobsService/GetJob";
constexpr char kWatch[] = "/muster.v1.JobsService/WatchJobs";

TEST(Route, IsACallWithItsForm) {
  auto decided = Decide(Post(kGetJob, "Application/JSON; charset=utf-8"));
  const auto& route = std::get<Route>(decided);
  EXPECT_EQ(route.method->path, kGetJob);
  EXPECT_TRUE(route.codec.is_json);
  EXPECT_FALSE(route.codec.is_stream);
  decided = Decide(Post(kWatch, "application/connect+proto"));
  EXPECT_TRUE(std::get<Route>(decided).codec.is_stream);
  EXPECT_FALSE(std::get<Route>(decided).codec.is_json);
}

TEST(Route, RefusesAFormThatTheMethodDoesNotTake) {
  for (const auto& head : {Post(kGetJob, "application/connect+json"), Post(kGetJob, "text/plain"),
                           Post(kGetJob, ""), Post(kWatch)}) {
    const Refusal refusal = RefusalOfHead(head);
    EXPECT_EQ(refusal.http_status, 415);
    EXPECT_EQ(ReasonOf(refusal), "WRONG_CONTENT_TYPE");
    EXPECT_THAT(refusal.headers, HasSubstr("Accept-Post: application/"));
  }
}

TEST(Route, RefusesOtherPathsAndVerbs) {
  EXPECT_EQ(RefusalOfHead(Post("/muster.agent.v1.AgentLinkService/Connect")).http_status, 404);
  EXPECT_EQ(RefusalOfHead(Post("/")).http_status, 404);
  Head head = Post(kGetJob);
  head.method = "GET";
  const Refusal refusal = RefusalOfHead(head);
  EXPECT_EQ(refusal.http_status, 405);
  EXPECT_THAT(refusal.headers, HasSubstr("Allow: POST"));
  head = Post("/healthz");
  EXPECT_EQ(RefusalOfHead(head).http_status, 405);
  head = Post(kGetJob);
  head.is_http11 = false;
  EXPECT_EQ(RefusalOfHead(head).http_status, 505);
}

TEST(Route, ReadsTheTimeoutOrRefusesIt) {
  Head head = Post(kGetJob);
  head.timeout_ms = "1500";
  auto decided = Decide(head);
  EXPECT_EQ(std::get<Route>(decided).timeout, absl::Milliseconds(1500));
  for (const char* const bad : {"-1", "1.5", "12345678901", "x", " 1"}) {
    head.timeout_ms = bad;
    EXPECT_EQ(ReasonOf(RefusalOfHead(head)), "BAD_TIMEOUT") << bad;
  }
}

TEST(Route, RefusesCompressionAndOtherVersions) {
  Head head = Post(kGetJob);
  head.content_encoding = "gzip";
  EXPECT_EQ(RefusalOfHead(head).http_status, 501);
  head.content_encoding = "identity";
  head.protocol_version = "2";
  EXPECT_EQ(ReasonOf(RefusalOfHead(head)), "BAD_PROTOCOL_VERSION");
  head.protocol_version = "1";
  EXPECT_TRUE(std::holds_alternative<Route>(Decide(head)));
}

TEST(Route, RefusesACredentialThatNoHeaderOfGrpcMayHave) {
  Head head = Post(kGetJob);
  head.credentials = {"Bearer \xff"};
  EXPECT_EQ(RefusalOfHead(head).http_status, 401);
}

TEST(Route, TellsTheErrorOfAStreamInTheStream) {
  Head head = Post(kWatch, "application/connect+json");
  EXPECT_FALSE(RefusalOfHead(Post(kWatch)).stream);
  head.timeout_ms = "x";
  ASSERT_TRUE(RefusalOfHead(head).stream);
  EXPECT_TRUE(RefusalOfHead(head).stream->is_json);
}

TEST(Route, LetsInPagesOfTheSameHostAndOfAllowedOriginsAlone) {
  Head head = Post(kGetJob);
  for (const char* const good : {"", "https://page.example", "http://lab:7071"}) {
    head.origin = good;
    EXPECT_TRUE(std::holds_alternative<Route>(Decide(head))) << good;
  }
  for (const char* const bad : {"https://evil.example", "null", "http://lab", "lab:7071"}) {
    head.origin = bad;
    EXPECT_EQ(ReasonOf(RefusalOfHead(head)), "ORIGIN_NOT_ALLOWED") << bad;
  }
}

TEST(Route, AnswersTheQuestionOfABrowserBeforeACall) {
  Head head = Post(kGetJob);
  head.method = "OPTIONS";
  head.origin = "https://page.example";
  auto decided = Decide(head);
  EXPECT_EQ(std::get<Route>(decided).kind, Route::Kind::kPreflight);
}

TEST(Cors, AllowsWhatIsNamedAndNothingElse) {
  const Cors cors({"https://page.example"});
  EXPECT_THAT(cors.Headers("https://page.example"),
              HasSubstr("Access-Control-Allow-Origin: https://page.example\r\n"));
  EXPECT_EQ(cors.Headers("https://page.example.evil"), "");
  EXPECT_EQ(cors.PreflightHeaders("https://evil.example"), "");
  EXPECT_THAT(cors.PreflightHeaders("https://page.example"), HasSubstr("Authorization"));
}

TEST(Cors, RefusesASettingThatNoBrowserSends) {
  EXPECT_TRUE(CheckOrigin("https://jobs.example.org").ok());
  EXPECT_TRUE(CheckOrigin("http://localhost:5173").ok());
  for (const char* const bad :
       {"*", "", "https://", "jobs.example.org", "https://a/", "https://*.a", "HTTPS://A",
        "ftp://a", "https://a b", "https://a\r\nX: y"}) {
    EXPECT_FALSE(CheckOrigin(bad).ok()) << bad;
  }
}

TEST(RefusalOf, SaysWhenToComeBackAndHowToSayWhoCalls) {
  const Refusal busy = RefusalOf(contract::RetryableError(absl::StatusCode::kResourceExhausted, "R",
                                                          "w", absl::Milliseconds(1200)));
  EXPECT_EQ(busy.http_status, 429);
  EXPECT_EQ(busy.headers, "Retry-After: 2\r\n");
  EXPECT_EQ(RefusalOf(absl::UnauthenticatedError("who")).headers, "WWW-Authenticate: Bearer\r\n");
}

}  // namespace
}  // namespace muster::http
