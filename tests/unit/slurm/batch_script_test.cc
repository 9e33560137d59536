// batch.sh, run by bash as Slurm would run it on one node.
#include <sched.h>
#include <signal.h>

#include <string>
#include <tuple>
#include <vector>

#include "agents/slurm/explain_end.h"
#include "agents/slurm/slurm_output.h"
#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

v1::JobSpec ProgramSpec(const std::vector<std::string>& words) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->mutable_args()->Assign(words.begin(), words.end());
  return spec;
}

TEST_F(BatchScriptTest, AnExitCodeIsNeverTakenForASignal) {
  for (const int code : {0, 1, 127, 129, 130, 137, 139, 141, 143, 192, 255}) {
    const ExitRecord end = EndOf(fmt::format("exit {}", code));
    EXPECT_EQ(end.code, code);
    EXPECT_EQ(end.signal, 0) << code;
  }
}

TEST_F(BatchScriptTest, TheRecordSaysOnWhichNodesTheRunWas) {
  EXPECT_EQ(EndOf("true").node_list, "n1");
}

TEST_F(BatchScriptTest, ATaskOfAnArrayRunsItsOwnRunAndClaimsItByItsId) {
  Prepare("echo \"$SLURM_JOB_NAME\"; env | grep SLURM_ARRAY; exit 3");
  StartAsTask("k7m2-41-1.array-0a");
  EXPECT_EQ(ReadWhole(paths_->claim()), "30_8\n");
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "k7m2-42-1\n")
      << "the program is none of an array";
  const std::optional<ExitRecord> record = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(record.has_value()) << ReadWhole(root_ + "/arrays/k7m2-41-1.array-0a.out/8");
  EXPECT_EQ(record->job_id, (JobId{30, 8}));
  EXPECT_EQ(record->code, 3);
}

TEST_F(BatchScriptTest, ATaskWhoseRunIsClaimedDoesNothing) {
  Prepare("echo ran");
  Start(17);
  StartAsTask("k7m2-41-1.array-0a");
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "ran\n");
  EXPECT_THAT(ReadWhole(root_ + "/arrays/k7m2-41-1.array-0a.out/8"),
              testing::HasSubstr("belongs to Slurm job 17; job 30_8 does nothing"));
}

TEST_F(BatchScriptTest, ASignalIsNeverTakenForAnExitCode) {
  for (const int signal : {1, 2, 3, 6, 9, 11, 13, 15, 34}) {
    const ExitRecord end = EndOf(fmt::format("kill -{} $$; sleep 60", signal));
    EXPECT_EQ(end.signal, signal);
    EXPECT_EQ(end.code, 0) << signal;
  }
}

TEST_F(BatchScriptTest, AProgramThatCannotBeStartedIsToldFromOneThatEnds) {
  constexpr auto kReadable = std::filesystem::perms(0644);
  constexpr auto kExecutable = std::filesystem::perms(0755);
  Write("readable", "#!/bin/sh\n", kReadable);
  Write("no-interpreter", "#!/no/such\n", kExecutable);
  Write("no-program", "\177ELF\1", kExecutable);
  Write("says-not-found", "#!/bin/sh\nexit 127\n", kExecutable);
  Write("without-interpreter", "exit 126\n", kExecutable);
  using Problem = ExitRecord::Problem;
  const std::tuple<const char*, Problem, int> cases[] = {
      {"/no/such", Problem::kStart, 127},
      {"no-such-program", Problem::kStart, 127},
      {"/etc/passwd", Problem::kStart, 126},
      {"/etc", Problem::kStart, 126},
      {"./readable", Problem::kStart, 126},
      {"./no-interpreter", Problem::kStart, 127},
      {"./no-program", Problem::kStart, 126},
      {"./says-not-found", Problem::kNone, 127},
      {"./without-interpreter", Problem::kNone, 126},
  };
  for (const auto& [program, problem, code] : cases) {
    const ExitRecord end = EndOf(ProgramSpec({program}));
    EXPECT_EQ(end.problem, problem) << program;
    EXPECT_EQ(end.code, code) << program;
    std::filesystem::remove(paths_->directory() + "/problem.0");
  }
}

TEST_F(BatchScriptTest, WhatKeptARunFromStartingIsForgottenWhenItStartsAgain) {
  Prepare(ProgramSpec({"./later"}));
  Start();
  Write("later", "#!/bin/sh\nexit 3\n", std::filesystem::perms(0755));
  Start(17, "SLURM_RESTART_COUNT=1");
  const auto record = ParseExitRecord(ReadWhole(paths_->exit_record()));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->problem, ExitRecord::Problem::kNone);
  EXPECT_EQ(record->code, 3);
}

