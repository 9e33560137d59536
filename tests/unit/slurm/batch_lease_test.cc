// Tests leases in batch.sh: what is started, what is stopped, and what the record says.
#include <signal.h>
#include <sys/stat.h>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/slurm/leases.h"
#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;
using Cause = ExitRecord::Cause;
using Problem = ExitRecord::Problem;

// A program that goes on for ever. It is alive as long as it answers a TERM.
constexpr char kGoesOn[] =
    "#!/bin/bash\ntrap 'echo saved; exit 0' TERM\nwhile :; do sleep 0.1; done";

class BatchLeaseTest : public BatchScriptTest {
 protected:
  static v1::JobSpec Spec(const std::string& script) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script(script);
    spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
    return spec;
  }
  // Writes the file as the agent does, `age` ago.
  void Renew(absl::Duration remaining, absl::Duration age = absl::ZeroDuration()) {
    const agents::LeaseFile lease = agents::NextLease(
        number_, absl::ToUnixMillis(absl::Now() - age), absl::ToInt64Milliseconds(remaining));
    number_ = lease.number;
    Put(FormatLeaseFile(lease));
  }
  void Put(const std::string& text) {
    std::filesystem::create_directories(RunPaths::LeaseDirectory(root_));
    const std::string path = RunPaths::LeaseFilePath(root_);
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  std::optional<ExitRecord> Record() const {
    return ParseExitRecord(ReadWhole(paths_->exit_record()));
  }
  void SetGrace(int milliseconds) {
    std::ofstream(paths_->specs() + "/lease") << fmt::format("1000 5000 {}\n", milliseconds);
  }
  std::string Written() const { return ReadWhole(paths_->standard_output(0)); }

 private:
  uint64_t number_ = 0;
};

TEST_F(BatchLeaseTest, WithoutALeaseNobodyLooksAtTheFile) {
  Renew(absl::Seconds(1), absl::Hours(1));
  v1::JobSpec spec = Spec("echo ran");
  spec.clear_on_cluster_loss();
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.problem, Problem::kNone);
  EXPECT_EQ(Written(), "ran\n");
}

TEST_F(BatchLeaseTest, AProgramThatEndsInTimeIsNotTouched) {
  Renew(absl::Hours(1));
  for (const int code : {0, 3, 143}) {
    const ExitRecord end = EndOf(Spec(fmt::format("exit {}", code)));
    EXPECT_EQ(end.problem, Problem::kNone) << code;
    EXPECT_EQ(end.code, code);
  }
  EXPECT_EQ(ReadWhole(paths_->slurm_output()), "");
}

TEST_F(BatchLeaseTest, WithoutAFileOrAfterItsEndNothingIsStarted) {
  for (const auto& [name, put] :
       std::initializer_list<std::pair<const char*, std::function<void()>>>{
           {"none", [] {}},
           {"over", [&] { Renew(absl::Minutes(1), absl::Minutes(2)); }},
           {"torn", [&] { Put("muster-lease 1 17"); }},
           {"other", [&] { Put("muster-lease 2 17 3600000 9999999999999\n"); }},
           {"by a clock that goes wrong", [&] { Renew(absl::Minutes(1), -absl::Hours(1)); }}}) {
    put();
    const ExitRecord end = EndOf(Spec("echo ran"));
    EXPECT_EQ(end.problem, Problem::kLease) << name;
    EXPECT_EQ(end.cause, Cause::kNotStarted) << name;
    EXPECT_FALSE(end.EndedWithZero()) << name;
    EXPECT_FALSE(end.HasExitStatus()) << name;
    EXPECT_FALSE(std::filesystem::exists(paths_->standard_output(0))) << name;
  }
}

TEST_F(BatchLeaseTest, AtItsEndTheProgramGetsATermAndA0IsNoSuccess) {
  Renew(absl::Seconds(3));
  const absl::Time begin = absl::Now();
  const ExitRecord end = EndOf(Spec(kGoesOn));
  EXPECT_EQ(end.problem, Problem::kLease);
  EXPECT_EQ(end.cause, Cause::kNone);
  EXPECT_FALSE(end.EndedWithZero());
  EXPECT_EQ(Written(), "saved\n");
  EXPECT_THAT(absl::Now() - begin, Ge(absl::Seconds(1)));
  EXPECT_THAT(ReadWhole(paths_->slurm_output()), HasSubstr("lease"));
}

TEST_F(BatchLeaseTest, WhoIgnoresTheTermIsKilledAfterTheGraceWithItsChildren) {
  Renew(absl::Seconds(2));
  Prepare(Spec(
      "trap '' TERM; (while :; do echo child; sleep 0.1; done) & while :; do sleep 0.1; done"));
  SetGrace(500);
  Start();
  ASSERT_TRUE(Record().has_value()) << ReadWhole(paths_->slurm_output());
  EXPECT_EQ(Record()->problem, Problem::kLease);
  const std::string then = Written();
  EXPECT_EQ(std::system("sleep 0.3"), 0);
  EXPECT_EQ(Written(), then) << "a child writes on";
}

