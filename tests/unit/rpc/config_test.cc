#include "broker/rpc/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Apply(std::string_view text, Config* config) {
  return ApplyYaml(text, "b.yaml", "muster-broker", SettingsOf(config));
}

std::string YamlError(const std::string& text) {
  Config config;
  return std::string(Apply(text, &config).message());
}

TEST(Config, TheFileSetsWhatItNames) {
  Config config;
  ASSERT_TRUE(Apply("state_dir: /srv\nlisten: 127.0.0.1:7070\nlog_format: json\n"
                    "socket_mode: '0660'\nlogs:\n  retention: 3d\nfiles:\n  "
                    "max_job_bytes: 2Gi\n",
                    &config)
                  .ok());
  EXPECT_EQ(config.state_dir, "/srv");
  EXPECT_EQ(config.broker.socket_mode, 0660u);
  EXPECT_EQ(config.broker.listen, "127.0.0.1:7070");
  EXPECT_TRUE(config.json_logs);
  EXPECT_EQ(config.logs.retention, absl::Hours(72));
  EXPECT_EQ(config.files.max_job_bytes, uint64_t{2} << 30);
}

TEST(Config, ABadValueIsAnErrorWithItsPlace) {
  EXPECT_THAT(YamlError("listen: 0.0.0.0:1\n"), StartsWith("b.yaml:1:9: listen: "));
  EXPECT_THAT(YamlError("log_level: loud\n"), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(YamlError("listen: [a, b]\n"), HasSubstr("takes one value"));
  EXPECT_THAT(YamlError("socket_mode: '999'\n"), HasSubstr("octal"));
  EXPECT_THAT(YamlError("heartbeat_interval: 0s\n"), HasSubstr("too short"));
  EXPECT_THAT(YamlError("files:\n  retention: 59m\n"), HasSubstr("the least is 1h"));
}

TEST(Config, ALeaseIsAMinuteOrThreeHeartbeats) {
  Config config;
  ASSERT_TRUE(FinishLease(&config).ok());
  EXPECT_EQ(config.broker.core.lease, absl::Minutes(1));
  ASSERT_TRUE(Apply("heartbeat_interval: 30s\n", &config).ok());
  ASSERT_TRUE(FinishLease(&config).ok());
  EXPECT_EQ(config.broker.core.lease, absl::Seconds(90));
}

TEST(Config, ALeaseThatIsShorterThanThreeHeartbeatsIsRefused) {
  Config config;
  ASSERT_TRUE(Apply("heartbeat_interval: 2s\nlease_ms: 6000\n", &config).ok());
  EXPECT_TRUE(FinishLease(&config).ok());
  EXPECT_EQ(config.broker.core.lease, absl::Seconds(6));
  ASSERT_TRUE(Apply("lease_ms: 5999\n", &config).ok());
  EXPECT_THAT(std::string(FinishLease(&config).message()), HasSubstr("at least 6000"));
  EXPECT_THAT(YamlError("lease_ms: 999\n"), HasSubstr("1000 to 86400000"));
  EXPECT_THAT(YamlError("lease_ms: 86400001\n"), HasSubstr("1000 to 86400000"));
}

}  // namespace
}  // namespace muster::broker
