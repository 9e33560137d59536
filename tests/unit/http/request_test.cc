#include "broker/http/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "broker/http/answer.h"

namespace muster::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Feeds the bytes in pieces, as a slow client sends them, until something is to be done.
Parsed FeedAll(RequestParser* parser, std::string bytes, size_t piece) {
  std::string in;
  Parsed parsed = Parsed::kNeedsMore;
  while (!bytes.empty() || parsed == Parsed::kHead) {
    in += bytes.substr(0, piece);
    bytes.erase(0, piece);
    size_t used = 0;
    parsed = parser->Feed(in, &used);
    in.erase(0, used);
    if (parsed != Parsed::kNeedsMore && parsed != Parsed::kHead) return parsed;
  }
  return parsed;
}

constexpr char kPost[] =
    "POST /muster.v1.JobsService/GetJob?x=1 HTTP/1.1\r\nHost: lab\r\nauthorization: Bearer a\r\n"
    "Authorization: Bearer b\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n"
    "{\"id\":1}";

TEST(RequestParser, ReadsARequestInPiecesOfAnySize) {
  for (const size_t piece : {1, 7, 1000}) {
    RequestParser parser;
    ASSERT_EQ(FeedAll(&parser, kPost, piece), Parsed::kAll) << piece;
    EXPECT_EQ(parser.head().path, "/muster.v1.JobsService/GetJob");
    EXPECT_EQ(parser.head().content_length, 8u);
    EXPECT_THAT(parser.head().credentials, ElementsAre("Bearer a", "Bearer b"));
    EXPECT_TRUE(parser.head().keeps_alive);
    EXPECT_EQ(parser.TakeBody(), "{\"id\":1}");
  }
}

TEST(RequestParser, ShowsTheHeadBeforeItTakesTheBody) {
  RequestParser parser;
  size_t used = 0;
  EXPECT_EQ(parser.Feed(kPost, &used), Parsed::kHead);
  EXPECT_EQ(used, sizeof(kPost) - 1 - 8);
  EXPECT_TRUE(parser.head().has_body);
}

TEST(RequestParser, EndsARequestWithoutABodyWithItsHead) {
  RequestParser parser;
  size_t used = 0;
  EXPECT_EQ(parser.Feed("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET", &used), Parsed::kHead);
  EXPECT_FALSE(parser.head().has_body);
  EXPECT_EQ(parser.Feed("GET", &used), Parsed::kAll);
  EXPECT_EQ(used, 0u);
}

TEST(RequestParser, ReadsChunks) {
  RequestParser parser;
  EXPECT_EQ(FeedAll(&parser,
                    "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
                    5),
            Parsed::kAll);
  EXPECT_EQ(parser.TakeBody(), "abcde");
}

TEST(RequestParser, RefusesWhatIsTooLargeBeforeItKeepsIt) {
  RequestParser head;
  EXPECT_EQ(FeedAll(&head, "GET / HTTP/1.1\r\nA: " + std::string(kMaxHeadBytes, 'a'), 1000),
            Parsed::kHeadTooLarge);
  RequestParser body;
  size_t used = 0;
  EXPECT_EQ(body.Feed("POST /a HTTP/1.1\r\nContent-Type: application/json\r\n"
                      "Content-Length: 16777222\r\n\r\n",
                      &used),
            Parsed::kBodyTooLarge);
  EXPECT_EQ(body.head().content_type, "application/json");
}

TEST(RequestParser, KeepsToANarrowerBoundOfChunks) {
  RequestParser parser;
  const std::string head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  size_t used = 0;
  ASSERT_EQ(parser.Feed(head, &used), Parsed::kHead);
  parser.BoundBody(4);
  EXPECT_EQ(parser.Feed("4\r\nabcd\r\n1\r\ne\r\n", &used), Parsed::kBodyTooLarge);
}

TEST(RequestParser, RefusesWhatIsNoRequest) {
  for (const char* const bytes :
       {"hello\r\n\r\n", "GET / HTTP/3\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nGET",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\nGET",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"}) {
    RequestParser parser;
    EXPECT_EQ(FeedAll(&parser, bytes, 1000), Parsed::kMalformed) << bytes;
  }
}

TEST(AnswerHead, HasTheLengthOrSaysThatChunksCome) {
  const absl::Time now = absl::FromUnixSeconds(784111777);
  const std::string plain =
      HeadText({.http_status = 404, .content_type = "application/json", .content_length = 7}, now);
  EXPECT_THAT(plain,
              HasSubstr("HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  EXPECT_THAT(plain, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_TRUE(plain.ends_with("\r\n\r\n"));
  const std::string chunks = HeadText({.content_length = std::nullopt, .keeps_alive = false}, now);
  EXPECT_THAT(chunks, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(chunks, HasSubstr("Connection: close\r\n"));
  std::string out;
  AppendChunk(std::string(18, 'x'), &out);
  EXPECT_EQ(out, "12\r\n" + std::string(18, 'x') + "\r\n");
}

}  // namespace
}  // namespace muster::http
