// The variables that a batch script takes along from where it was submitted, in batch.sh.
#include <sys/stat.h>

#include "contract/shell_environment.h"
#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BatchShellTest : public BatchScriptTest {
 protected:
  BatchShellTest() {
    shell_ = spec_.mutable_slurm()->mutable_batch_script()->mutable_environment();
  }

  // Returns the output of the script. `before`: variables that Slurm has set.
  std::string Run(const std::string& script, const contract::ShellVariables& variables,
                  const std::string& before = "") {
    spec_.set_name("train");
    spec_.mutable_command()->set_script(script);
    Prepare(spec_, variables);
    Start(128, "HOME=" + root_ + " USER=u LOGNAME=u SHELL=/bin/bash " + before);
    const auto record = ParseExitRecord(ReadWhole(paths_->exit_record()));
    EXPECT_TRUE(record.has_value()) << ReadWhole(paths_->slurm_output());
    std::filesystem::remove(paths_->claim());
    const std::string wrote =
        ReadWhole(paths_->standard_output(0)) + ReadWhole(paths_->standard_error(0));
    std::filesystem::remove(paths_->standard_output(0));
    std::filesystem::remove(paths_->standard_error(0));
    return wrote;
  }

  v1::JobSpec spec_;
  v1::ShellEnvironment* shell_;
};

TEST_F(BatchShellTest, TheScriptHasTheVariablesAndTheFunctions) {
  EXPECT_EQ(Run("#!/bin/bash\nmodule load x; echo \"$LR|$LD_X|$PATH\"; odd-name.2\n",
                {{"LR", "0.1 $(id) 'x'\nsecond"},
                 {"LD_X", "/opt"},
                 {"PATH", "/opt/bin:/usr/bin:/bin"},
                 {"BASH_FUNC_module%%", "() {  echo \"module: $* $LR\"\n}"},
                 {"BASH_FUNC_odd-name.2%%", "() {  echo odd\n}"}}),
            "module: load x 0.1 $(id) 'x'\nsecond\n0.1 $(id) 'x'\nsecond|/opt|/opt/bin:/usr/bin:"
            "/bin\nodd\n");
}

TEST_F(BatchShellTest, AFunctionGoesOnAsBashHasExportedIt) {
  const std::string text = "() {  local a=1;\n echo \"$a\" 'b'\n}";
  EXPECT_EQ(Run("#!/bin/bash\nenv -0 | tr '\\0' '#' | grep -o 'BASH_FUNC_f%%=[^#]*' | head -1\n",
                {{"BASH_FUNC_f%%", text}}),
            "BASH_FUNC_f%%=() {  local a=1;\n");
}

TEST_F(BatchShellTest, ATextThatIsNoFunctionRunsNothing) {
  EXPECT_EQ(Run("#!/bin/bash\necho \"there $(type -t f g)\"\n",
                {{"BASH_FUNC_f%%", "() {  broken ((\n"},
                 {"BASH_FUNC_g$(touch " + root_ + "/hit)%%", "() { :\n}"}}),
            "there \n");
  EXPECT_FALSE(std::filesystem::exists(root_ + "/hit"));
}

TEST_F(BatchShellTest, FunctionsByTheNamesOfWordsOfTheShellDoNoHarm) {
  contract::ShellVariables variables;
  for (const char* name : {"exec", "export", "eval", "unset", "shopt", "cd", "printf"})
    variables[std::string("BASH_FUNC_") + name + "%%"] = "() {  echo hit\n}";
  variables["A"] = "1";
  EXPECT_EQ(Run("#!/bin/sh\necho \"a=$A\"\n", variables), "a=1\n");
}

TEST_F(BatchShellTest, SlurmsOwnVariablesWinOverThoseOfTheShell) {
  EXPECT_EQ(Run("#!/bin/sh\necho $SLURM_JOB_ID $SLURM_CPU_BIND $SLURM_NTASKS $SLURM_JOB_NAME\n",
                {{"SLURM_JOB_ID", "99"},
                 {"SLURM_CPU_BIND", "none"},
                 {"SLURM_NTASKS", "7"},
                 {"SLURM_JOB_NAME", "other"}},
                "SLURM_NTASKS=2"),
            "128 none 2 train\n");
}

