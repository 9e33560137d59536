// Records, scripts, environments and what the machine says about itself.
#include <gmock/gmock.h>

#include "agents/hosts/local_host.h"
#include "agents/machines/amd_gpus.h"
#include "agents/machines/machine.h"
#include "agents/machines/record.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_environment.h"
#include "agents/machines/run_records.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::machines {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

rc::Gen<std::string> Text() {
  return rc::gen::container<std::string>(
      rc::gen::map(rc::gen::inRange(1, 256), [](int byte) { return static_cast<char>(byte); }));
}

RC_GTEST_PROP(Records, ASpecComesBackAsItWas, ()) {
  RunSpec spec;
  spec.run_key = *Text();
  spec.order = *rc::gen::inRange<uint64_t>(0, 1ULL << 62);
  spec.priority = *rc::gen::inRange(-1000, 1001);
  spec.memory_bytes = 1ULL << 50;
  spec.command_script = *Text();
  spec.command_words = *rc::gen::container<std::vector<std::string>>(Text());
  spec.environment = *rc::gen::container<std::vector<std::string>>(Text());
  const std::string bytes = spec.Encode();
  const std::optional<RunSpec> back = RunSpec::Decode(bytes);
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->Encode() == bytes);
  RC_ASSERT(back->priority == spec.priority);
  RC_ASSERT(back->command_words == spec.command_words);
  RC_ASSERT(back->environment == spec.environment);
}

TEST(Records, ASpecOfAnOlderAgentHasWholeGpus) {
  Record record;
  record.Add("version", 1);
  record.Add("gpus", 3);
  EXPECT_EQ(RunSpec::Decode(record.Encode())->gpu_millis, 3000u);
}

TEST(Records, ARecordThatIsCutIsNone) {
  const ExitRecord exit = {.status = 3, .path = "/some/path", .end_us = 5};
  const std::string bytes = exit.Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ExitRecord::Decode(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
  EXPECT_EQ(ExitRecord::Decode(bytes + std::string(100, '\0'))->status, 3);
  EXPECT_FALSE(ExitRecord::Decode(std::string(kMaxRecordBytes, '\0')).has_value());
}

TEST(Records, AnExitRecordOfAnOlderSupervisorSaysNothingOfUsage) {
  const ExitRecord old = {.status = 3, .end_us = 5};
  EXPECT_EQ(old.Encode().find("cpu"), std::string::npos) << "as they write it";
  EXPECT_FALSE(ExitRecord::Decode(old.Encode())->is_counted);
  const ExitRecord counted = {
      .is_counted = true, .user_cpu_us = 7, .system_cpu_us = 0, .max_rss_bytes = 1ULL << 40};
  const ExitRecord back = *ExitRecord::Decode(counted.Encode());
  EXPECT_TRUE(back.is_counted);
  EXPECT_EQ(back.user_cpu_us, 7);
  EXPECT_EQ(back.max_rss_bytes, 1ULL << 40);
}

TEST(Records, AnExitRecordFitsIntoItsReserve) {
  ExitRecord exit = {.path = std::string(100'000, 'p'), .sender = std::string(100'000, 's')};
  exit.is_counted = true;
  exit.unlimited = std::string(100'000, 'u');
  EXPECT_LE(exit.Encode().size(), kMaxRecordBytes);
}

TEST(Records, ARecordOfAnotherVersionIsNotGuessedAt) {
  Record record;
  record.Add("version", 2);
  EXPECT_FALSE(RunSpec::Decode(record.Encode()).has_value());
}

TEST(Environment, RanksAreSetAndTheUserWins) {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  assignment.set_job_id(42);
  assignment.set_run(1);
  auto* gpus = assignment.mutable_spec()->mutable_resources()->add_gpus();
  gpus->set_count_millis(4000);
  (*assignment.mutable_spec()->mutable_env())["MASTER_PORT"] = "1234";
  (*assignment.mutable_spec()->mutable_env())["CUDA_VISIBLE_DEVICES"] = "0,1,2,3,4,5,6,7";
  const auto env =
      RunEnvironment(assignment, "desk", "/s/runs/k7m2-42-1", {{"PATH", "/bin"}, {"HOME", "/h"}});
  EXPECT_EQ(env.at("WORLD_SIZE"), "1");
  EXPECT_EQ(env.at("NNODES"), "1");
  EXPECT_EQ(env.at("NODE_RANK"), "0");
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(env.at("MASTER_PORT"), "1234");
  EXPECT_EQ(env.at("NUM_GPU_PER_NODE"), "4");
  EXPECT_EQ(env.at("NPROC_PER_NODE"), "4");
  EXPECT_EQ(env.at("SKYPILOT_NUM_GPUS_PER_NODE"), "4");
  EXPECT_EQ(env.at("MUSTER_RUN_KEY"), "k7m2-42-1");
  EXPECT_EQ(env.at("MUSTER_CLUSTER"), "desk");
  EXPECT_EQ(env.at("PATH"), "/bin");
  EXPECT_FALSE(env.contains("CUDA_VISIBLE_DEVICES"));
}

TEST(Environment, DevicesAreNamedAsTheMachineNamesThem) {
  const Capacity capacity = {
      .cores = 1, .memory_bytes = 1, .gpus = {{0, "a", "GPU-x"}, {3, "a", "GPU-y"}}};
  EXPECT_THAT(DeviceVariables(capacity, {.gpus = {{0, 1000}, {3, 1000}}}),
              ElementsAre("CUDA_VISIBLE_DEVICES=GPU-x,GPU-y"));
  EXPECT_THAT(DeviceVariables(capacity, {.gpus = {{3, 500}}}),
              ElementsAre("CUDA_VISIBLE_DEVICES=GPU-y"));
  EXPECT_THAT(DeviceVariables(capacity, {}), ElementsAre("CUDA_VISIBLE_DEVICES="));
}

TEST(Environment, AmdsRuntimeNamesDevicesAndHipNumbersWhatItLeaves) {
  const Capacity capacity = {.cores = 1,
                             .memory_bytes = 1,
                             .gpus = {{0, "mi300x", "GPU-00a", true}, {1, "mi300x", "1", true}}};
  EXPECT_THAT(
      DeviceVariables(capacity, {.gpus = {{1, 1000}}}),
      ElementsAre("CUDA_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=1"));
  EXPECT_THAT(DeviceVariables(capacity, {.gpus = {{0, 1000}, {1, 1000}}}),
              ElementsAre("CUDA_VISIBLE_DEVICES=0,1", "HIP_VISIBLE_DEVICES=0,1",
                          "ROCR_VISIBLE_DEVICES=GPU-00a,1"));
  EXPECT_THAT(
      DeviceVariables(capacity, {}),
      ElementsAre("CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES="));
}

// The output of rocm-smi of ROCm 6 and 5, shortened to a few keys.
constexpr char kRocm6[] =
    R"(WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card0": {"Device Name": "AMD Instinct MI300X VF", "Device ID": "0x74b5", "GUID": "5656",
           "Unique ID": "0x719d230578348e8c", "Card Series": "AMD Instinct MI300X VF",
           "Card Model": "0x74b5", "Card SKU": "M3000108", "GFX Version": "gfx942"},
 "card1": {"Device Name": "AMD Instinct MI300X VF", "Unique ID": "N/A",
           "Card Series": "AMD Instinct MI300X VF", "GFX Version": "gfx942"},
 "system": {"Driver version": "6.10.5"}})";
