#include "agents/app/machine_hosts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

absl::StatusOr<std::vector<machines::HostConfig>> Parse(const std::string& text) {
  hosts::SshConfig ssh;
  ssh.user = "common";
  return ParseMachineHosts(text, "hosts.yaml", ssh);
}

TEST(MachineHosts, AHostHasWhatItsLineSays) {
  const auto hosts = Parse(
      "gpu1: {ssh: ada@gpu1.lab:2222, address: 10.0.0.1, cpus: 32, memory: 256Gi,\n"
      "       gpus: {h100: 4, a100: 2}, labels: [fast, rack-a], cordon: yes}\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  const machines::HostConfig& host = hosts->at(0);
  EXPECT_EQ(host.name, "gpu1");
  EXPECT_EQ(host.ssh.user, "ada");
  EXPECT_EQ(host.ssh.hosts[0].ToString(), "gpu1.lab:2222");
  EXPECT_EQ(host.address, "10.0.0.1");
  EXPECT_EQ(*host.cpus, 32);
  EXPECT_EQ(*host.memory_bytes, uint64_t{256} << 30);
  EXPECT_THAT(*host.gpus, ElementsAre(Pair("h100", 4), Pair("a100", 2)));
  EXPECT_THAT(host.labels, ElementsAre("fast", "rack-a"));
  EXPECT_TRUE(host.cordoned);
}

TEST(MachineHosts, ANameIsEnough) {
  const auto hosts = Parse("gpu1:\ngpu2: {ssh: gpu2.lab}\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->at(0).ssh.hosts[0].ToString(), "gpu1:22");
  EXPECT_EQ(hosts->at(0).address, "gpu1");
  EXPECT_EQ(hosts->at(0).ssh.user, "common");
  EXPECT_FALSE(hosts->at(0).gpus.has_value());
  EXPECT_EQ(hosts->at(1).address, "gpu2.lab");
}

TEST(MachineHosts, MistakesAreToldWithPlaceAndRemedy) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"", "names no host; write lines such as gpu1:"},
      {"- gpu1\n", "key: value"},
      {"GPU_1: {}\n", "hosts.yaml:1: \"GPU_1\" is no name of a host; use"},
      {"gpu1: {gpu: {h100: 1}}\n", "did you mean \"gpu1.gpus\"?"},
      {"gpu1: {gpus: {h100: 0}}\n", "gpu1.gpus: \"h100:0\" is not of the form TYPE:COUNT"},
      {"gpu1: {memory: 8}\n", "gpu1.memory: \"8\" is less than 1Mi; write the unit"},
      {"gpu1: {cpus: none}\n", "gpu1.cpus: \"none\" is not a number from 1"},
      {"gpu1: {ssh: '@x'}\n", "has no user before its '@'"},
      {"gpu1: {ssh: 'a b'}\n", "is no login host; write HOST or HOST:PORT"},
      {"gpu1: {cordon: maybe}\n", "is none of yes, no"},
      {"gpu1: {}\ngpu1: {}\n", "hosts.yaml:2:1: \"gpu1\" is given twice"},
      {"gpu1: {ssh: [\n", "hosts.yaml:2"},
  };
  for (const auto& [text, words] : mistakes) {
    const auto hosts = Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(hosts.status())) << text;
    EXPECT_THAT(std::string(hosts.status().message()), HasSubstr(words)) << text;
  }
}

TEST(MachineHosts, TooManyHostsAreRefused) {
  std::string text;
  for (size_t i = 0; i <= machines::kMaxHosts; ++i) text += "h" + std::to_string(i) + ":\n";
  EXPECT_THAT(std::string(Parse(text).status().message()), HasSubstr("at most 128"));
}

TEST(MachineHosts, AFileThatIsNotThereIsNamed) {
  const auto hosts = ReadMachineHosts("/nonexistent/hosts.yaml", {});
  EXPECT_THAT(std::string(hosts.status().message()), HasSubstr("/nonexistent/hosts.yaml"));
}

}  // namespace
}  // namespace muster::agents