TEST_F(BatchShellTest, MustersVariablesWinUnlessTheShellsWereNamed) {
  shell_->add_named("NNODES");
  EXPECT_EQ(Run("#!/bin/sh\necho $WORLD_SIZE $NNODES $MUSTER_CLUSTER\n",
                {{"WORLD_SIZE", "9"}, {"NNODES", "9"}, {"MUSTER_CLUSTER", "x"}}),
            "1 9 lab\n");
}

TEST_F(BatchShellTest, TheDirectoryForTemporaryFilesIsMadeIfThatIsPossible) {
  const std::string wanted = root_ + "/scratch";
  const std::string script = "#!/bin/sh\necho $TMPDIR\n";
  EXPECT_EQ(Run(script, {{"TMPDIR", wanted}}, "TMPDIR=/tmp"), wanted + "\n");
  struct stat info {};
  ASSERT_EQ(stat(wanted.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(Run(script, {{"TMPDIR", wanted}}, "TMPDIR=/tmp"), wanted + "\n") << "it is there";
  EXPECT_EQ(Run(script, {{"TMPDIR", "/proc/none"}}, "TMPDIR=/tmp"), "/tmp\n");
}

TEST_F(BatchShellTest, ALoginEnvironmentComesFirstAndThenTheShells) {
  std::ofstream(root_ + "/.bash_profile")
      << "echo noise; printf 'a\\0b=c\\0'\nexport PATH=/site/bin:$PATH LR=profile EDITOR=vi\n"
         "module() { echo \"site $*\"; }; export -f module\n";
  shell_->mutable_login_timeout()->set_seconds(60);
  EXPECT_EQ(
      Run("#!/bin/bash\necho \"$LR $EDITOR ${PATH%%:*} ${b-none}\"; module x\n", {{"LR", "shell"}}),
      "shell vi /site/bin none\nsite x\n");
}

TEST_F(BatchShellTest, WithoutALoginEnvironmentTheScriptBeginsAllTheSameAndSaysSo) {
  std::ofstream(root_ + "/.bash_profile") << "exit 1\n";
  shell_->mutable_login_timeout()->set_seconds(60);
  EXPECT_EQ(Run("#!/bin/sh\necho begins $A\n", {{"A", "1"}}),
            "muster: the login environment of u could not be made within 60 s; the script begins "
            "without it\nbegins 1\n");
}

TEST_F(BatchShellTest, TheScriptAndItsFileHaveTheUmaskAndTheLimits) {
  spec_.mutable_slurm()->mutable_batch_script()->set_output("f");
  EXPECT_EQ(Run("#!/bin/bash\numask; ulimit -Sn; ulimit -Ss; env | grep -cE 'UMASK|RLIMIT'\n"
                "stat -c %a f " +
                    paths_->standard_output(0),
                {{"SLURM_UMASK", "0777"},
                 {"SLURM_RLIMIT_NOFILE", "U77"},
                 {"SLURM_RLIMIT_STACK", "U4194304"}}),
            "0777\n77\n4096\n0\n0\n644\n")
      << "the log is not the user's";
}

TEST_F(BatchShellTest, ALimitThatCannotBeSetIsToldAndTheScriptBegins) {
  EXPECT_EQ(Run("#!/bin/sh\necho begins\n",
                {{"SLURM_UMASK", "0022"}, {"SLURM_RLIMIT_NOFILE", "U2000"}}, "; ulimit -n 500; "),
            "muster: Can't propagate RLIMIT_NOFILE of 2000 from submit host\nbegins\n");
}

TEST_F(BatchShellTest, NothingOfBatchShReachesTheScript) {
  const std::string wrote = Run("#!/bin/bash\nenv\n", {{"A", "1"}});
  EXPECT_THAT(wrote, HasSubstr("\nA=1\n"));
  for (const char* name : {"OLDPWD=", "functions=", "variables=", "run_dir="})
    EXPECT_THAT(wrote, Not(HasSubstr(std::string("\n") + name))) << name;
}

}  // namespace
}  // namespace muster::slurm
