// Tests slurm.timeout in batch.sh: what is stopped, what is requeued, and what the record says.
#include <signal.h>

#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using Problem = ExitRecord::Problem;

class BatchTimeoutTest : public BatchScriptTest {
 protected:
  // Makes a run that may last a second; "requeue" below says what becomes of it then.
  static v1::JobSpec Spec(const std::string& script, bool requeue) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script(script);
    spec.mutable_slurm()->mutable_timeout()->set_seconds(1);
    spec.mutable_slurm()->set_requeue(requeue);
    return spec;
  }
  std::string SlurmOutput() const { return ReadWhole(paths_->slurm_output()); }
};

TEST_F(BatchTimeoutTest, ACommandThatEndsBeforeItIsNotTouched) {
  for (const int code : {0, 124, 137, 143}) {
    const ExitRecord end = EndOf(Spec(fmt::format("exit {}", code), true));
    EXPECT_EQ(end.code, code);
    EXPECT_EQ(end.problem, Problem::kNone) << code;
  }
  EXPECT_EQ(SlurmOutput(), "");
}

TEST_F(BatchTimeoutTest, TheCommandAndItsChildrenGetATermAndTheirOwnEndCounts) {
  const ExitRecord end =
      EndOf(Spec("#!/bin/bash\n"
                 "(trap 'sleep 0.5; echo checkpoint; exit' TERM; while :; do sleep 0.1; done) &\n"
                 "trap 'exit 7' TERM\n"
                 "while :; do sleep 0.1; done",
                 false));
  EXPECT_EQ(end.problem, Problem::kTimeout);
  EXPECT_EQ(end.code, 7);
  EXPECT_FALSE(end.EndedWithZero());
  EXPECT_TRUE(end.HasExitStatus());
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "checkpoint\n");
  EXPECT_THAT(SlurmOutput(), HasSubstr("slurm.timeout"));
}

TEST_F(BatchTimeoutTest, AZeroInAnswerToTheTermIsNoSuccess) {
  const ExitRecord end =
      EndOf(Spec("#!/bin/bash\ntrap 'exit 0' TERM\nwhile :; do sleep 0.1; done", false));
  EXPECT_EQ(end.problem, Problem::kTimeout);
  EXPECT_EQ(end.code, 0);
  EXPECT_FALSE(end.EndedWithZero());
  EXPECT_TRUE(end.IsVoidAfterRequeue());
  EXPECT_EQ(end.cause, ExitRecord::Cause::kNone) << "nobody has wanted it to be requeued";
}

TEST_F(BatchTimeoutTest, AfterAZeroInAnswerToTheTermTheCommandRunsAgain) {
  Prepare(
      Spec("#!/bin/bash\necho $MUSTER_RESTART_COUNT; trap 'exit 0' TERM\n"
           "while ((MUSTER_RESTART_COUNT == 0)); do sleep 0.1; done",
           false));
  Start();
  ASSERT_TRUE(std::filesystem::exists(paths_->exit_record()));
  Start(17, "SLURM_RESTART_COUNT=1");
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "0\n1\n") << SlurmOutput();
}

TEST_F(BatchTimeoutTest, WhoIgnoresTheTermIsKilledAfterAGrace) {
  Prepare(Spec("trap '' TERM; while :; do sleep 0.1; done", false));
  std::ofstream(paths_->specs() + "/timeout") << "1 0 1\n";
  Start();
  const auto end = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(end.has_value()) << SlurmOutput();
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_EQ(end->problem, Problem::kTimeout);
}

TEST_F(BatchTimeoutTest, AJobThatMayBeRequeuedIsAndLeavesNoRecord) {
  AddCommand("scontrol", fmt::format("echo \"$*\" >>{}/asked", root_));
  Prepare(Spec("echo $MUSTER_RESTART_COUNT; [ $MUSTER_RESTART_COUNT -eq 1 ] || sleep 300", true));
  Start();
  EXPECT_EQ(ReadWhole(root_ + "/asked"), "requeue 17\n");
  EXPECT_FALSE(std::filesystem::exists(paths_->exit_record()));
  Start(17, "SLURM_RESTART_COUNT=1");
  const auto end = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(end.has_value()) << SlurmOutput();
  EXPECT_TRUE(end->EndedWithZero());
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "0\n1\n");
}

