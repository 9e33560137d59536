#include "rpc/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::rpc {
namespace {

using ::testing::HasSubstr;

TEST(Address, TakesSocketsAndHosts) {
  EXPECT_EQ(ParseAddress("unix:/run/b.sock")->target, "unix:/run/b.sock");
  EXPECT_EQ(ParseAddress("unix:///run/b.sock")->unix_path, "/run/b.sock");
  EXPECT_EQ(ParseAddress("unix:b.sock")->target, "unix:b.sock");
  EXPECT_EQ(ParseAddress("127.0.0.1:7070")->target, "ipv4:127.0.0.1:7070");
  EXPECT_EQ(ParseAddress("[::1]:7070")->target, "ipv6:[::1]:7070");
  EXPECT_EQ(ParseAddress("broker.example.org:7070")->target, "dns:///broker.example.org:7070");
}

TEST(Address, KeepsOddPathsWhole) {
  EXPECT_EQ(ParseAddress("unix:/a b%20#?/s")->target, "unix:/a%20b%2520%23%3F/s");
  EXPECT_EQ(ParseAddress("unix:/a b%20#?/s")->unix_path, "/a b%20#?/s");
}

TEST(Address, RefusesTheRestWithBothForms) {
  for (const std::string text :
       {"", "unix:", "localhost", ":7070", "host:", "host:0", "host:65536", "host:7o70", "::1:7070",
        "[::g]:1", "ho st:1", "http://host:1", "a/b:1", "dns:///host:1"}) {
    const auto address = ParseAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_THAT(std::string(address.status().message()),
                HasSubstr("unix:PATH, HOST:PORT or tls:HOST:PORT"))
        << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("\"" + text + "\""));
  }
}

TEST(Address, APathAloneIsToldItsForm) {
  EXPECT_THAT(std::string(ParseAddress("/run/broker.sock").status().message()),
              HasSubstr("did you mean unix:/run/broker.sock?"));
}

TEST(Address, KnowsHowLongASocketsPathMayBe) {
  EXPECT_TRUE(ParseAddress("unix:/" + std::string(106, 'x')).ok());
  const auto address = ParseAddress("unix:/" + std::string(107, 'x'));
  EXPECT_THAT(std::string(address.status().message()), HasSubstr("Linux allows 107"));
}

}  // namespace
}  // namespace muster::rpc
