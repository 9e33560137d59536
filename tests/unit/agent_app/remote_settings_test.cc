#include "agents/app/remote_settings.h"

#include <string>

#include "agents/app/agent_config.h"
#include "contract/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteSettingsTest : public testing::Test {
 protected:
  std::string Set(const std::string& key, const std::string& value) {
    return std::string(ToStd(ApplyFlags({{key, value}}, RemoteSettings(&config_)).message()));
  }

  remote::RemoteConfig config_;
};

TEST_F(RemoteSettingsTest, AnAddressIsOneOfABroker) {
  for (const char* good : {"unix:/run/b.sock", "tls:broker.lab.example:7443", "localhost:7443"})
    EXPECT_EQ(Set("muster.address", good), "");
  EXPECT_THAT(Set("muster.address", "http://broker"), HasSubstr("muster-address"));
}

TEST_F(RemoteSettingsTest, ClustersAndTheProjectAreNames) {
  EXPECT_EQ(Set("muster.clusters", "gpu,cpu"), "");
  EXPECT_THAT(config_.clusters, ElementsAre("gpu", "cpu"));
  EXPECT_THAT(Set("muster.clusters", "gpu,No_Name"), HasSubstr("No_Name"));
  EXPECT_EQ(Set("muster.project", "guests"), "");
  EXPECT_THAT(Set("muster.project", "Guests!"), HasSubstr("not a project's name"));
  EXPECT_EQ(config_.project, "guests");
}

TEST_F(RemoteSettingsTest, TheAddressIsRequiredWithThatKindAndRunAsIsNot) {
  AgentConfig config;
  config.cluster = "far";
  config.kind = v1::CLUSTER_KIND_MUSTER;
  config.state_dir = "/state";
  EXPECT_THAT(CheckComplete(config, false).ToString(), HasSubstr("--muster-address"));
  config.remote.address = "unix:/run/b.sock";
  EXPECT_TRUE(CheckComplete(config, false).ok());
  config.run_as_user = true;
  EXPECT_THAT(CheckComplete(config, false).ToString(), HasSubstr("of kind muster"));
}

}  // namespace
}  // namespace muster::agents
