#include "broker/http/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "broker/http/answer.h"
#include "broker/http/route.h"

namespace muster::http {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::array<Asset, 2> kPage{{
    {"/", "text/html; charset=utf-8", "\"a1\"", "<p>page</p>", "GZ-page"},
    {"/assets/index-Cc1.js", "text/javascript; charset=utf-8", "\"b2\"", "run()", "GZ-run"},
}};

Head Get(const std::string& path) {
  Head head;
  head.method = "GET";
  head.path = path;
  head.is_http11 = true;
  head.host = "lab:7071";
  return head;
}

AssetAnswer AnswerTo(const Head& head, const std::vector<std::string>& issuers = {}) {
  return AnswerOf(*FindAsset(kPage, head.path), head, PageFor(kPage, issuers).headers);
}

std::variant<Route, Refusal> RouteWithPage(const Head& head) {
  static const Methods methods({"muster.v1.JobsService"});
  return RouteOf(head, methods, Cors({}), kPage);
}

TEST(Page, IsAtEachOfItsAddresses) {
  for (const char* path : {"/", "/jobs", "/jobs/42", "/jobs/42/log", "/clusters/alpha", "/use",
                           "/admin/audit", "/login"}) {
    const Asset* const asset = FindAsset(kPage, path);
    ASSERT_NE(asset, nullptr) << path;
    EXPECT_EQ(asset->path, "/") << path;
  }
}

TEST(Page, IsNotElsewhere) {
  for (const char* path : {"", "jobs", "/jobsy", "/assets/index-Cc2.js", "/assets/", "/favicon.ico",
                           "/muster.v1.JobsService/GetJob", "//jobs", "/../jobs"}) {
    EXPECT_EQ(FindAsset(kPage, path), nullptr) << path;
  }
}

TEST(Page, IsNowhereInAProgramWithoutIt) {
  EXPECT_EQ(FindAsset({}, "/"), nullptr);
  EXPECT_EQ(FindAsset({}, "/jobs"), nullptr);
}

TEST(Page, LetsNothingInButTheBrokersOwnFiles) {
  const AssetAnswer answer = AnswerTo(Get("/jobs/42"));
  EXPECT_EQ(answer.http_status, 200);
  EXPECT_EQ(answer.body, "<p>page</p>");
  EXPECT_EQ(answer.cache, "no-cache");
  EXPECT_THAT(answer.headers, HasSubstr("Content-Security-Policy: default-src 'self';"));
  EXPECT_THAT(answer.headers, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(answer.headers, Not(HasSubstr("unsafe")));
}

TEST(Page, MayCallTheOriginsOfIdentityProvidersAlone) {
  EXPECT_THAT(AnswerTo(Get("/")).headers, Not(HasSubstr("connect-src")));
  EXPECT_THAT(AnswerTo(Get("/"), {"", "no url"}).headers, Not(HasSubstr("connect-src")));
  EXPECT_THAT(
      AnswerTo(Get("/"), {"https://id.lab:8443/realms/a?x", "https://login.example"}).headers,
      HasSubstr("default-src 'self'; connect-src 'self' https://id.lab:8443 "
                "https://login.example; base-uri 'none'; "));
}

TEST(Page, TakesNoWordsOfAPolicyFromAnIssuer) {
  for (const char* issuer : {"https://a.lab;script-src *", "https://a.lab *", "https://*.lab/x",
                             "https://a.lab\r\nX: y", "data://x", "https://'unsafe-inline'"}) {
    const std::string headers = AnswerTo(Get("/"), {issuer}).headers;
    EXPECT_EQ(headers, AnswerTo(Get("/")).headers) << issuer;
  }
}

TEST(Page, LetsBrowsersKeepFilesThatAreNamedByTheirContent) {
  const AssetAnswer answer = AnswerTo(Get("/assets/index-Cc1.js"));
  EXPECT_EQ(answer.body, "run()");
  EXPECT_THAT(std::string(answer.cache), HasSubstr("immutable"));
  EXPECT_THAT(answer.headers, HasSubstr("ETag: \"b2\"\r\n"));
}

TEST(Page, IsCompressedForThoseWhoTakeIt) {
  for (const char* takes : {"gzip", "br, GZIP ; q=0.8", "deflate,gzip;q=1.0"}) {
    Head head = Get("/");
    head.accept_encoding = takes;
    EXPECT_EQ(AnswerTo(head).body, "GZ-page") << takes;
    EXPECT_THAT(AnswerTo(head).headers, HasSubstr("Content-Encoding: gzip\r\n")) << takes;
  }
  for (const char* refuses : {"", "br", "gzip;q=0", "gzip; q=0.000", "gzippy"}) {
    Head head = Get("/");
    head.accept_encoding = refuses;
    EXPECT_EQ(AnswerTo(head).body, "<p>page</p>") << refuses;
    EXPECT_THAT(AnswerTo(head).headers, Not(HasSubstr("Content-Encoding"))) << refuses;
  }
}

TEST(Page, IsNotSentToThoseWhoHaveIt) {
  for (const char* has : {"\"a1\"", "W/\"a1\"", "\"x\", \"a1\"", "*"}) {
    Head head = Get("/");
    head.if_none_match = has;
    const AssetAnswer answer = AnswerTo(head);
    EXPECT_EQ(answer.http_status, 304) << has;
    EXPECT_EQ(answer.body, "") << has;
  }
  Head head = Get("/");
  head.if_none_match = "\"a2\"";
  EXPECT_EQ(AnswerTo(head).http_status, 200);
}

TEST(Page, ThatHasNotChangedHasNoLength) {
  const std::string text = HeadText({.http_status = 304, .cache = "no-cache"}, absl::UnixEpoch());
  EXPECT_THAT(text, HasSubstr("304 Not Modified"));
  EXPECT_THAT(text, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(text, HasSubstr("Cache-Control: no-cache\r\n"));
}

TEST(Page, IsReadAndNothingElse) {
  EXPECT_EQ(std::get<Route>(RouteWithPage(Get("/jobs"))).kind, Route::Kind::kPage);
  Head head = Get("/jobs");
  head.method = "HEAD";
  EXPECT_EQ(std::get<Route>(RouteWithPage(head)).kind, Route::Kind::kPage);
  head.method = "POST";
  EXPECT_EQ(std::get<Refusal>(RouteWithPage(head)).http_status, 405);
  EXPECT_EQ(std::get<Refusal>(RouteWithPage(Get("/nothing"))).http_status, 404);
}

}  // namespace
}  // namespace muster::http
