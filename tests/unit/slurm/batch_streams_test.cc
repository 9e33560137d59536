// Tests a user's own batch script in batch.sh: its files, and what it finds in its environment.
#include "contract/task_array.h"
#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

using Problem = ExitRecord::Problem;

constexpr char kNode[] = "SLURMD_NODENAME=n1.lab";

class BatchStreamsTest : public BatchScriptTest {
 protected:
  static v1::JobSpec Spec(const std::string& script, const std::string& output = "") {
    v1::JobSpec spec;
    spec.set_name("train");
    spec.mutable_command()->set_script(script);
    spec.mutable_slurm()->mutable_batch_script()->set_output(output);
    return spec;
  }
  // Runs it as Slurm job 128 of the user u.
  ExitRecord Run(const v1::JobSpec& spec) {
    Prepare(spec);
    Start(128, kNode);
    const auto record = ParseExitRecord(ReadWhole(paths_->exit_record()));
    EXPECT_TRUE(record.has_value()) << ReadWhole(paths_->slurm_output());
    std::filesystem::remove(paths_->claim());
    return record.value_or(ExitRecord{});
  }
  std::string Work(const std::string& name) const { return paths_->work() + "/" + name; }
  std::string Log() const { return ReadWhole(paths_->standard_output(0)); }
};

TEST_F(BatchStreamsTest, FileNamesAreWhatSlurmMakesOfThem) {
  std::filesystem::create_directory(Work("train-128"));
  // Each row was seen with Slurm 22.05.
  const std::pair<const char*, const char*> cases[] = {
      {"slurm-%j.out", "slurm-128.out"},
      {"%x-%j/main.out", "train-128/main.out"},
      {"%u@%N", "u@n1"},
      {"%A_%a", "128_4294967294"},
      {"%6j", "000128"},
      {"%2j", "128"},
      {"%99j", "0000000128"},
      {"%%j", "%j"},
      {"%q%", "%q%"},
      {"%5q", "5q"},
      {"m-%4%", "m-4%"},
      {"%J %s %t %n", "128 batch 0 0"},
      {"plain", "plain"},
      {"a b $(id) *", "a b $(id) *"},
      {"\\%j.", "%j."},
  };
  for (const auto& [pattern, name] : cases) {
    EXPECT_EQ(Run(Spec(fmt::format("printf %s '{}'", name), pattern)).code, 0) << pattern;
    EXPECT_EQ(ReadWhole(Work(name)), name) << pattern;
  }
}

TEST_F(BatchStreamsTest, TheFilesWithTheScriptsErrorsAreNoted) {
  v1::JobSpec spec = Spec("true", "o-%j");
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(ReadWhole(paths_->script_errors()),
            paths_->standard_output(0) + "\n" + Work("o-128") + "\n");
  spec.mutable_slurm()->mutable_batch_script()->set_error("e-%j");
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(ReadWhole(paths_->script_errors()),
            paths_->standard_error(0) + "\n" + Work("e-128") + "\n");
}

TEST_F(BatchStreamsTest, WhatTheScriptWritesIsInItsFileAndInTheLog) {
  v1::JobSpec spec = Spec("echo out; echo err >&2; exit 3", "%j.out");
  EXPECT_EQ(Run(spec).code, 3);
  EXPECT_EQ(ReadWhole(Work("128.out")), "out\nerr\n");
  EXPECT_EQ(Log(), "out\nerr\n") << "by default, errors go where the output goes";
  spec.mutable_slurm()->mutable_batch_script()->set_error("%j.err");
  EXPECT_EQ(Run(spec).code, 3);
  EXPECT_EQ(ReadWhole(Work("128.out")), "out\n");
  EXPECT_EQ(ReadWhole(Work("128.err")), "err\n");
  EXPECT_EQ(ReadWhole(paths_->standard_error(0)), "err\n");
}

TEST_F(BatchStreamsTest, WithoutFilesOfItsOwnTheLogHasItAll) {
  EXPECT_EQ(Run(Spec("echo out; echo err >&2")).code, 0);
  EXPECT_EQ(Log(), "out\nerr\n");
  EXPECT_TRUE(std::filesystem::is_empty(paths_->work()));
}

