// Tests the agent's records of hosts.
#include "agents/machines/remote/host_record.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

class HostRecordTest : public ::testing::Test {
 protected:
  HostRecordTest() {
    config_.name = "gpu1";
    config_.ssh.hosts = {{.name = "gpu1.lab", .port = 22}};
  }

  static Machine Told() {
    Machine machine;
    machine.capacity = {.cores = 16,
                        .memory_bytes = uint64_t{64} << 30,
                        .gpus = {{.index = 0, .type = "h100", .name = "GPU-a"},
                                 {.index = 3, .type = "mi300x", .name = "1", .is_amd = true}}};
    machine.limits = "memory and cores, by cgroup v2";
    machine.containers = {.tool = "podman", .why = ""};
    return machine;
  }
  void Write() {
    const absl::Status written = record_.Write(config_, Told());
    EXPECT_TRUE(written.ok()) << written;
  }
  std::optional<Machine> Recalled() {
    absl::StatusOr<std::optional<Machine>> machine = record_.Recall(config_);
    EXPECT_TRUE(machine.ok()) << machine.status();
    return machine.ok() ? *std::move(machine) : std::nullopt;
  }

  hosts::TempDir dir_;
  HostConfig config_;
  HostRecord record_ = HostRecord(dir_.path(), "gpu1");
};

TEST_F(HostRecordTest, WhatAHostHadIsKnownAgain) {
  EXPECT_FALSE(Recalled().has_value());
  Write();
  const std::optional<Machine> machine = Recalled();
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->capacity, Told().capacity);
  EXPECT_EQ(machine->limits, Told().limits);
  EXPECT_EQ(machine->containers.tool, "podman");
}

TEST_F(HostRecordTest, TheFileIsWrittenOnlyWhenItSaysSomethingElse) {
  Write();
  const auto time = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(dir_ / "gpu1", time);
  Write();
  EXPECT_EQ(std::filesystem::last_write_time(dir_ / "gpu1"), time);
  Machine other = Told();
  other.capacity.gpus.pop_back();
  EXPECT_TRUE(record_.Write(config_, other).ok());
  EXPECT_EQ(Recalled()->capacity, other.capacity);
}

TEST_F(HostRecordTest, TheOperatorsWordComesFirst) {
  Write();
  config_.cpus = 4;
  config_.gpus = {{"h100", 1}};
  const std::optional<Machine> machine = Recalled();
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->capacity.cores, 4);
  EXPECT_EQ(machine->capacity.memory_bytes, uint64_t{64} << 30);
  EXPECT_EQ(machine->capacity.gpus.size(), 1);
}

TEST_F(HostRecordTest, WhatOnlyAnEarlierWordOfTheOperatorSaidIsNotKnown) {
  config_.gpus = {{"h100", 8}};
  Write();
  config_.gpus.reset();
  EXPECT_FALSE(Recalled().has_value());
}

TEST_F(HostRecordTest, AnotherMachineOfTheSameNameIsNotKnown) {
  Write();
  config_.ssh.hosts = {{.name = "gpu9.lab", .port = 22}};
  EXPECT_FALSE(Recalled().has_value());
}

TEST_F(HostRecordTest, AHostOfWhichTheOperatorSaysAllNeedsNoRecord) {
  config_.cpus = 4;
  config_.memory_bytes = 1 << 30;
  EXPECT_FALSE(Recalled().has_value());
  config_.gpus.emplace();
  ASSERT_TRUE(Recalled().has_value());
  EXPECT_EQ(Recalled()->capacity.cores, 4);
}

TEST_F(HostRecordTest, ADamagedFileIsToldAndReplaced) {
  Write();
  const std::string whole = ReadAll(dir_ / "gpu1");
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(dir_ / "gpu1", std::ios::trunc) << whole.substr(0, size);
    const absl::Status status = record_.Recall(config_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("gpu1\" is damaged"));
  }
  Write();
  EXPECT_TRUE(Recalled().has_value());
}

TEST_F(HostRecordTest, RecordsOfOtherHostsGo) {
  Write();
  std::ofstream(dir_ / "gpu2") << "x";
  std::ofstream(dir_ / "gpu1.77.77.tmp") << "x";
  RemoveOtherHostRecords(dir_.path(), {"gpu1", "gpu3"});
  EXPECT_TRUE(Exists(dir_ / "gpu1"));
  EXPECT_FALSE(Exists(dir_ / "gpu2"));
  EXPECT_FALSE(Exists(dir_ / "gpu1.77.77.tmp"));
}

}  // namespace
}  // namespace muster::machines
