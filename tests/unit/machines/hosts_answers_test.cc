// Tests the answers to people about hosts over SSH.
#include "agents/hosts/local_host.h"
#include "agents/machines/answers.h"
#include "contract/issues.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HostView Host(const std::string& name, const std::string& address, uint16_t port = 22) {
  HostView host;
  host.config.name = name;
  host.config.ssh.hosts = {{.name = address, .port = port}};
  host.capacity = {
      .cores = 4, .memory_bytes = 1 << 30, .gpus = {{.index = 0, .type = "h100", .name = "0"}}};
  return host;
}

Load LoadOf(const std::vector<HostView>& views) {
  std::vector<ClusterHost> hosts;
  for (const HostView& view : views)
    hosts.push_back({.name = view.config.name, .capacity = view.capacity});
  return {.ledger = Ledger(std::move(hosts)), .hosts = views};
}

template <typename Issues>
std::vector<std::string> MessagesOf(const Issues& issues) {
  std::vector<std::string> messages;
  for (const v1::ClusterIssue& issue : issues) messages.push_back(issue.message());
  return messages;
}

std::vector<std::string> IssuesOf(const Load& load) {
  return MessagesOf(InventoryOf(load, "lab").issues());
}

std::vector<std::string> ToldByCheck(const Load& load) {
  std::vector<std::string> seen;
  const v1::ClusterChecks checks = CheckHosts(load);
  for (const v1::ClusterCheck& check : checks.checks()) {
    EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
    if (check.result() == v1::CHECK_RESULT_WARN) seen.push_back(check.seen());
  }
  return seen;
}

HostView Up(HostView host) {
  host.is_known = host.has_told = host.is_up = true;
  return host;
}

TEST(HostsAnswersTest, AHostThatIsAwayIsOfferedWithWhatItHad) {
  HostView away = Host("gpu1", "a");
  const Load unknown = LoadOf({away});
  EXPECT_THAT(InventoryOf(unknown, "lab").pools(0).node_groups(), IsEmpty());
  away.is_known = true;
  const v1::Inventory inventory = InventoryOf(LoadOf({away}), "lab");
  ASSERT_EQ(inventory.pools(0).node_groups_size(), 1);
  const v1::NodeGroup& group = inventory.pools(0).node_groups(0);
  EXPECT_EQ(group.usable_count(), 0);
  EXPECT_EQ(group.cpus(), 4);
  EXPECT_EQ(group.gpus().at("h100"), 1);
  EXPECT_THAT(inventory.pools(0).free_gpus(), IsEmpty());
}

TEST(HostsAnswersTest, HostsOfOneAddressAreTold) {
  const Load load = LoadOf({Up(Host("gpu1", "a")), Up(Host("gpu2", "b")), Up(Host("gpu3", "a")),
                            Up(Host("gpu4", "a", 23))});
  EXPECT_THAT(IssuesOf(load),
              ElementsAre(HasSubstr("hosts gpu1, gpu3 have the same SSH address a:22")));
  EXPECT_EQ(ToldByCheck(load), IssuesOf(load));
}

TEST(HostsAnswersTest, WhatIsWrongWithAHostNamesIt) {
  HostView down = Up(Host("gpu1", "a"));
  down.is_up = false;
  down.why = "no route";
  HostView odd = Up(Host("gpu2", "b"));
  odd.issues.push_back(contract::NoGpus("nvidia-smi", "no driver"));
  const v1::Inventory inventory = InventoryOf(LoadOf({down, odd}), "lab");
  ASSERT_EQ(inventory.issues_size(), 2);
  EXPECT_EQ(inventory.issues(0).code(), v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE);
  EXPECT_EQ(inventory.issues(0).subject(), "gpu1");
  EXPECT_EQ(inventory.issues(0).message(), "host gpu1 is down: no route");
  EXPECT_EQ(inventory.issues(1).code(), v1::CLUSTER_ISSUE_CODE_NO_GPUS);
  EXPECT_EQ(inventory.issues(1).subject(), "gpu2");
  EXPECT_EQ(
      inventory.issues(1).message(),
      "host gpu2: no GPUs of nvidia-smi are offered, because they cannot be listed: no driver");
  EXPECT_TRUE(inventory.issues(1).remedy().starts_with("repair the driver"));
}

TEST(HostsAnswersTest, AFileOfHostsThatCannotBeReadIsTold) {
  Load load = LoadOf({Up(Host("gpu1", "a"))});
  EXPECT_THAT(IssuesOf(load), IsEmpty());
  load.issues.emplace_back().set_message("the file of hosts cannot be read");
  EXPECT_THAT(IssuesOf(load), ElementsAre("the file of hosts cannot be read"));
  EXPECT_THAT(ToldByCheck(load), ElementsAre("the file of hosts cannot be read"));
}

TEST(HostsAnswersTest, WhatAHostHasNotIsToldIfItsOperatorSaysSo) {
  hosts::LocalHost host;
  HostConfig config;
  config.name = "gpu1";
  config.gpus.emplace();
  EXPECT_THAT(ReadRemoteMachine(config, host)->issues, IsEmpty());
  config.cpus = 100'000;
  config.memory_bytes = uint64_t{1000} << 40;
  const absl::StatusOr<Machine> machine = ReadRemoteMachine(config, host);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_THAT(MessagesOf(machine->issues),
              ElementsAre(HasSubstr("cpus: 100000"), HasSubstr("memory: 1000Ti")));
  EXPECT_EQ(machine->capacity.cores, 100'000);
}

}  // namespace
}  // namespace muster::machines