TEST_F(BatchStreamsTest, OptionsThatMusterGivesToSbatchAreNotTheScripts) {
  v1::JobSpec spec = Spec("env | grep -E '^SLURM_(OPEN_MODE|JOB_DEPENDENCY)=' | sort");
  const std::pair<const char*, const char*> cases[] = {
      {"singleton", ""},
      {"singleton,afterok:7", "SLURM_JOB_DEPENDENCY=afterok:7\n"},
      {"afterok:7?afterok:8", "SLURM_JOB_DEPENDENCY=afterok:7?afterok:8\n"}};
  for (const bool append : {false, true}) {
    spec.mutable_slurm()->mutable_batch_script()->set_append(append);
    for (const auto& [given, left] : cases) {
      Prepare(spec);
      Start(128, fmt::format("SLURM_OPEN_MODE=a SLURM_JOB_DEPENDENCY='{}' {}", given, kNode));
      EXPECT_EQ(Log(), std::string(left) + (append ? "SLURM_OPEN_MODE=a\n" : "")) << given;
      std::filesystem::remove_all(paths_->directory());
      MakeDirectories();
    }
  }
}

TEST_F(BatchStreamsTest, ItsFileIsBegunAnewOrAppendedToAndTheLogOnlyGrows) {
  for (const bool append : {false, true}) {
    std::ofstream(Work("f")) << "before\n";
    v1::JobSpec spec = Spec("echo start $SLURM_RESTART_COUNT; exit 1", "f");
    spec.mutable_slurm()->mutable_batch_script()->set_append(append);
    Prepare(spec);
    Start(128, kNode);
    Start(128, std::string("SLURM_RESTART_COUNT=1 ") + kNode);
    EXPECT_EQ(ReadWhole(Work("f")), append ? "before\nstart\nstart 1\n" : "start 1\n");
    EXPECT_EQ(Log(), "start\nstart 1\n");
    std::filesystem::remove_all(paths_->directory());
    MakeDirectories();
  }
}

TEST_F(BatchStreamsTest, ATaskOfAJobArrayKnowsItsArrayAndItsNumber) {
  v1::JobSpec spec = Spec("env | grep SLURM_ARRAY | sort", "%A-%a-%j-%3a");
  contract::SetArrayTask({.id = 7, .count = 3, .min_id = 1, .max_id = 9, .step = 1, .place = 2},
                         &spec);
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(ReadWhole(Work("40-7-128-007")),
            "SLURM_ARRAY_JOB_ID=40\nSLURM_ARRAY_TASK_COUNT=3\nSLURM_ARRAY_TASK_ID=7\n"
            "SLURM_ARRAY_TASK_MAX=9\nSLURM_ARRAY_TASK_MIN=1\nSLURM_ARRAY_TASK_STEP=1\n");
}

TEST_F(BatchStreamsTest, ItReadsItsInput) {
  std::ofstream(Work("numbers.128")) << "4 2\n";
  v1::JobSpec spec = Spec("cat");
  spec.mutable_slurm()->mutable_batch_script()->set_input("numbers.%j");
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(Log(), "4 2\n");
}

TEST_F(BatchStreamsTest, AFileThatCannotBeOpenedIsNamed) {
  const ExitRecord output = Run(Spec("echo never", "no/%j.out"));
  EXPECT_EQ(output.problem, Problem::kStreams);
  EXPECT_EQ(output.cause, ExitRecord::Cause::kOutput);
  EXPECT_EQ(output.about, Work("no/128.out"));
  v1::JobSpec spec = Spec("echo never");
  spec.mutable_slurm()->mutable_batch_script()->set_input("nothing");
  EXPECT_EQ(Run(spec).cause, ExitRecord::Cause::kInput);
  spec.mutable_slurm()->mutable_batch_script()->set_input("");
  spec.mutable_slurm()->mutable_batch_script()->set_error(std::string(3000, 'e') + "\n code=7");
  const ExitRecord error = Run(spec);
  EXPECT_EQ(error.cause, ExitRecord::Cause::kError);
  EXPECT_EQ(error.about, Work(std::string(3000, 'e')).substr(0, 200));
  EXPECT_EQ(error.code, 1);
  EXPECT_EQ(Log(), "");
}

TEST_F(BatchStreamsTest, AMissingWorkingDirectoryIsNotTakenForAMissingFile) {
  v1::JobSpec spec = Spec("echo never", "%j.out");
  spec.set_working_directory("/nonexistent");
  EXPECT_EQ(Run(spec).problem, Problem::kWorkingDirectory);
}

