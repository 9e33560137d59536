// Login hosts as operators write them.
#include "agents/hosts/ssh_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::hosts {
namespace {

TEST(SshConfigTest, HostsAreReadWithTheirPorts) {
  const auto hosts =
      ParseLoginHosts("login1,login2.example.org:2222,[::1],[fe80::1]:22022,10.0.0.1");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  std::string all;
  for (const LoginHost& host : *hosts) all += host.ToString() + " ";
  EXPECT_EQ(all, "login1:22 login2.example.org:2222 [::1]:22 [fe80::1]:22022 10.0.0.1:22 ");
}

TEST(SshConfigTest, WhatIsNoHostIsRefused) {
  for (const char* text : {"", ",", "a,", "a:", "a:0", "a:65536", "a:22x", "a b",
                           "-oProxyCommand=id", "[::1", "[::1]x", "a;id", "$(id)", "user@host"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseLoginHosts(text).status())) << text;
  }
  std::string many = "a";
  for (size_t i = 0; i < kMaxLoginHosts; ++i) many += ",a";
  EXPECT_TRUE(absl::IsInvalidArgument(ParseLoginHosts(many).status()));
}

}  // namespace
}  // namespace muster::hosts