constexpr char kRocm5[] = R"({
  "card0": {"GPU ID": "0x744c", "Unique ID": "0x0d4595974090853c",
            "Card series": "Navi 31 [Radeon RX 7900 XT/7900 XTX]", "Card model": "0x5315"},
  "card10": {"GPU ID": "0x738c", "Unique ID": "0x1", "Card series": "0x738c",
             "Card model": "Arcturus GL-XL [AMD Instinct MI100]"}})";

TEST(Machine, ListsGpusAsRocmSmiNamesThem) {
  EXPECT_EQ(
      ParseRocmSmi(kRocm6).value(),
      (std::vector<Gpu>{{0, "mi300x", "GPU-719d230578348e8c", true}, {1, "mi300x", "1", true}}));
  EXPECT_EQ(ParseRocmSmi(kRocm5).value(),
            (std::vector<Gpu>{{0, "rx7900", "GPU-0d4595974090853c", true},
                              {10, "mi100", "GPU-0000000000000001", true}}));
  const absl::StatusOr<std::vector<Gpu>> none = ParseRocmSmi("ERROR: no driver");
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("ERROR: no driver"));
}

TEST(Machine, ListsGpusAsNvidiaSmiNamesThem) {
  const auto gpus = ParseGpuList(
      "0, GPU-6e6ff0b2-64e8-b4ff-1c9f-5a3c36c2a35d, NVIDIA H100 80GB HBM3, 81559 MiB\n"
      "1, GPU-2, Tesla V100-SXM2-16GB, 16384 MiB\n"
      "2, GPU-3, NVIDIA GeForce RTX 3090, 24576 MiB\n\n");
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 3u);
  EXPECT_EQ((*gpus)[0].type, "h100");
  EXPECT_EQ((*gpus)[0].name, "GPU-6e6ff0b2-64e8-b4ff-1c9f-5a3c36c2a35d");
  EXPECT_EQ((*gpus)[1].type, "v100");
  EXPECT_EQ((*gpus)[1].index, 1u);
  EXPECT_EQ((*gpus)[2].type, "rtx3090");
}