// As slurmstepd does it.
TEST_F(BatchStreamsTest, WithoutItsDirectoryAScriptStartsInTmpIfItsFilesAreElsewhere) {
  for (const std::string& output : {Work("f"), std::string("/dev/null")}) {
    v1::JobSpec spec = Spec("pwd; exit 3", output);
    spec.set_working_directory("/nonexistent");
    const ExitRecord record = Run(spec);
    EXPECT_EQ(record.problem, Problem::kNone);
    EXPECT_EQ(record.code, 3);
    EXPECT_THAT(Log(), testing::HasSubstr("cannot change to /nonexistent: going to /tmp instead"));
    EXPECT_TRUE(Log().ends_with("/tmp\n")) << Log();
  }
  v1::JobSpec spec = Spec("echo never", "/dev/null");
  spec.set_working_directory("/nonexistent");
  spec.mutable_slurm()->mutable_batch_script()->set_error("e");
  EXPECT_EQ(Run(spec).problem, Problem::kWorkingDirectory) << "its errors would be there";
}

TEST_F(BatchStreamsTest, WhatAProcessLeftBehindWritesSoonIsThereToo) {
  EXPECT_EQ(Run(Spec("(sleep 1; echo late) & echo early", "f")).code, 0);
  EXPECT_EQ(Log(), "early\nlate\n");
}

TEST_F(BatchStreamsTest, ItsEnvironmentIsThatOfAPlainBatchJob) {
  v1::JobSpec spec = Spec(
      "echo $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_NTASKS_PER_NODE; pwd; echo $SLURM_SUBMIT_DIR");
  Prepare(spec);
  Start(128, "SLURM_NTASKS=8 SLURM_NTASKS_PER_NODE=8 SLURM_JOB_NAME=k7m2-42-1 SLURM_SUBMIT_DIR=/");
  EXPECT_EQ(Log(), fmt::format("train 8 8\n{0}\n{0}\n", paths_->work()));
}

// The line that slurmstepd writes into slurm.out before it sends a TERM.
constexpr char kCancel[] =
    "echo begin; echo 'slurmstepd-n1: error: *** JOB 128 ON n1 CANCELLED ***' >>";

TEST_F(BatchStreamsTest, WhatSlurmWritesOfTheEndIsInTheScriptsFile) {
  EXPECT_EQ(Run(Spec(kCancel + paths_->slurm_output() + "; exit 3", "f")).code, 3);
  const std::string all = "begin\nslurmstepd-n1: error: *** JOB 128 ON n1 CANCELLED ***\n";
  EXPECT_EQ(ReadWhole(Work("f")), all);
  EXPECT_EQ(Log(), all);
  // Slurm's words are in the file for errors if there is one; a line of an earlier start is not
  // told again.
  v1::JobSpec spec = Spec(
      "until grep -q ^muster-start " + paths_->slurm_output() + "; do sleep 0.1; done; echo again",
      "f");
  spec.mutable_slurm()->mutable_batch_script()->set_error("e");
  Prepare(spec);
  std::ofstream(paths_->claim()) << "128\n";
  Start(128, std::string("SLURM_RESTART_COUNT=1 ") + kNode);
  EXPECT_EQ(ReadWhole(Work("f")), "again\n");
  EXPECT_EQ(ReadWhole(Work("e")), "");
}

TEST_F(BatchStreamsTest, ItIsThereBeforeAScriptThatIgnoresTheTermIsKilled) {
  // The script ends only when the line is in its file.
  const std::string script = fmt::format(
      "#!/bin/bash\ntrap '' TERM; {}{}; kill -TERM -- -$(ps -o pgid= $$ | tr -d ' ')\n"
      "for ((i = 0; i < 600; ++i)); do grep -q CANCELLED f && exit 7; sleep 0.1; done",
      kCancel, paths_->slurm_output());
  const ExitRecord record = Run(Spec(script, "f"));
  EXPECT_EQ(record.code, 7);
  EXPECT_EQ(ReadWhole(Work("f")), "begin\nslurmstepd-n1: error: *** JOB 128 ON n1 CANCELLED ***\n");
}

}  // namespace
}  // namespace muster::slurm
