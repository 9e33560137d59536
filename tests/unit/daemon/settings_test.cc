#include "daemon/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/unit/hosts/temp_dir.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SettingsTest : public testing::Test {
 protected:
  absl::Status Yaml(std::string_view text) {
    return ApplyYaml(text, "agent.yaml", "muster-agent", settings_);
  }
  std::string ErrorOf(std::string_view text) {
    const absl::Status status = Yaml(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  std::string cluster_;
  std::string gpus_;
  std::string teams_;
  uint64_t cpus_ = 0;
  const std::vector<Setting> settings_ = {
      {"cluster", "", TextInto(&cluster_)},
      {"machines.cpus", "", NumberInto(1, 64, [this](uint64_t n) { cpus_ = n; })},
      {"machines.gpus", "", TextInto(&gpus_), /*is_mapping=*/true},
      {.key = "teams", .help = "", .set = TextInto(&teams_), .is_list = true},
  };
};

TEST_F(SettingsTest, AFileSetsWhatItHas) {
  ASSERT_TRUE(Yaml("cluster: here\nmachines:\n  cpus: 8\n  gpus: {a100: 4, h100: 2}\n").ok());
  EXPECT_EQ(cluster_, "here");
  EXPECT_EQ(cpus_, 8);
  EXPECT_EQ(gpus_, "a100:4,h100:2");
}

TEST_F(SettingsTest, AValueThatIsYamlIsGivenAsAText) {
  std::string given;
  const std::vector<Setting> settings = {
      {.key = "issuers", .help = "", .set = TextInto(&given), .is_yaml = true}};
  ASSERT_TRUE(ApplyYaml("issuers:\n  - {name: a, roles: {x: y}}\n  - name: b\n", "a.yaml",
                        "program", settings)
                  .ok());
  const auto entries = SplitYamlList(given);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  std::string name;
  EXPECT_TRUE(
      ApplyYaml(entries->back(), "entry 2", "program", {{"name", "", TextInto(&name)}}).ok());
  EXPECT_EQ(name, "b");
  // As an environment or a flag gives it.
  EXPECT_EQ(SplitYamlList("[{name: a}, {name: b}, {name: c}]")->size(), 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(SplitYamlList("a: b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SplitYamlList("[").status()));
}

TEST_F(SettingsTest, AListIsAlsoTakenAsOneText) {
  ASSERT_TRUE(Yaml("teams: [vision, speech]\n").ok());
  EXPECT_EQ(teams_, "vision,speech");
  ASSERT_TRUE(Yaml("teams: vision,speech\n").ok());
  EXPECT_EQ(teams_, "vision,speech");
  ASSERT_TRUE(Yaml("teams: []\n").ok());
  EXPECT_EQ(teams_, "");
}

TEST_F(SettingsTest, AnEmptyFileOrSectionSetsNothing) {
  EXPECT_TRUE(Yaml("").ok());
  EXPECT_TRUE(Yaml("# nothing\nmachines:\n").ok());
}

TEST_F(SettingsTest, AFileOnDiskMayBeEmptyButMustBeReadable) {
  const hosts::TempDir dir;
  const std::string path = dir.path() + "/agent.yaml";
  std::ofstream(path).close();
  EXPECT_TRUE(ApplyYamlFile(path, "muster-agent", settings_).ok());
  std::ofstream(path) << "cluster: here\n";
  EXPECT_TRUE(ApplyYamlFile(path, "muster-agent", settings_).ok());
  EXPECT_EQ(cluster_, "here");
  EXPECT_THAT(std::string(ApplyYamlFile(dir.path(), "muster-agent", settings_).message()),
              HasSubstr("Is a directory"));
  EXPECT_THAT(std::string(ApplyYamlFile(path + ".no", "muster-agent", settings_).message()),
              HasSubstr(path + ".no: No such file"));
}

TEST_F(SettingsTest, AnUnknownKeyIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorOf("cluster: here\nclutser: there\n"),
              StartsWith("agent.yaml:2:1: unknown key \"clutser\""));
  EXPECT_THAT(ErrorOf("machines:\n  cpu: 8\n"), StartsWith("agent.yaml:2:3: unknown key"));
}

TEST_F(SettingsTest, AnUnknownKeyIsAnsweredWithTheOneThatWasProbablyMeant) {
  EXPECT_THAT(ErrorOf("clutser: there\n"), HasSubstr("did you mean \"cluster\"?"));
  EXPECT_THAT(ErrorOf("machines:\n  cpu: 8\n"), HasSubstr("did you mean \"machines.cpus\"?"));
  EXPECT_THAT(ErrorOf("zzzzzzzz: 8\n"), HasSubstr("`muster-agent --help` lists"));
}

TEST_F(SettingsTest, AKeyThatIsNoWordIsRefusedWithItsPlace) {
  EXPECT_EQ(ErrorOf("? [a, b]\n: 1\n"), "agent.yaml:1:3: a key must be a word");
}

TEST_F(SettingsTest, AKeyGivenTwiceIsRefused) {
  EXPECT_THAT(ErrorOf("cluster: a\ncluster: b\n"), HasSubstr("agent.yaml:2:1"));
}

TEST_F(SettingsTest, ABadValueIsQuotedWithItsPlace) {
  EXPECT_EQ(ErrorOf("machines:\n  cpus: 65\n"),
            "agent.yaml:2:9: machines.cpus: \"65\" is not a number from 1 to 64");
  EXPECT_THAT(ErrorOf("machines:\n  cpus: -1\n"), HasSubstr("\"-1\""));
  EXPECT_THAT(ErrorOf("machines:\n  cpus: [1]\n"), HasSubstr("takes one value"));
  EXPECT_EQ(ErrorOf("teams: [a, [b]]\n"), "agent.yaml:1:12: teams takes words");
}

TEST_F(SettingsTest, WhatIsNoYamlIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorOf("cluster: [\n"), StartsWith("agent.yaml:2:"));
  EXPECT_THAT(ErrorOf("- a\n- b\n"), HasSubstr("key: value"));
  EXPECT_THAT(ErrorOf(std::string(2 << 20, '#')), HasSubstr("2097152 bytes"));
}

TEST(NamesInYaml, AreTheKeysAtTheTopInTheirOrder) {
  const auto all = [](const std::string&) { return absl::OkStatus(); };
  const auto names = NamesInYaml("b: {x: 1}\na:\n", "f.yaml", all);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(NamesInYaml("- b\n", "f.yaml", all).value(), std::vector<std::string>());
  EXPECT_THAT(std::string(NamesInYaml("a: [\n", "f.yaml", all).status().message()),
              StartsWith("f.yaml:2:"));
  const auto none = [](const std::string&) { return absl::InvalidArgumentError("no name"); };
  EXPECT_EQ(NamesInYaml("\nb: 1\n", "f.yaml", none).status().message(), "f.yaml:2: no name");
}

TEST_F(SettingsTest, TheEnvironmentIsNamedAfterTheKey) {
  const std::map<std::string, std::string> environment = {{"MUSTER_AGENT_MACHINES_CPUS", "16"},
                                                          {"MUSTER_AGENT_OTHER", "x"}};
  auto get = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  ASSERT_TRUE(ApplyEnvironment(get, "muster-agent", settings_).ok());
  EXPECT_EQ(cpus_, 16);
  EXPECT_TRUE(ApplyFlags({{"machines.cpus", "32"}}, settings_).ok());
  EXPECT_EQ(cpus_, 32);
}

TEST_F(SettingsTest, ABadVariableIsNamed) {
  auto get = [](const char* name) {
    return std::string_view(name) == "MUSTER_AGENT_MACHINES_CPUS" ? "many" : nullptr;
  };
  EXPECT_THAT(std::string(ApplyEnvironment(get, "muster-agent", settings_).message()),
              HasSubstr("MUSTER_AGENT_MACHINES_CPUS: \"many\""));
}

TEST_F(SettingsTest, ABadFlagIsNamed) {
  EXPECT_THAT(std::string(ApplyFlags({{"machines.cpus", "many"}}, settings_).message()),
              HasSubstr("--machines-cpus: \"many\""));
}

TEST_F(SettingsTest, FlagsAreNamedAfterTheKey) {
  EXPECT_EQ(FlagName("machines.cancel_grace"), "--machines-cancel-grace");
  EXPECT_EQ(EnvName("muster-agent", "machines.cancel_grace"), "MUSTER_AGENT_MACHINES_CANCEL_GRACE");
}

}  // namespace
}  // namespace muster
