#include "contract/failure_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "contract/characters.h"

namespace muster::contract {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kNoise =
    "Epoch 3/80: 41%|####      | 212/517 [01:22<01:58,  2.57it/s, loss=0.412]\n"
    "NCCL version 2.19.3+cuda12.3\n"
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_DEBUG=INFO\n"
    "node3:211:211 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0\n"
    "INFO: 0 errors so far; checkpoints every 10 minutes\n"
    "[Gloo] Rank 0 is connected to 1 peer ranks.\n"
    "GPU 0 temperature 61C, ECC errors: 0\n";

// A line as programs write it, and its verdict.
struct RealLine {
  const char* line;
  const char* pattern;
  v1::FailureClass failure_class;
  bool retriable;
};

constexpr RealLine kRealLines[] = {
    {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.15 "
     "GiB total capacity)",
     "cuda-out-of-memory", v1::FAILURE_CLASS_OOM, false},
    {"RuntimeError: CUDA error: out of memory", "cuda-out-of-memory", v1::FAILURE_CLASS_OOM, false},
    {"RuntimeError: CUDA error: device-side assert triggered", "device-assert",
     v1::FAILURE_CLASS_PROGRAM, false},
    {"RuntimeError: CUDA error: an illegal memory access was encountered", "illegal-memory-access",
     v1::FAILURE_CLASS_PROGRAM, false},
    {"slurmstepd-n1: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks "
     "have been OOM Killed.",
     "host-out-of-memory", v1::FAILURE_CLASS_OOM, false},
    {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
     "driver-too-old", v1::FAILURE_CLASS_INFRA, true},
    {"RuntimeError: No CUDA GPUs are available", "no-gpu", v1::FAILURE_CLASS_INFRA, true},
    {"CUDA error: no CUDA-capable device is detected", "no-gpu", v1::FAILURE_CLASS_INFRA, true},
    {"RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
     "cuda-start", v1::FAILURE_CLASS_INFRA, true},
    {"Unable to determine the device handle for GPU 0000:4E:00.0: GPU is lost.", "gpu-lost",
     v1::FAILURE_CLASS_INFRA, true},
    {"NVRM: GPU at PCI:0000:4e:00 has fallen off the bus.", "gpu-lost", v1::FAILURE_CLASS_INFRA,
     true},
    {"NVRM: Xid (PCI:0000:4e:00): 79, pid=1234, name=python", "xid", v1::FAILURE_CLASS_INFRA, true},
    {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu-memory-fault",
     v1::FAILURE_CLASS_INFRA, true},
    {"torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1331, unhandled "
     "system error, ncclSystemError: System call (e.g. socket, malloc) or external library call "
     "failed",
     "nccl-transport", v1::FAILURE_CLASS_INFRA, true},
    {"node3:211:347 [2] NCCL WARN NET/IB : Got completion from peer 10.0.0.7 with error 12",
     "infiniband", v1::FAILURE_CLASS_INFRA, true},
    {"[ERROR] Could not process JSON input", "image-credentials", v1::FAILURE_CLASS_IMAGE, false},
    {"[ERROR] URL https://nvcr.io/v2/a/manifests/b returned error code: 404 Not Found",
     "image-not-found", v1::FAILURE_CLASS_IMAGE, false},
    {"[ERROR] Checksum mismatch: 1b2c", "image-checksum", v1::FAILURE_CLASS_IMAGE, true},
    {"slurmstepd: error: pyxis: failed to create container filesystem for image: /x/i.sqsh",
     "image-format", v1::FAILURE_CLASS_IMAGE, false},
    {"srun: unrecognized option '--container-image=x'", "no-pyxis", v1::FAILURE_CLASS_IMAGE, false},
    {"ModuleNotFoundError: No module named 'nvidia_tao_pytorch'", "module-missing",
     v1::FAILURE_CLASS_PROGRAM, false},
    {"FileNotFoundError: [Errno 2] No such file or directory: '/lustre/data/train'", "file-missing",
     v1::FAILURE_CLASS_PROGRAM, false},
    {"OSError: [Errno 28] No space left on device", "disk-full", v1::FAILURE_CLASS_PROGRAM, false},
    {"/home/ada/.muster/runs/k-1-1/script: 1: source: not found", "script-for-bash",
     v1::FAILURE_CLASS_PROGRAM, false},
    {"sh: 3: [[: not found", "script-for-bash", v1::FAILURE_CLASS_PROGRAM, false},
    {"sh: 2: set: Illegal option -o pipefail", "script-for-bash", v1::FAILURE_CLASS_PROGRAM, false},
    {"sh: 2: Syntax error: \"(\" unexpected", "script-for-bash", v1::FAILURE_CLASS_PROGRAM, false},
    {"sh: 2: Syntax error: redirection unexpected", "script-for-bash", v1::FAILURE_CLASS_PROGRAM,
     false},
    {"sh: 2: Bad substitution", "script-for-bash", v1::FAILURE_CLASS_PROGRAM, false},
    {"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77)",
     "collective-timeout", v1::FAILURE_CLASS_PROGRAM, false},
};

TEST(FailurePatterns, RealLinesGetTheirClass) {
  const FailurePatterns patterns;
  for (const RealLine& c : kRealLines) {
    const auto verdict = patterns.Find(std::string(kNoise) + c.line + "\nsrun: done\n");
    ASSERT_TRUE(verdict.has_value()) << c.line;
    EXPECT_EQ(verdict->pattern, c.pattern) << c.line;
    EXPECT_EQ(verdict->failure_class, c.failure_class) << c.line;
    EXPECT_EQ(verdict->retriable, c.retriable) << c.line;
    EXPECT_EQ(verdict->line, c.line);
    EXPECT_THAT(std::string(RemedyForSign(verdict->pattern)), testing::EndsWith("."));
  }
}

TEST(FailurePatterns, HarmlessLinesAreNoVerdict) {
  const FailurePatterns patterns;
  EXPECT_FALSE(patterns.Find(kNoise).has_value());
  EXPECT_FALSE(patterns.Find("").has_value());
  EXPECT_FALSE(patterns.Find("ValueError: bad learning rate\n").has_value());
  EXPECT_FALSE(patterns.Find("ERROR dataset config: source: not found\n").has_value());
  EXPECT_FALSE(patterns.Find("ERROR: transaction with xid 742 was rolled back\n").has_value());
  EXPECT_FALSE(patterns.Find("xid error\nno GPU\n").has_value());
  EXPECT_FALSE(patterns.Find("sh: 1: torchrun: not found\ndata source: not found\n").has_value())
      << "neither is a word of bash's";
}

TEST(FailurePatterns, WhatARunWithoutGpusSaysOfThemIsNoFaultOfTheCluster) {
  const FailurePatterns patterns;
  for (const char* line :
       {"torch.cuda.is_available(): False", "RuntimeError: No CUDA GPUs are available",
        "GPU not found, using the CPU", "Xid 79 on GPU 3", "GPU has fallen off the bus",
        "cudaErrorECCUncorrectable", "CUDA driver version is insufficient for CUDA runtime version",
        "cuInit(0) failed", "CUDA driver initialization failed", "GPU temperature is too high"}) {
    EXPECT_TRUE(patterns.Find(line, true).has_value()) << line;
    EXPECT_FALSE(patterns.Find(line, false).has_value()) << line;
  }
  EXPECT_EQ(patterns.Find("No CUDA GPUs are available\nStale file handle\n", false)->pattern,
            "stale-file-handle");
}

TEST(FailurePatterns, WhatTheProgramDidIsNotTakenForTheNetworkThatSufferedFromIt) {
  const FailurePatterns patterns;
  for (const char* cause : {"RuntimeError: CUDA error: device-side assert triggered\n",
                            "torch.OutOfMemoryError: CUDA out of memory.\n"}) {
    const auto verdict = patterns.Find(
        std::string("node1:9:9 [0] NCCL WARN Connection reset by peer\nncclRemoteError\n") + cause);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_FALSE(verdict->retriable) << cause;
    EXPECT_EQ(verdict->line + "\n", cause);
  }
}

TEST(FailurePatterns, ADriverThatDoesNotStartForWantOfMemoryIsTheProgramsDoing) {
  const auto verdict = FailurePatterns().Find(
      "RuntimeError: CUDA driver initialization failed\n"
      "torch.OutOfMemoryError: CUDA out of memory.\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->pattern, "cuda-out-of-memory");
  EXPECT_FALSE(verdict->retriable);
}

TEST(FailurePatterns, ATracebackBehindALostGpuIsTheGpus) {
  const auto verdict = FailurePatterns().Find(
      "NVRM: GPU at PCI:0000:4e:00 has fallen off the bus.\n"
      "Traceback (most recent call last):\n  File \"train.py\", line 7\n"
      "FileNotFoundError: [Errno 2] No such file or directory: '/dev/nvidia3'\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->pattern, "gpu-lost");
  EXPECT_TRUE(verdict->retriable);
}

TEST(FailurePatterns, APatternDoesNotReachOverLines) {
  EXPECT_FALSE(FailurePatterns().Find("the GPU is fine\nconfig entry not found\n").has_value());
}

TEST(FailurePatterns, TheQuotedLineIsPlainAndShort) {
  const FailurePatterns patterns;
  const auto verdict =
      patterns.Find("50%\r\x1b[31mNVRM: Xid\x1b[0m " + std::string(1000, 'x') + "\r\n");
  ASSERT_TRUE(verdict.has_value());
  EXPECT_FALSE(HasControlCharacter(verdict->line));
  EXPECT_LE(verdict->line.size(), kMaxQuotedLineBytes);
  EXPECT_THAT(verdict->line, HasSubstr("NVRM: Xid"));
  EXPECT_THAT(verdict->line, Not(HasSubstr("50%")));
}

TEST(FailurePatterns, OnlyTheEndOfALongLogIsRead) {
  const FailurePatterns patterns;
  const std::string filler(kMaxLogTailBytes, 'x');
  EXPECT_FALSE(patterns.Find("NVRM: Xid 79\n" + filler).has_value());
  EXPECT_TRUE(patterns.Find(filler + "\nNVRM: Xid 79\n").has_value());
}

RC_GTEST_PROP(FailurePatterns, AnyBytesGiveAPlainQuoteOrNothing, ()) {
  const FailurePatterns patterns;
  std::string log;
  const auto piece = rc::gen::oneOf(
      rc::gen::elementOf(std::vector<std::string>{"NVRM: Xid", "CUDA out of memory", "\n", "\r",
                                                  "ncclSystemError", "\xff\xfe", "\x1b[0m"}),
      rc::gen::arbitrary<std::string>());
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) log += one;
  const auto verdict = patterns.Find(log);
  if (!verdict.has_value()) return;
  RC_ASSERT(IsUtf8(verdict->line) && !HasControlCharacter(verdict->line));
  RC_ASSERT(!(verdict->retriable && log.find("CUDA out of memory") != log.npos));
}

}  // namespace
}  // namespace muster::contract
