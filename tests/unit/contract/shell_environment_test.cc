#include "contract/shell_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/validate.h"
#include "rapidcheck/gtest.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

v1::JobSpec Script() {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  v1::ShellEnvironment& shell =
      *spec.mutable_slurm()->mutable_batch_script()->mutable_environment();
  shell.set_file_sha256(std::string(64, 'a'));
  return spec;
}

std::string RefusalOf(const v1::JobSpec& spec) {
  return std::string(NormalizeJobSpec(spec).status().message());
}

TEST(ShellEnvironmentTest, AFileHasEachVariableAsItIs) {
  const ShellVariables variables = {
      {"A", ""}, {"B", "x=y\n'z' \xff"}, {"BASH_FUNC_f%%", "() {  echo 1\n}"}};
  const std::string text = FormatShellFile(variables);
  EXPECT_EQ(text, "A=\0B=x=y\n'z' \xff\0BASH_FUNC_f%%=() {  echo 1\n}\0"s);
  const auto read = ParseShellFile(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, variables);
  EXPECT_TRUE(ParseShellFile("")->empty());
}

TEST(ShellEnvironmentTest, ADamagedFileIsRefused) {
  for (const std::string& text : {"A=1"s, "A=1\0B"s, "A\0"s, "=1\0"s, "A=1\0\0"s})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseShellFile(text).status())) << text;
  EXPECT_TRUE(ParseShellFile("A=" + std::string(kMaxShellBytes - 3, 'x') + "\0"s).ok());
  EXPECT_THAT(
      std::string(
          ParseShellFile("A=" + std::string(kMaxShellBytes, 'x') + "\0"s).status().message()),
      HasSubstr("262144 are the most"));
}

RC_GTEST_PROP(ShellEnvironmentTest, AnyTextIsReadOrRefused, (const std::string& text)) {
  const auto read = ParseShellFile(text);
  if (read.ok()) RC_ASSERT(ParseShellFile(FormatShellFile(*read)).value() == *read);
}

TEST(ShellEnvironmentTest, AFunctionIsKnownByItsNameAndItsText) {
  EXPECT_EQ(ShellFunctionOf("BASH_FUNC_module%%", "() {  eval 1\n}"), "module");
  EXPECT_EQ(ShellFunctionOf("BASH_FUNC_a-b.c::d%%", "() { :\n}"), "a-b.c::d");
  for (const char* name : {"BASH_FUNC_%%", "BASH_FUNC_a b%%", "BASH_FUNC_$(id)%%", "BASH_FUNC_f()",
                           "BASH_FUNC_f", "BASH_FUNC_-f%%", "BASH_FUNC_1%%", "f%%"})
    EXPECT_EQ(ShellFunctionOf(name, "() { :\n}"), "") << name;
  EXPECT_EQ(ShellFunctionOf("BASH_FUNC_f%%", "echo 1"), "");
  EXPECT_TRUE(MayBeSet("A_1", "x"));
  EXPECT_TRUE(MayBeSet("BASH_FUNC_f%%", "() { :\n}"));
  EXPECT_FALSE(MayBeSet("a.b", "x"));
}

TEST(ShellEnvironmentTest, ItIsKnownWhatEachRunHasItself) {
  for (const char* name : {"HOME", "MUSTER_BROKER", "WORLD_SIZE", "HOSTNAME", "PWD", "UID"})
    EXPECT_TRUE(IsOfTheRun(name)) << name;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "LR", "HOMEPAGE", "SLURM_CPU_BIND"})
    EXPECT_FALSE(IsOfTheRun(name)) << name;
}

TEST(ShellEnvironmentTest, ItIsKnownWhatBelongsToTheSubmittersMachine) {
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "LMOD_CMD",
                           "BASH_FUNC_ml%%", "SLURM_NTASKS", "LANG", "CONDA_PREFIX", "TMPDIR"})
    EXPECT_TRUE(IsOfTheSubmitHost(name)) << name;
  for (const char* name : {"LR", "OMP_NUM_THREADS", "DATA", "PATHS", "HF_HUB_OFFLINE"})
    EXPECT_FALSE(IsOfTheSubmitHost(name)) << name;
}

TEST(ShellEnvironmentTest, ItsFieldsHaveBounds) {
  EXPECT_EQ(RefusalOf(Script()), "");
  v1::JobSpec spec = Script();
  v1::ShellEnvironment& shell =
      *spec.mutable_slurm()->mutable_batch_script()->mutable_environment();
  shell.add_named("LD_LIBRARY_PATH");
  shell.mutable_login_timeout()->set_seconds(3600);
  EXPECT_EQ(RefusalOf(spec), "");
  shell.mutable_login_timeout()->set_seconds(3601);
  EXPECT_THAT(RefusalOf(spec), HasSubstr("login_timeout"));
  shell.clear_login_timeout();
  shell.add_named("MUSTER_RUN");
  EXPECT_THAT(RefusalOf(spec), HasSubstr("environment.named[1]: \"MUSTER_RUN\""));
  shell.set_named(1, "a-b");
  EXPECT_THAT(RefusalOf(spec), HasSubstr("environment.named[1]: \"a-b\""));
  shell.clear_named();
  for (int i = 0; i <= kMaxNamedVariables; ++i) shell.add_named("A");
  EXPECT_THAT(RefusalOf(spec), HasSubstr("1001 variables; use at most 1000"));
  shell.clear_named();
  shell.set_file_sha256("abc");
  EXPECT_THAT(RefusalOf(spec), HasSubstr("\"abc\" is no SHA-256"));
}

}  // namespace
}  // namespace muster::contract
