#include "agents/app/slurm_profile_settings.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Set(const std::map<std::string, std::string>& values, slurm::Profile* profile) {
  std::map<std::string, std::string> keys;
  for (const auto& [name, value] : values) keys["slurm." + name] = value;
  return ApplyFlags(keys, SlurmProfileSettings(profile));
}

TEST(SlurmProfileSettings, EachOneIsWhatAJobCouldSay) {
  slurm::Profile profile;
  const absl::Status status = Set({{"default_partition", "gpu,gpu2"},
                                   {"default_account", "team"},
                                   {"default_qos", "high"},
                                   {"default_reservation", "res"},
                                   {"default_constraint", "a&b"},
                                   {"default_comment", "by muster"},
                                   {"default_mail_type", "END,FAIL"},
                                   {"default_mail_user", "ann"},
                                   {"default_requeue", "no"},
                                   {"default_time_limit", "4h"},
                                   {"default_timeout", "3.8h"},
                                   {"default_cpus", "16"},
                                   {"default_memory", "64Gi"},
                                   {"default_gpus", "h100:4"},
                                   {"default_extra_options", "--wait-all-nodes=1 --contiguous"},
                                   {"gpus_per_node", "8"}},
                                  &profile);
  ASSERT_TRUE(status.ok()) << status;
  const v1::SlurmOptions& slurm = profile.defaults.slurm();
  EXPECT_EQ(slurm.partition(), "gpu,gpu2");
  EXPECT_EQ(slurm.account(), "team");
  EXPECT_EQ(slurm.qos(), "high");
  EXPECT_EQ(slurm.reservation(), "res");
  EXPECT_EQ(slurm.constraint(), "a&b");
  EXPECT_EQ(slurm.comment(), "by muster");
  EXPECT_EQ(slurm.mail_type(), "END,FAIL");
  EXPECT_EQ(slurm.mail_user(), "ann");
  EXPECT_TRUE(slurm.has_requeue());
  EXPECT_FALSE(slurm.requeue());
  EXPECT_EQ(slurm.timeout().seconds(), 13'680);
  EXPECT_THAT(slurm.extra_options(), ElementsAre("--wait-all-nodes=1", "--contiguous"));
  EXPECT_EQ(profile.defaults.time_limit().seconds(), 14'400);
  EXPECT_EQ(profile.defaults.resources().cpu_millis(), 16'000u);
  EXPECT_EQ(profile.defaults.resources().memory_bytes(), uint64_t{64} << 30);
  EXPECT_EQ(profile.defaults.resources().gpus(0).type(), "h100");
  EXPECT_EQ(profile.defaults.resources().gpus(0).count_millis(), 4000u);
  EXPECT_EQ(profile.gpus_per_node, 8u);
}

TEST(SlurmProfileSettings, WhatNoJobCouldSayIsRefusedByTheSettingsName) {
  const std::pair<const char*, const char*> cases[] = {{"default_partition", "a b"},
                                                       {"default_account", "--uid=0"},
                                                       {"default_mail_type", "SOMETIMES"},
                                                       {"default_requeue", "maybe"},
                                                       {"default_time_limit", "0s"},
                                                       {"default_cpus", "0"},
                                                       {"default_memory", "much"},
                                                       {"default_gpus", "h100:"},
                                                       {"default_gpus", ":4"},
                                                       {"default_gpus", "0"},
                                                       {"default_extra_options", "--wrap=x"},
                                                       {"gpus_per_node", "-1"}};
  for (const auto& [name, value] : cases) {
    slurm::Profile profile;
    const absl::Status status = Set({{name, value}}, &profile);
    EXPECT_FALSE(status.ok()) << name << " " << value;
    std::string flag = std::string("--slurm-") + name;
    for (char& c : flag) c = c == '_' ? '-' : c;
    EXPECT_THAT(std::string(status.message()), HasSubstr(flag)) << value;
  }
}

}  // namespace
}  // namespace muster::agents
