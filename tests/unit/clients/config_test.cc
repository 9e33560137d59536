#include "clients/cli/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "clients/cli/contexts.h"
#include "digest/token_text.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

class ContextTest : public ConfigTest {
 protected:
  void WriteContextsFile(const std::string& text) {
    std::filesystem::create_directories(directory_ + "/.config/muster");
    std::ofstream(directory_ + "/.config/muster/contexts.yaml") << text;
  }
  std::string WriteToken(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
};

TEST_F(ContextTest, TheContextGoesBetweenTheEnvironmentAndTheFile) {
  WriteFile("broker: unix:/file\n");
  WriteContextsFile(
      "current: lab\ncontexts: {lab: {broker: unix:/lab}, home: {broker: unix:/home}}\n");
  EXPECT_EQ(Load()->broker, "unix:/lab");
  EXPECT_EQ(Load()->broker_origin, "named by the context \"lab\"");
  variables_["MUSTER_CONTEXT"] = "home";
  EXPECT_EQ(Load()->broker, "unix:/home");
  variables_["MUSTER_BROKER"] = "unix:/environment";
  EXPECT_EQ(Load()->broker, "unix:/environment");
  Invocation call;
  call.context = "lab";
  EXPECT_EQ(Load(call)->broker, "unix:/lab");
  call.context = "la";
  EXPECT_THAT(std::string(Load(call).status().message()), HasSubstr("there are: home, lab"));
}

TEST_F(ContextTest, TheTokenOfAContextGoesToItsBrokerAlone) {
  const std::string token = NewTokenText();
  const std::string path = WriteToken("token", token + "\n");
  WriteContextsFile("current: lab\ncontexts: {lab: {broker: unix:/lab, token_file: " + path +
                    "}}\n");
  EXPECT_EQ(Load()->token, token);
  Invocation call;
  call.broker = "unix:/other";
  EXPECT_EQ(Load(call)->token, "");
  variables_["MUSTER_BROKER"] = "unix:/other";
  EXPECT_EQ(Load()->token, "");
}

TEST_F(ContextTest, TheTokenOfTheFlagGoesBeforeThoseOfTheEnvironment) {
  const std::string by_flag = NewTokenText();
  const std::string by_variable = NewTokenText();
  const std::string by_file = NewTokenText();
  variables_["MUSTER_TOKEN_FILE"] = WriteToken("a", by_file);
  EXPECT_EQ(Load()->token, by_file);
  variables_["MUSTER_TOKEN"] = by_variable;
  EXPECT_EQ(Load()->token, by_variable);
  Invocation call;
  call.token_file = WriteToken("b", by_flag);
  EXPECT_EQ(Load(call)->token, by_flag);
}

TEST_F(ContextTest, ATokenFileThatOthersMayReadIsRefused) {
  const std::string token = NewTokenText();
  for (const mode_t mode : {0640, 0604, 0660}) {
    variables_["MUSTER_TOKEN_FILE"] = WriteToken("token", token, mode);
    EXPECT_THAT(std::string(Load().status().message()), HasSubstr("chmod 600"));
  }
}

TEST_F(ContextTest, WhatIsNoWholeTokenIsToldHereAndNotShown) {
  std::string token = NewTokenText();
  token[9] = token[9] == 'a' ? 'b' : 'a';
  variables_["MUSTER_TOKEN"] = token;
  const std::string message(Load().status().message());
  EXPECT_THAT(message, HasSubstr("MUSTER_TOKEN has no whole token"));
  EXPECT_THAT(message, Not(HasSubstr(token.substr(4, 8))));
}

TEST_F(ContextTest, ContextsAreReadAsTheyWereWritten) {
  Contexts contexts;
  contexts.current = "b: \"x\"";
  contexts.by_name["b: \"x\""] = {"unix:/a b", "/t/'o'", "/ca"};
  contexts.by_name["42"] = {"127.0.0.1:7", "", ""};
  const std::string path = directory_ + "/new/muster/contexts.yaml";
  ASSERT_TRUE(WriteContexts(path, contexts).ok());
  const auto read = ReadContexts(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->current, contexts.current);
  ASSERT_EQ(read->by_name.size(), 2u);
  EXPECT_EQ(read->by_name.at("b: \"x\"").broker, "unix:/a b");
  EXPECT_EQ(read->by_name.at("b: \"x\"").token_file, "/t/'o'");
  EXPECT_EQ(read->by_name.at("b: \"x\"").ca_file, "/ca");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(ContextTest, AContextWithoutABrokerIsAnErrorWithItsPlace) {
  WriteContextsFile("contexts:\n  lab: {token_file: /x}\n");
  EXPECT_THAT(std::string(Load().status().message()), HasSubstr("contexts.yaml:2:"));
}

}  // namespace
}  // namespace muster::cli