TEST_F(BatchTimeoutTest, AJobThatWasPutBackAsOftenAsIsAllowedEndsAndSaysHowOften) {
  AddCommand("scontrol", fmt::format("touch {}/asked", root_));
  Prepare(Spec("sleep 300", true));
  std::ofstream(paths_->specs() + "/timeout") << "1 1 120 2\n";
  Start(17, "SLURM_RESTART_COUNT=2");
  const auto end = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(end.has_value()) << SlurmOutput();
  EXPECT_EQ(end->problem, Problem::kTimeout);
  EXPECT_FALSE(std::filesystem::exists(root_ + "/asked"));
  EXPECT_EQ(end->cause, ExitRecord::Cause::kRestartLimit);
  EXPECT_EQ(end->about, "2");
  EXPECT_EQ(end->restart, 2u);
}

TEST_F(BatchTimeoutTest, ARequeueThatIsRefusedIsSaidAndEndsTheRun) {
  AddCommand("scontrol",
             "printf 'Requested operation is\\npresently disabled code=9\\n' >&2; exit 1");
  const ExitRecord end = EndOf(Spec("sleep 300", true));
  EXPECT_EQ(end.problem, Problem::kTimeout);
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_EQ(end.cause, ExitRecord::Cause::kRefused);
  EXPECT_EQ(end.about, "Requested operation is presently disabled code=9");
}

TEST_F(BatchTimeoutTest, ARunThatSlurmIsEndingAlreadyIsNotRequeued) {
  AddCommand("scontrol", fmt::format("touch {}/asked", root_));
  // The command has a process group of its own; that of its parent is the batch shell's.
  EndOf(
      Spec("#!/bin/bash\nread -r _ _ _ _ group _ </proc/$PPID/stat\n"
           "trap 'kill -- -$group; sleep 0.3; exit 3' TERM\nwhile :; do sleep 0.1; done",
           true));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/asked"));
}

TEST_F(BatchTimeoutTest, StepsThatIgnoreTheTermAreKilledByTheirSrunsAndNobodyAsksForThem) {
  AddCommand("srun", fmt::format("trap 'echo killed >>{}/srun; exit 137' TERM\n"
                                 "while :; do sleep 0.1; done",
                                 root_));
  AddCommand("scancel", fmt::format("echo \"$*\" >>{}/canceled", root_));
  AddCommand("squeue", fmt::format("touch {}/asked", root_));
  Prepare(Spec("sleep 300", false));
  std::ofstream(paths_->specs() + "/timeout") << "1 0 1 100\n";
  Start(17, "SLURM_NTASKS_PER_NODE=2");
  const auto end = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(end.has_value()) << SlurmOutput();
  EXPECT_EQ(end->problem, Problem::kTimeout);
  EXPECT_EQ(ReadWhole(root_ + "/canceled"), "--quiet --signal=TERM 17\n");
  EXPECT_EQ(ReadWhole(root_ + "/srun"), "killed\n");
  EXPECT_FALSE(std::filesystem::exists(root_ + "/asked"));
}

TEST_F(BatchTimeoutTest, TheGraceOfATimeoutIsNotThatOfRolesOfWhichOneHasFailed) {
  AddCommand("srun", fmt::format("trap 'echo killed >>{0}/srun; exit 137' TERM\n"
                                 "case \"$*\" in *' step role-1 '*) exit 7;; esac\n"
                                 "until [ -e {0}/canceled ]; do sleep 0.1; done\n"
                                 "sleep 0.5; echo saved >>{0}/srun",
                                 root_));
  AddCommand("scancel", fmt::format("echo \"$*\" >>{}/canceled", root_));
  v1::JobSpec spec = Spec("", false);
  spec.clear_command();
  for (const char* name : {"saver", "failer"}) {
    v1::Role* role = spec.add_roles();
    role->set_name(name);
    role->set_nodes(1);
    role->mutable_command()->set_script("true");
  }
  Prepare(spec);
  std::ofstream(paths_->specs() + "/timeout") << "300 0 0 100\n";
  Start();
  EXPECT_EQ(ReadWhole(root_ + "/srun"), "saved\n") << SlurmOutput();
}

TEST_F(BatchTimeoutTest, TimeThatASetupTakesCounts) {
  v1::JobSpec spec = Spec("echo never", false);
  spec.set_setup("sleep 300");
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.phase, "setup");
  EXPECT_EQ(end.problem, Problem::kTimeout);
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "");
}

}  // namespace
}  // namespace muster::slurm