TEST(Machine, AGpuListThatMakesNoSenseIsQuoted) {
  for (const char* csv :
       {"No devices were found", "x, GPU-1, A100, 1 MiB", "0, GPU-1, A, 1\n0, GPU-2, A, 1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseGpuList(csv).status())) << csv;
  }
}

TEST(Machine, ProductNamesBecomeShortTypes) {
  EXPECT_EQ(GpuTypeOf("NVIDIA A100-SXM4-40GB"), "a100");
  EXPECT_EQ(GpuTypeOf("NVIDIA L40S"), "l40s");
  EXPECT_EQ(GpuTypeOf("NVIDIA RTX A6000"), "rtxa6000");
  EXPECT_EQ(GpuTypeOf("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "rtxpro6000");
  EXPECT_EQ(GpuTypeOf("AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2"), "mi200");
  EXPECT_EQ(GpuTypeOf("AMD Radeon PRO W7900"), "prow7900");
  EXPECT_EQ(GpuTypeOf("Quadro RTX 8000"), "rtx8000");
  EXPECT_EQ(GpuTypeOf("NVIDIA"), "gpu");
}

TEST(Machine, TheConfigurationReplacesWhatIsFoundDeviceByDevice) {
  hosts::LocalHost host;
  const auto machine = ReadMachine(
      {.cpus = 64, .memory_bytes = 1 << 30, .gpus = {{{"H100", 2}, {"a100", 1}}}}, host);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->capacity.cores, 64u);
  EXPECT_THAT(machine->capacity.gpus,
              ElementsAre(Gpu{0, "h100", "0"}, Gpu{1, "h100", "1"}, Gpu{2, "a100", "2"}));
}

// A program of the tool's name, found before any other.
class GpuToolsTest : public ::testing::Test {
 protected:
  void SetUp() override { old_path_ = getenv("PATH"); }
  void TearDown() override { setenv("PATH", old_path_.c_str(), 1); }
  Machine ReadWith(const std::string& script, const std::string& tool = "nvidia-smi") {
    hosts::LocalHost host;
    EXPECT_TRUE(host.WriteFile(dir_ / tool, script, {.mode = 0755}).ok());
    setenv("PATH", (dir_.path() + ":" + old_path_).c_str(), 1);
    return ReadMachine({}, host).value();
  }
  hosts::TempDir dir_;
  std::string old_path_;
};

std::vector<std::string> MessagesOf(const Machine& machine) {
  std::vector<std::string> messages;
  for (const v1::ClusterIssue& issue : machine.issues) messages.push_back(issue.message());
  return messages;
}

TEST_F(GpuToolsTest, ItsListIsUsed) {
  const Machine machine = ReadWith("#!/bin/sh\necho '0, GPU-a, NVIDIA H200, 143771 MiB'\n");
  EXPECT_THAT(machine.capacity.GpuCounts(), ElementsAre(std::pair("h200", 1u)));
}

TEST_F(GpuToolsTest, ItsFailureIsAWarningAndNoGpus) {
  const Machine machine = ReadWith("#!/bin/sh\necho 'driver mismatch' >&2\nexit 9\n");
  EXPECT_THAT(machine.capacity.gpus, IsEmpty());
  EXPECT_THAT(MessagesOf(machine), ::testing::Contains(HasSubstr("driver mismatch")));
  EXPECT_EQ(machine.issues.front().code(), v1::CLUSTER_ISSUE_CODE_NO_GPUS);
}

TEST_F(GpuToolsTest, AmdsListIsUsedToo) {
  const std::string list = std::string("#!/bin/sh\ncat <<'END'\n") + kRocm6 + "\nEND\n";
  EXPECT_THAT(ReadWith(list, "rocm-smi").capacity.GpuCounts(),
              ElementsAre(std::pair("mi300x", 2u)));
  // Each GPU has a number of its own beside those of another maker.
  const Machine both = ReadWith("#!/bin/sh\necho '0, GPU-a, NVIDIA H200, 143771 MiB'\n");
  ASSERT_EQ(both.capacity.gpus.size(), 3u);
  EXPECT_EQ(both.capacity.gpus[1], (Gpu{1, "mi300x", "GPU-719d230578348e8c", true}));
  EXPECT_EQ(both.capacity.gpus[2].index, 2u);
}

TEST_F(GpuToolsTest, AFailureOfAmdsIsAWarningAndNoGpus) {
  const Machine machine = ReadWith("#!/bin/sh\necho 'no amdgpu' >&2\nexit 1\n", "rocm-smi");
  EXPECT_THAT(machine.capacity.gpus, IsEmpty());
  EXPECT_THAT(
      MessagesOf(machine),
      ::testing::Contains(HasSubstr("rocm-smi ended with exit code 1, signal 0: no amdgpu")));
}

TEST_F(GpuToolsTest, ItsAbsenceIsNoGpusAndNoWarning) {
  hosts::LocalHost host;
  setenv("PATH", dir_.path().c_str(), 1);
  const Machine machine = ReadMachine({}, host).value();
  EXPECT_THAT(machine.capacity.gpus, IsEmpty());
  EXPECT_THAT(MessagesOf(machine), Not(::testing::Contains(HasSubstr("GPU"))));
  EXPECT_GT(machine.capacity.cores, 0u);
  EXPECT_GT(machine.capacity.memory_bytes, 0u);
  EXPECT_FALSE(machine.identity.empty());
}

}  // namespace
}  // namespace muster::machines
