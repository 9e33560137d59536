#include "agents/app/agent_config.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

absl::Status Set(const std::string& key, const std::string& value, AgentConfig* config) {
  return ApplyFlags({{key, value}}, SettingsOf(config));
}

TEST(AgentConfig, StorageRootsAreDirectoriesByName) {
  AgentConfig config;
  ASSERT_TRUE(Set("slurm.storage_roots", "lustre=/lustre,home=/home/ada", &config).ok());
  EXPECT_THAT(config.slurm.storage_roots,
              UnorderedElementsAre(Pair("lustre", "/lustre"), Pair("home", "/home/ada")));
  ASSERT_TRUE(Set("slurm.storage_roots", "", &config).ok());
  EXPECT_THAT(config.slurm.storage_roots, IsEmpty());
  for (const char* bad : {"/lustre", "lustre=lustre", "a=/x,a=/y", "=/x", "a/b=/x", "a=/x/../y"}) {
    const absl::Status status = Set("slurm.storage_roots", bad, &config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr("slurm-storage-roots")) << bad;
    EXPECT_THAT(config.slurm.storage_roots, IsEmpty()) << bad;
  }
}

TEST(AgentConfig, OptionsOfPluginsAreNamesThatSbatchDoesNotHave) {
  AgentConfig config;
  ASSERT_TRUE(Set("slurm.spank_options", "flavour,renice", &config).ok());
  EXPECT_THAT(config.slurm.spank_options, ElementsAre("flavour", "renice"));
  for (const char* bad : {"--flavour", "output", "outp", "container-image", "a b", "a,,b"})
    EXPECT_THAT(Set("slurm.spank_options", bad, &config).ToString(),
                HasSubstr("cannot be an option of a plug-in"));
  std::string many = "a0";
  for (int i = 1; i <= 100; ++i) many += ",a" + std::to_string(i);
  EXPECT_THAT(Set("slurm.spank_options", many, &config).ToString(), HasSubstr("at most 100"));
  EXPECT_THAT(config.slurm.spank_options, ElementsAre("flavour", "renice"));
}

TEST(AgentConfig, OptionsOfPluginsCannotBeHadThroughSlurmrestd) {
  AgentConfig config;
  config.cluster = "lab";
  config.kind = v1::CLUSTER_KIND_SLURM;
  config.state_dir = "/state";
  config.slurm.spank_options = {"flavour"};
  EXPECT_TRUE(CheckComplete(config, false).ok());
  config.slurm.rest_url = "http://slurm.test:6820";
  EXPECT_THAT(CheckComplete(config, false).ToString(),
              HasSubstr("slurmrestd takes no options of plug-ins"));
}

TEST(AgentConfig, TheRootOfResultsIsAbsolute) {
  AgentConfig config;
  ASSERT_TRUE(Set("slurm.results_root", "/lustre/results", &config).ok());
  EXPECT_EQ(config.slurm.results_root, "/lustre/results");
  EXPECT_THAT(Set("slurm.results_root", "results", &config).ToString(),
              HasSubstr("\"results\" is not an absolute path"));
}

TEST(AgentConfig, HowOftenATimeoutMayRequeueIsBounded) {
  AgentConfig config;
  EXPECT_EQ(config.slurm.max_timeout_requeues, 100);
  ASSERT_TRUE(Set("slurm.max_timeout_requeues", "10000", &config).ok());
  EXPECT_EQ(config.slurm.max_timeout_requeues, 10000);
  for (const char* bad : {"0", "10001", "-1", "often"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Set("slurm.max_timeout_requeues", bad, &config))) << bad;
    EXPECT_EQ(config.slurm.max_timeout_requeues, 10000) << bad;
  }
}

TEST(AgentConfig, HowLongWorkIsKeptHasAUnitAndMayBeForever) {
  AgentConfig config;
  ASSERT_TRUE(Set("machines.keep_work", "720h", &config).ok());
  EXPECT_EQ(config.machines.keep_work, absl::Hours(720));
  for (const char* bad : {"30", "12:00", "1-12:00:00", "0.5s", "0s", "never", ""}) {
    const absl::Status status = Set("machines.keep_work", bad, &config);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << ": " << status;
    EXPECT_EQ(config.machines.keep_work, absl::Hours(720)) << bad;
  }
  EXPECT_THAT(Set("machines.keep_work", "30", &config).ToString(),
              HasSubstr("\"30\" has no unit; write for example 720h"));
  EXPECT_THAT(Set("machines.keep_work", "0.5s", &config).ToString(), HasSubstr("at least 1s"));
  ASSERT_TRUE(Set("machines.keep_work", "1s", &config).ok());
  EXPECT_EQ(config.machines.keep_work, absl::Seconds(1));
  ASSERT_TRUE(Set("machines.keep_work", "forever", &config).ok());
  EXPECT_EQ(config.machines.keep_work, absl::InfiniteDuration());
}

TEST(AgentConfig, TheHelpOfMachinesNamesNoSettingOfSlurms) {
  AgentConfig config;
  bool has_user = false;
  for (const Setting& setting : SettingsOf(&config)) {
    if (!setting.key.starts_with("machines.")) continue;
    EXPECT_EQ(setting.help.find("ssh_hosts"), std::string::npos) << setting.key;
    has_user |= setting.key == "machines.ssh_user";
  }
  EXPECT_TRUE(has_user);
}

}  // namespace
}  // namespace muster::agents
