#include "broker/http/hosts.h"

#include <gtest/gtest.h>

#include "broker/http/route.h"
#include "contract/errors.h"

namespace muster::http {
namespace {

TEST(Hosts, ThisMachineAndAddressesAreAskedByAnyPort) {
  const Hosts hosts({"jobs.example.org"});
  for (const char* host : {"", "localhost", "LocalHost:7071", "localhost.:7071", "muster.localhost",
                           "127.0.0.1:7071", "127.8.9.1", "[::1]:7071", "[::1]", "10.0.0.7:80",
                           "jobs.example.org", "Jobs.Example.org:80", "jobs.example.org."}) {
    EXPECT_TRUE(hosts.MayAsk(host)) << host;
  }
}

TEST(Hosts, ANameThatOthersMayHaveMadeMeanThisMachineIsRefused) {
  const Hosts hosts({"jobs.example.org"});
  for (const char* host :
       {"evil.example", "evil.example:7071", "localhost.evil.example", "127.0.0.1.evil.example",
        "notlocalhost", "jobs.example.org.evil.example", "xjobs.example.org", "[evil.example]:7071",
        "[::1", "[", "evil.example:localhost", ":7071", "127.0.0.1@evil.example", "0x7f000001"}) {
    EXPECT_FALSE(hosts.MayAsk(host)) << host;
  }
}

TEST(Hosts, ASettingThatWouldAllowNothingIsRefused) {
  EXPECT_TRUE(CheckHost("jobs.example.org").ok());
  EXPECT_TRUE(CheckHost("lab-1").ok());
  for (const char* name : {"", "Jobs.example.org", "jobs.example.org:80", "https://jobs", "*.lab",
                           "a b", "jobs.example.org."}) {
    const absl::Status status = CheckHost(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_NE(status.message().find("in lower case"), status.message().npos);
  }
}

TEST(Hosts, TheRefusalNamesTheSettingAndATokenDoesNotHelp) {
  const Cors cors({"https://page.example"});
  const Hosts hosts({});
  Head head;
  head.host = "evil.example:7071";
  head.origin = "http://evil.example:7071";
  head.credentials = {"Bearer anything"};
  const std::optional<Refusal> refusal = RefuseHost(head, cors, hosts);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->http_status, 421);
  EXPECT_EQ(contract::GetErrorInfo(refusal->status)->reason(), "HOST_NOT_ALLOWED");
  EXPECT_NE(refusal->status.message().find("http.allowed_hosts"), refusal->status.message().npos);
  head.host = "localhost:7071";
  EXPECT_FALSE(RefuseHost(head, cors, hosts).has_value());
  head.host = "evil.example:7071";
  head.origin = "https://page.example";
  EXPECT_FALSE(RefuseHost(head, cors, hosts).has_value()) << "the operator has named the page";
}

}  // namespace
}  // namespace muster::http
