#include "clients/cpp/slurm/sbatch_job.h"

#include "clients/cpp/slurm/sbatch_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::client::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<SbatchJob> TryMap(const std::string& directives,
                                 const std::vector<std::string>& words = {"run.sh"}) {
  const auto submission = ReadSbatch(words, {}, "#!/bin/bash\n" + directives + "\ntrue\n");
  if (!submission.ok()) return submission.status();
  return MapSbatch(*submission);
}

SbatchJob Mapped(const std::string& directives) {
  const auto job = TryMap(directives);
  EXPECT_TRUE(job.ok()) << directives << job.status();
  return job.value_or(SbatchJob());
}

TEST(MapSbatchTest, AScriptOfTheManualRunsAnywhere) {
  const SbatchJob job = Mapped(
      "#SBATCH --job-name=train\n#SBATCH --nodes=1\n#SBATCH --cpus-per-task=8\n#SBATCH --mem=10GB\n"
      "#SBATCH --gres=gpu:h100:1\n#SBATCH --time=1-02:00\n#SBATCH --output=%x-%j.out\n"
      "#SBATCH --export=NONE --chdir=/data");
  EXPECT_THAT(job.slurm_only, IsEmpty());
  EXPECT_THAT(job.notes, IsEmpty());
  EXPECT_FALSE(job.spec.has_slurm());
  EXPECT_EQ(job.spec.name(), "train");
  EXPECT_EQ(job.spec.nodes(), 1u);
  EXPECT_EQ(job.spec.resources().cpu_millis(), 8000u);
  EXPECT_EQ(job.spec.resources().memory_bytes(), uint64_t{10} << 30);
  EXPECT_EQ(job.spec.resources().gpus(0).type(), "h100");
  EXPECT_EQ(job.spec.resources().gpus(0).count_millis(), 1000u);
  EXPECT_EQ(job.spec.time_limit().seconds(), 26 * 3600);
  EXPECT_EQ(job.spec.working_directory(), "/data");
  EXPECT_EQ(job.output, "%x-%j.out");
  EXPECT_THAT(job.spec.command().script(), HasSubstr("\ntrue\n"));
}

TEST(MapSbatchTest, WhatTiesAJobToSlurmIsNamedWithItsPlace) {
  const SbatchJob job = Mapped(
      "#SBATCH -p gpu -A lab\n#SBATCH --array=1-9\n#SBATCH --hold --nosuch=1\n#SBATCH "
      "--no-requeue");
  EXPECT_THAT(job.slurm_only, ElementsAre("--partition=gpu (line 2)", "--account=lab (line 2)",
                                          "--array=1-9 (line 3)", "--hold (line 4)",
                                          "--no-requeue (line 5)", "--nosuch=1 (line 4)"));
  EXPECT_EQ(job.spec.slurm().partition(), "gpu");
  EXPECT_EQ(job.spec.slurm().account(), "lab");
  EXPECT_TRUE(job.spec.slurm().has_requeue());
  EXPECT_FALSE(job.spec.slurm().requeue());
}

TEST(MapSbatchTest, SeveralNodesTieAScriptThatStartsOnce) {
  EXPECT_THAT(Mapped("#SBATCH -N2").slurm_only, ElementsAre("--nodes=2 (line 2)"));
  EXPECT_EQ(Mapped("#SBATCH -N2-4").spec.nodes(), 2u);
  EXPECT_THAT(Mapped("#SBATCH -n4").slurm_only, ElementsAre("--ntasks=4 (line 2)"));
  EXPECT_THAT(Mapped("#SBATCH -n4 -N1").slurm_only, IsEmpty());
  EXPECT_THAT(Mapped("#SBATCH -N1-2").slurm_only, IsEmpty()) << "one node is enough for it";
}

TEST(MapSbatchTest, AmountsAreThoseOfOneNode) {
  const SbatchJob job = Mapped("#SBATCH -N2 -n8 -c3 --mem-per-cpu=1G --gpus=a100:8");
  EXPECT_EQ(job.spec.resources().cpu_millis(), 12000u);
  EXPECT_EQ(job.spec.resources().memory_bytes(), uint64_t{12} << 30);
  EXPECT_EQ(job.spec.resources().gpus(0).count_millis(), 4000u);
  EXPECT_EQ(Mapped("#SBATCH -N1 --ntasks-per-node=4 --gpus-per-task=2")
                .spec.resources()
                .gpus(0)
                .count_millis(),
            8000u);
  EXPECT_EQ(Mapped("#SBATCH -G4 --mem-per-gpu=2G").spec.resources().memory_bytes(),
            uint64_t{8} << 30);
  EXPECT_EQ(Mapped("#SBATCH --gres=gpu:0").spec.resources().gpus_size(), 0);
}