TEST_F(BatchScriptTest, WhatTheAgentReadsInSlurmsOutputHasItsMarks) {
  Prepare(ProgramSpec({"false"}));
  std::ofstream(paths_->specs() + "/container") << std::string("/none/i.sqsh\0\0\0", 15);
  Start();
  EXPECT_EQ(ReadWhole(paths_->slurm_output()),
            fmt::format("{}/none/i.sqsh is not there\n", kImageMark));
  std::filesystem::remove(paths_->specs() + "/container");
  Start(17, "SLURM_RESTART_COUNT=1");
  Start(17, "SLURM_RESTART_COUNT=1");
  const std::string again(SinceLastStart(ReadWhole(paths_->slurm_output())));
  EXPECT_THAT(again, testing::StartsWith(fmt::format("{}17 restart=1\n", kStartMark)));
  EXPECT_THAT(again, testing::HasSubstr(fmt::format("\n{}job 17 has been started", kNoteMark)));
}

// Every name that batch.sh uses itself.
constexpr const char* kNamesOfTheScript[] = {
    "argv",   "code",        "container",      "continued",  "created",   "end",
    "failed", "file",        "form",           "hosts",      "i",         "line",
    "magic",  "owner",       "phase",          "pid",        "problem",   "rank",
    "record", "run_dir",     "run_key",        "said",       "signal",    "start",
    "status", "interrupted", "tasks_per_node", "terminated", "variables", "words",
};

TEST_F(BatchScriptTest, AVariableMayHaveANameThatTheScriptUses) {
  v1::JobSpec spec;
  for (const char* name : kNamesOfTheScript)
    (*spec.mutable_env())[name] = fmt::format("/of the user/{}", name);
  spec.mutable_command()->set_script("#!/bin/sh\npwd; env");
  EXPECT_TRUE(EndOf(spec).EndedWithZero());
  const std::string output = ReadWhole(paths_->standard_output(0));
  EXPECT_THAT(output, ::testing::StartsWith(paths_->work() + "\n"));
  for (const char* name : kNamesOfTheScript)
    EXPECT_THAT(output, ::testing::HasSubstr(fmt::format("\n{0}=/of the user/{0}\n", name)));
}

TEST_F(BatchScriptTest, NoVariableHidesWhyAProgramDidNotStart) {
  v1::JobSpec spec = ProgramSpec({"/no/such"});
  for (const char* name : kNamesOfTheScript) (*spec.mutable_env())[name] = "/no/such/directory";
  (*spec.mutable_env())["NODE_RANK"] = "9";
  const ExitRecord end = EndOf(spec);
  EXPECT_EQ(end.problem, ExitRecord::Problem::kStart);
  EXPECT_EQ(end.code, 127);
}

TEST_F(BatchScriptTest, AScriptGetsItsArgumentsByteForByte) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("printf '<%s>' \"$@\"");
  for (const char* word : {"a b", "", "$(id)", "-n", "'\"\n"})
    spec.mutable_command()->add_script_arguments(word);
  EXPECT_TRUE(EndOf(spec).EndedWithZero());
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "<a b><><$(id)><-n><'\"\n>");
}

TEST_F(BatchScriptTest, TheCommandIgnoresNoSignal) {
  EndOf("#!/bin/bash\nexec awk '/SigIgn/ { print $2 }' /proc/self/status");
  const uint64_t ignored = std::stoull(ReadWhole(paths_->standard_output(0)), nullptr, 16);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGCONT})
    EXPECT_EQ(ignored >> (signal - 1) & 1, 0U) << signal;
}

TEST_F(BatchScriptTest, ATermThatTheCommandSurvivesDoesNotHideItsEnd) {
  const ExitRecord end = EndOf("trap '' TERM; kill 0; /bin/true; kill 0; /bin/sleep 0.1; exit 3");
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_TRUE(end.terminated);
}

