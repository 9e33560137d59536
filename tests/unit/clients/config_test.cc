#include "clients/cli/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = ::testing::TempDir() + "configXXXXXX";
    directory_ = mkdtemp(pattern.data());
    variables_["HOME"] = directory_;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void WriteFile(const std::string& text, const std::string& folder = "/.config/muster") {
    std::filesystem::create_directories(directory_ + folder);
    std::ofstream(directory_ + folder + "/config.yaml") << text;
  }

  Environment environment() const {
    return [this](const char* name) -> const char* {
      const auto it = variables_.find(name);
      return it == variables_.end() ? nullptr : it->second.c_str();
    };
  }

  absl::StatusOr<Config> Load(const Invocation& call = {}) const {
    return LoadConfig(call, environment());
  }

  std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ConfigTest, ByDefaultItIsTheUsersOwnBroker) {
  const auto config = Load();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->broker, "unix:" + directory_ + "/.local/state/muster/broker.sock");
  EXPECT_EQ(config->broker_origin,
            "tried because none is named by --broker, by MUSTER_BROKER or in " + directory_ +
                "/.config/muster/config.yaml");
  EXPECT_EQ(config->format, Format::kTable);
  variables_["XDG_STATE_HOME"] = "/state";
  EXPECT_EQ(Load()->broker, "unix:/state/muster/broker.sock");
  variables_["XDG_STATE_HOME"] = "relative";
  EXPECT_EQ(Load()->broker, config->broker);
}

TEST_F(ConfigTest, WithoutAHomeOrWithOneWhosePathIsNoSocketsThereIsNone) {
  variables_["HOME"] = "/" + std::string(100, 'h');
  EXPECT_EQ(Load()->broker, "");
  variables_.clear();
  EXPECT_EQ(Load()->broker, "");
}

TEST_F(ConfigTest, TheFlagGoesBeforeTheEnvironmentBeforeTheFile) {
  WriteFile("broker: unix:/file\noutput: yaml\n");
  EXPECT_EQ(Load()->broker, "unix:/file");
  EXPECT_EQ(Load()->broker_origin, "named in " + directory_ + "/.config/muster/config.yaml");
  EXPECT_EQ(Load()->format, Format::kYaml);
  variables_["MUSTER_BROKER"] = "unix:/environment";
  EXPECT_EQ(Load()->broker, "unix:/environment");
  EXPECT_EQ(Load()->broker_origin, "named by MUSTER_BROKER");
  Invocation call;
  call.broker = "unix:/flag";
  call.format = Format::kName;
  EXPECT_EQ(Load(call)->broker, "unix:/flag");
  EXPECT_EQ(Load(call)->broker_origin, "");
  EXPECT_EQ(Load(call)->format, Format::kName);
}

TEST_F(ConfigTest, AnEmptyVariableCountsAsNone) {
  WriteFile("broker: unix:/file\n");
  variables_["MUSTER_BROKER"] = "";
  EXPECT_EQ(Load()->broker, "unix:/file");
}

TEST_F(ConfigTest, TheConfigurationDirectoryMayBeElsewhere) {
  WriteFile("broker: unix:/home\n");
  WriteFile("broker: unix:/elsewhere\n", "/xdg/muster");
  variables_["XDG_CONFIG_HOME"] = directory_ + "/xdg";
  EXPECT_EQ(Load()->broker, "unix:/elsewhere");
  variables_["XDG_CONFIG_HOME"] = "relative";
  EXPECT_EQ(Load()->broker, "unix:/home");
}

TEST_F(ConfigTest, AnUnknownKeyIsAnErrorWithItsPlace) {
  WriteFile("broker: unix:/file\nbrokr: x\n");
  const auto config = Load();
  EXPECT_TRUE(absl::IsInvalidArgument(config.status()));
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr("config.yaml:2:1: brokr: no such field"));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("did you mean \"broker\"?"));
}

TEST_F(ConfigTest, AnUnknownFormatIsAnError) {
  WriteFile("output: xml\n");
  EXPECT_THAT(std::string(Load().status().message()),
              HasSubstr("config.yaml:1:9: output: \"xml\""));
}

TEST_F(ConfigTest, TheVariablesThatStayBehindAreAList) {
  EXPECT_EQ(Load()->leave_behind, client::slurm::DefaultLeaveBehind());
  WriteFile("sbatch:\n  leave_behind: [A, B_*]\n");
  EXPECT_THAT(Load()->leave_behind, ElementsAre("A", "B_*"));
  WriteFile("sbatch: {leave_behind: []}\n");
  EXPECT_THAT(Load()->leave_behind, IsEmpty());
  for (const char* bad : {"a.b", "'*_A'", "A*B", "''"}) {
    WriteFile(fmt::format("sbatch: {{leave_behind: [{}]}}\n", bad));
    EXPECT_THAT(std::string(Load().status().message()), HasSubstr("is not a variable's name"))
        << bad;
  }
}

TEST_F(ConfigTest, AnEmptyFileIsNoError) {
  WriteFile("# nothing yet\n");
  EXPECT_TRUE(Load().ok());
}

}  // namespace
}  // namespace muster::cli