// The program renews its own lease, because it is there when somebody looks.
TEST_F(BatchLeaseTest, ARenewedLeaseLastsAndTheProgramsEndIsItsOwn) {
  Renew(absl::Seconds(3));
  const ExitRecord end = EndOf(Spec(fmt::format(
      "#!/bin/bash\nfor i in 1 2 3 4 5 6; do\nprintf -v now '%(%s)T' -1\n"
      "echo muster-lease 1 $((now + i))999 3000 $((now + 3))000 >{0}.new; mv {0}.new {0}\n"
      "sleep 1; done; exit 7",
      RunPaths::LeaseFilePath(root_))));
  EXPECT_EQ(end.problem, Problem::kNone) << ReadWhole(paths_->slurm_output());
  EXPECT_EQ(end.code, 7);
  EXPECT_THAT(end.end - end.start, Ge(absl::Seconds(5)));
}

TEST_F(BatchLeaseTest, TheSameNumberOnceMoreRenewsNothing) {
  Renew(absl::Seconds(3));
  const std::string line = ReadWhole(RunPaths::LeaseFilePath(root_));
  const std::string number = line.substr(15, 13);
  const ExitRecord end = EndOf(Spec(fmt::format(
      "#!/bin/bash\ntrap 'exit 0' TERM\nwhile :; do\nprintf -v now '%(%s)T' -1\n"
      "echo muster-lease 1 {1} 3000 $((now + 3))000 >{0}.new; mv {0}.new {0}\nsleep 0.5; done",
      RunPaths::LeaseFilePath(root_), number)));
  EXPECT_EQ(end.problem, Problem::kLease);
}

TEST_F(BatchLeaseTest, AFileServerThatHangsEndsTheLease) {
  Renew(absl::Seconds(3));
  const std::string file = RunPaths::LeaseFilePath(root_);
  // An open of a pipe that nobody writes to lasts for ever, as one on a file server that is away.
  const ExitRecord end = EndOf(Spec(fmt::format("rm -f {0}; mkfifo {0}\n{1}", file, kGoesOn)));
  EXPECT_EQ(end.problem, Problem::kLease) << ReadWhole(paths_->slurm_output());
}

TEST_F(BatchLeaseTest, TheSetupHasTheLeaseToo) {
  Renew(absl::Seconds(3));
  v1::JobSpec spec = Spec("echo command");
  spec.set_setup(kGoesOn);
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.problem, Problem::kLease);
  EXPECT_TRUE(end.IsOfSetup());
  EXPECT_EQ(Written(), "saved\n") << "the command does not follow";
}

TEST_F(BatchLeaseTest, ALeaseThatEndsBetweenSetupAndCommandLetsNoCommandBegin) {
  Renew(absl::Hours(1));
  v1::JobSpec spec = Spec("echo command");
  spec.set_setup(fmt::format("rm {}", RunPaths::LeaseFilePath(root_)));
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.problem, Problem::kLease);
  EXPECT_EQ(end.cause, Cause::kNotStarted);
  EXPECT_FALSE(end.IsOfSetup());
  EXPECT_EQ(Written(), "");
}

TEST_F(BatchLeaseTest, ARunWhoseLeaseHasEndedDoesNotRunAgainAfterARequeue) {
  Prepare(Spec("echo ran"));
  Start();
  ASSERT_TRUE(Record().has_value());
  Renew(absl::Hours(1));
  Start(17, "SLURM_RESTART_COUNT=1");
  EXPECT_FALSE(std::filesystem::exists(paths_->standard_output(0)));
  EXPECT_EQ(Record()->problem, Problem::kLease);
  EXPECT_FALSE(Record()->IsVoidAfterRequeue());
}

TEST_F(BatchLeaseTest, ABatchScriptOnSeveralNodesIsNotStarted) {
  Renew(absl::Hours(1));
  v1::JobSpec spec = Spec("echo ran");
  spec.mutable_slurm()->mutable_batch_script();
  Prepare(spec);
  AddCommand("scontrol", "echo n1; echo n2");
  std::system(fmt::format("SLURM_JOB_ID=17 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=n[1-2] "
                          "SLURM_JOB_USER=u PATH={}/bin:$PATH /bin/bash {} {}",
                          root_, paths_->script(), paths_->directory())
                  .c_str());
  ASSERT_TRUE(Record().has_value());
  EXPECT_EQ(Record()->problem, Problem::kLease);
  EXPECT_EQ(Record()->cause, Cause::kNodes);
  EXPECT_EQ(Written(), "");
}