// This process and its children run on one CPU.
class OneCpu {
 public:
  OneCpu() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

// The process that waits for the command gets the CPU when nobody else wants it: it finds both the
// TERM and the command's end.
constexpr char kTermAtTheEnd[] = "chrt --idle --pid 0 $PPID; kill 0; sleep 60";

TEST_F(BatchScriptTest, AnEndAtTheMomentOfATermIsKnown) {
  const OneCpu one_cpu;
  for (const auto& [trap, code, signal] : {std::tuple("trap 'exit 3' TERM; ", 3, 0),
                                           {"trap 'exit 0' TERM; ", 0, 0},
                                           {"", 0, SIGTERM}}) {
    for (int i = 0; i < 5; ++i) {
      const ExitRecord end = EndOf(fmt::format("#!/bin/bash\n{}{}", trap, kTermAtTheEnd));
      EXPECT_TRUE(end.HasExitStatus()) << trap;
      EXPECT_EQ(end.code, code);
      EXPECT_EQ(end.signal, signal) << trap;
      EXPECT_TRUE(end.terminated);
    }
  }
}

TEST_F(BatchScriptTest, AStepsEndAtTheMomentOfATermIsKnownAndDoesNotEndTheOthers) {
  const OneCpu one_cpu;
  AddCommand("srun", fmt::format("until [ \"$1\" = /bin/bash ]; do shift; done\n"
                                 "SLURM_NODEID=0 setsid --wait \"$@\"; echo $? >>{}/told",
                                 root_));
  for (int i = 0; i < 5; ++i) {
    Prepare(fmt::format("#!/bin/bash\ntrap 'exit 124' TERM; {}", kTermAtTheEnd));
    Start(17 + i, "export SLURM_NTASKS_PER_NODE=2;");
    const auto end = ParseExitRecord(ReadWhole(paths_->exit_record()));
    ASSERT_TRUE(end.has_value()) << ReadWhole(paths_->slurm_output());
    EXPECT_EQ(end->problem, ExitRecord::Problem::kNone);
    EXPECT_EQ(end->code, 124);
    for (const char* file : {"/claim", "/failed"})
      std::filesystem::remove(paths_->directory() + file);
  }
  EXPECT_EQ(ReadWhole(root_ + "/told"), "0\n0\n0\n0\n0\n") << "what srun is told";
}

TEST_F(BatchScriptTest, ACommandThatNobodyWaitsForIsSaidToHaveAnUnknownEnd) {
  const ExitRecord end = EndOf("kill -KILL $PPID; sleep 0.1");
  EXPECT_EQ(end.problem, ExitRecord::Problem::kUnknown);
  EXPECT_FALSE(end.EndedWithZero());
}

TEST_F(BatchScriptTest, AContIsTheFirstSignOfATermAndEndsNothing) {
  const ExitRecord end = EndOf("kill -CONT 0; /bin/sleep 0.1");
  EXPECT_TRUE(end.EndedWithZero());
  EXPECT_TRUE(end.continued);
  EXPECT_FALSE(end.terminated);
}

TEST_F(BatchScriptTest, AfterARequeueOnlyAnUndoubtedZeroIsNotRunAgain) {
  for (const auto& [signal, output] :
       {std::pair("", "run\n"), {"kill -CONT 0; /bin/sleep 0.1", "run\nrun\n"}}) {
    Prepare(fmt::format("echo run; {}", signal));
    Start();
    Start(17, "SLURM_RESTART_COUNT=1");
    EXPECT_EQ(ReadWhole(paths_->standard_output(0)), output) << signal;
    std::filesystem::remove_all(paths_->directory());
    std::filesystem::remove(paths_->exit_record());
    MakeDirectories();
  }
}

TEST_F(BatchScriptTest, AJobThatCannotWriteItsClaimLeavesNone) {
  Prepare("echo never");
  Start(17, "trap '' XFSZ; ulimit -f 0;");
  EXPECT_FALSE(std::filesystem::exists(paths_->claim()));
  EXPECT_THAT(ReadWhole(paths_->slurm_output()), ::testing::HasSubstr("cannot be claimed"));
  Start(18);
  EXPECT_EQ(ReadWhole(paths_->claim()), "18\n");
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "never\n");
}

// A directory is the agent's own claim: see backend_fence.cc.
TEST_F(BatchScriptTest, AJobOfAFencedRunThatComesLateDoesNothing) {
  Prepare("echo never");
  std::filesystem::create_directory(paths_->claim());
  Start(17);
  EXPECT_FALSE(std::filesystem::exists(paths_->standard_output(0)));
  EXPECT_THAT(ReadWhole(paths_->slurm_output()), ::testing::HasSubstr("job 17 does nothing"));
}

TEST_F(BatchScriptTest, ASecondJobOfTheRunDoesNothing) {
  Prepare("echo once");
  Start(17);
  Start(18);
  EXPECT_EQ(ReadWhole(paths_->standard_output(0)), "once\n");
  EXPECT_EQ(ReadWhole(paths_->claim()), "17\n");
}

}  // namespace
}  // namespace muster::slurm
