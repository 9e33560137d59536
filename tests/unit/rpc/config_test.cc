#include "broker/rpc/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace muster::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string YamlError(const std::string& text) {
  Config config;
  return std::string(ApplyYaml(text, "b.yaml", &config).message());
}

TEST(Config, TheFileSetsWhatItNames) {
  Config config;
  ASSERT_TRUE(ApplyYaml("listen: 127.0.0.1:7070\nlog_format: json\nlogs:\n  retention: 3d\n",
                        "b.yaml", &config)
                  .ok());
  EXPECT_EQ(config.broker.listen, "127.0.0.1:7070");
  EXPECT_TRUE(config.json_logs);
  EXPECT_EQ(config.logs.retention, absl::Hours(72));
}

TEST(Config, AnUnknownKeyIsAnErrorWithItsPlace) {
  EXPECT_THAT(YamlError("listen: 127.0.0.1:1\nlogs:\n  retenton: 3d\n"),
              StartsWith("b.yaml:3:3: unknown key \"logs.retenton\""));
  EXPECT_THAT(YamlError("lgs:\n  retention: 3d\n"), StartsWith("b.yaml:1:1: "));
}

TEST(Config, ABadValueIsAnErrorWithItsPlace) {
  EXPECT_THAT(YamlError("listen: 0.0.0.0:1\n"), StartsWith("b.yaml:1:9: listen: "));
  EXPECT_THAT(YamlError("log_level: loud\n"), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(YamlError("listen: [a, b]\n"), HasSubstr("takes one value"));
  EXPECT_THAT(YamlError("socket_mode: '999'\n"), HasSubstr("octal"));
  EXPECT_THAT(YamlError("heartbeat_interval: 0s\n"), HasSubstr("too short"));
}

TEST(Config, MalformedYamlIsAnErrorWithItsPlace) {
  EXPECT_THAT(YamlError("a: [1\nb: 2"), StartsWith("b.yaml:2:"));
  EXPECT_THAT(YamlError("- a list\n"), HasSubstr("key: value"));
  EXPECT_THAT(YamlError("just text"), HasSubstr("key: value"));
  EXPECT_EQ(YamlError(""), "");
}

TEST(Config, TheEnvironmentOverridesTheFileAndAFlagOverridesBoth) {
  Config config;
  ASSERT_TRUE(ApplyYaml("log_level: debug\nsocket_mode: '0660'\n", "b.yaml", &config).ok());
  const auto get = [](const char* name) -> const char* {
    return std::strcmp(name, "MUSTER_BROKER_LOG_LEVEL") == 0 ? "warning" : nullptr;
  };
  ASSERT_TRUE(ApplyEnv(get, &config).ok());
  EXPECT_EQ(config.log_level, "warning");
  EXPECT_EQ(config.broker.socket_mode, 0660u);
  ASSERT_TRUE(ApplyFlag("log_level", "error", &config).ok());
  EXPECT_EQ(config.log_level, "error");
}

TEST(Config, ABadVariableIsNamed) {
  Config config;
  const auto get = [](const char* name) -> const char* {
    return std::strcmp(name, "MUSTER_BROKER_LOGS_RETENTION") == 0 ? "soon" : nullptr;
  };
  EXPECT_THAT(std::string(ApplyEnv(get, &config).message()),
              StartsWith("MUSTER_BROKER_LOGS_RETENTION: "));
}

}  // namespace
}  // namespace muster::broker