TEST(MapSbatchTest, OtherResourcesAndAllOfTheMemoryAreSlurms) {
  const SbatchJob job = Mapped("#SBATCH --gres=gpu:2,nvme:1 --mem=0");
  EXPECT_EQ(job.spec.slurm().gres(), "nvme:1");
  EXPECT_EQ(job.spec.resources().gpus(0).count_millis(), 2000u);
  EXPECT_THAT(job.slurm_only, ElementsAre("--gres=gpu:2,nvme:1 (line 2)", "--mem=0 (line 2)"));
}

TEST(MapSbatchTest, VariablesThatAreNamedTravel) {
  const SbatchJob job = Mapped("#SBATCH --export=A=1,B=x=y");
  EXPECT_THAT(job.notes, IsEmpty());
  EXPECT_EQ(job.spec.env().at("A"), "1");
  EXPECT_EQ(job.spec.env().at("B"), "x=y");
  EXPECT_THAT(Mapped("").notes, ElementsAre(HasSubstr("do not travel")));
  EXPECT_THAT(Mapped("#SBATCH --export=ALL,A=1").notes, ElementsAre(HasSubstr("do not travel")));
}

TEST(MapSbatchTest, TheScriptsArgumentsAndOptionsOfTheCommandLineCount) {
  const auto job = TryMap("#SBATCH -t5", {"-t", "7", "--parsable", "run.sh", "x"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.time_limit().seconds(), 420);
  EXPECT_THAT(job->slurm_only, ElementsAre("arguments of the script"));
}

TEST(MapSbatchTest, AValueThatCannotBeReadIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"-t soon", "--time: \"soon\" (line 2)"},
      {"-N many", "--nodes: \"many\""},
      {"-N4-2", "--nodes"},
      {"-c 0", "--cpus-per-task: \"0\""},
      {"-n -3", "--ntasks: \"-3\""},
      {"--mem=1.5G", "--mem: \"1.5G\""},
      {"--mem=1G --mem-per-cpu=1G", "--mem-per-cpu"},
      {"--gpus=a100:2,h100:2", "--gpus"},
      {"--gres=gpu:a:1,gpu:b:1", "--gres"},
      {"--gres=gpu:x:y", "--gres"},
  };
  for (const auto& [directive, words] : cases) {
    const auto job = TryMap(std::string("#SBATCH ") + directive);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument) << directive;
    EXPECT_THAT(std::string(job.status().message()), HasSubstr(words)) << directive;
  }
}

TEST(ParseSbatchTimeTest, IsReadAsSbatchReadsIt) {
  const std::pair<const char*, uint64_t> good[] = {
      {"90", 5400},       {"1:30", 90},     {"1:0:0", 3600}, {"2-3", 183600}, {"1-0:30", 88200},
      {"1-0:0:1", 86401}, {"UNLIMITED", 0}, {"infinite", 0}, {"0", 0},        {"-1", 0}};
  for (const auto& [text, seconds] : good) EXPECT_EQ(ParseSbatchTime(text), seconds) << text;
  for (const char* text : {"", "1h", ":", "1:2:3:4", "1-", "-", "1-2:3:4:5", "400-0", "1:-2"}) {
    EXPECT_FALSE(ParseSbatchTime(text).has_value()) << text;
  }
}

RC_GTEST_PROP(MapSbatchTest, AnyScriptIsMappedOrRefused, ()) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "\n#SBATCH ", " -N", " -n",
      " --time=", " --mem=", " --gres=", " --gpus=", " --export=", "gpu", ":", "4", "-", ",", "G",
      "99999999999", "h100", " --nice=", "\xff", " --mem-per-gpu="});
  std::string text;
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) text += one;
  const auto job = TryMap(text);
  if (!job.ok()) {
    RC_ASSERT(job.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  RC_ASSERT(job->spec.nodes() >= 1u);
}

}  // namespace
}  // namespace muster::client::slurm