// A step's own node stops its program; this one runs here, in srun's place.
TEST_F(BatchLeaseTest, AStepsNodeStopsItsProgramAndItsRankTells) {
  Renew(absl::Seconds(3));
  AddCommand("srun",
             "while [ \"$1\" != /bin/bash ]; do shift; done; SLURM_NODEID=0 SLURM_LOCALID=0; "
             "export SLURM_NODEID SLURM_LOCALID; exec \"$@\"");
  Prepare(Spec(kGoesOn));
  Start(17, "SLURM_NTASKS_PER_NODE=2");
  ASSERT_TRUE(Record().has_value()) << ReadWhole(paths_->slurm_output());
  EXPECT_EQ(Record()->problem, Problem::kLease);
  EXPECT_EQ(Written(), "saved\n");
}

TEST_F(BatchLeaseTest, AStepThatNobodyOnItsNodeStopsIsKilledByItsSrun) {
  Renew(absl::Seconds(2));
  AddCommand("srun", fmt::format("trap 'echo killed >>{}/srun; exit 137' TERM\n"
                                 "while :; do sleep 0.1; done",
                                 root_));
  Prepare(Spec("true"));
  SetGrace(500);
  Start(17, "SLURM_NTASKS_PER_NODE=2");
  ASSERT_TRUE(Record().has_value()) << ReadWhole(paths_->slurm_output());
  EXPECT_EQ(Record()->problem, Problem::kLease);
  EXPECT_EQ(ReadWhole(root_ + "/srun"), "killed\n");
}

TEST_F(BatchLeaseTest, TheStepsOfABatchScriptHearOfItAndAreKilledOnTheNodeItself) {
  Renew(absl::Seconds(2));
  AddCommand("scancel", fmt::format("echo \"$*\" >>{}/canceled", root_));
  // A process that has left the script's group, as the step of an srun has.
  AddCommand("scontrol", fmt::format("echo PID JOBID STEPID LOCALID GLOBALID\n"
                                     "echo $(cat {0}/step) 17 0 0 0; echo $PPID 17 batch 0 0",
                                     root_));
  v1::JobSpec spec =
      Spec(fmt::format("#!/bin/bash\nsetsid sh -c 'echo $$ >{0}/step; trap \"\" TERM; while :; do "
                       "sleep 0.1; done' &\n{1}",
                       root_, "trap 'exit 0' TERM; while :; do sleep 0.1; done"));
  spec.mutable_slurm()->mutable_batch_script();
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.problem, Problem::kLease) << ReadWhole(paths_->slurm_output());
  EXPECT_EQ(ReadWhole(root_ + "/canceled"), "--quiet --signal=TERM 17\n");
  const int step = std::stoi(ReadWhole(root_ + "/step"));
  EXPECT_NE(std::filesystem::exists(fmt::format("/proc/{}", step)) &&
                ReadWhole(fmt::format("/proc/{}/stat", step)).find(") Z") == std::string::npos,
            true);
}

TEST(LeasesTest, TheFenceDelayIsMoreThanAllThatANodeMayTake) {
  EXPECT_GE(LeaseFenceDelay(),
            kLeaseGrace + absl::Milliseconds(2 * agents::kLeaseClockSkewMs + agents::kLeaseLookMs));
  EXPECT_LE(LeaseFenceDelay(), absl::Minutes(1));
  EXPECT_EQ(LeaseTermsFile(), "1000 5000 30000\n");
}

TEST(LeasesTest, ABatchScriptThatMayGetSeveralNodesIsRefusedWithWhatToDo) {
  const auto check = [](const std::function<void(v1::JobSpec*)>& change) {
    v1::JobSpec spec;
    spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED);
    spec.mutable_slurm()->mutable_batch_script();
    change(&spec);
    return CheckKeepsLease(spec);
  };
  EXPECT_TRUE(check([](v1::JobSpec*) {}).ok());
  EXPECT_TRUE(check([](v1::JobSpec* spec) {
                spec->mutable_slurm()->add_extra_options("--ntasks=4");
                spec->mutable_slurm()->add_extra_options("--nodes=1");
              }).ok());
  const auto several = [](v1::JobSpec* spec) { spec->set_nodes(2); };
  EXPECT_THAT(std::string(check(several).message()), HasSubstr("--nodes=1"));
  EXPECT_FALSE(check([](v1::JobSpec* spec) {
                 spec->mutable_slurm()->add_extra_options("--ntasks=4");
               }).ok());
  EXPECT_FALSE(
      check([](v1::JobSpec* spec) { spec->mutable_slurm()->set_nodelist("n[1-2]"); }).ok());
  EXPECT_TRUE(check([&](v1::JobSpec* spec) {
                several(spec);
                spec->mutable_slurm()->clear_batch_script();
              }).ok());
  EXPECT_TRUE(check([&](v1::JobSpec* spec) {
                several(spec);
                spec->clear_on_cluster_loss();
              }).ok());
}

}  // namespace
}  // namespace muster::slurm
