#include "contract/first_command.h"

#include <gtest/gtest.h>

#include <string>

#include "contract/task_script.h"

namespace muster::contract {
namespace {

TEST(FirstCommandTest, IsTheFirstWordOutsideOfComments) {
  EXPECT_EQ(FirstCommand("#!/bin/bash\n\n  # train\n\tpython train.py --x; ls"), "python");
  EXPECT_EQ(FirstCommand("python"), "python");
  EXPECT_EQ(FirstCommand("./run.sh|tee log"), "./run.sh");
}

TEST(FirstCommandTest, IsNoKeywordAndNoTest) {
  EXPECT_EQ(FirstCommand("if [ -f data ]; then python train.py; fi"), "python");
  EXPECT_EQ(FirstCommand("if [[ $A = b ]]\nthen\n  torchrun x\nfi"), "torchrun");
  EXPECT_EQ(FirstCommand("for i in 1 2; do echo $i; done"), "echo");
  EXPECT_EQ(FirstCommand("while ! nc -z host 80; do sleep 1; done"), "nc");
  EXPECT_EQ(FirstCommand("[ -d x ] || mkdir x"), "mkdir");
}

TEST(FirstCommandTest, IsNoAssignment) {
  EXPECT_EQ(FirstCommand("A=1 B=\"two\" python x"), "python");
  EXPECT_EQ(FirstCommand("A=\"one two\"\npython x"), "python");
  EXPECT_EQ(FirstCommand("A=\"one two\" B='3 4 5' python x"), "python");
  EXPECT_EQ(FirstCommand("A=(a b c)\npython x"), "python");
  EXPECT_EQ(FirstCommand("A=1 # a comment\npython x"), "python");
  EXPECT_EQ(FirstCommand("./a=b x"), "./a=b") << "a file's name";
}

TEST(FirstCommandTest, IsNoPatternOfACase) {
  EXPECT_EQ(FirstCommand("case $1 in\n  a) python x;; esac"), "python");
}

TEST(FirstCommandTest, IsNoRedirection) {
  EXPECT_EQ(FirstCommand("exec 2>&1; # train\npython x"), "python");
  EXPECT_EQ(FirstCommand("exec 2>&1; #!/usr/bin/env python3\nimport sys"), "import");
  EXPECT_EQ(FirstCommand("> out.txt date"), "date");
  EXPECT_EQ(FirstCommand("exec > out.txt\ndate"), "date");
  EXPECT_EQ(FirstCommand("ls>/dev/null"), "ls");
  EXPECT_EQ(FirstCommand("exec 2>&1; python x"), "python");
  EXPECT_EQ(FirstCommand("exec >log 2>&1 python x & ls"), "python");
  EXPECT_EQ(FirstCommand("exec python x"), "python");
  EXPECT_EQ(FirstCommand("python x 2>&1 | tee log"), "python");
}

TEST(FirstCommandTest, IsNothingOfWhatStandsBeforeATasksScript) {
  const std::string preamble(kTaskScriptPreamble);
  EXPECT_EQ(FirstCommand(preamble + "# train\npython x"), "python");
  EXPECT_EQ(FirstCommand(preamble), "");
}

TEST(FirstCommandTest, ThereMayBeNone) {
  EXPECT_EQ(FirstCommand(""), "");
  EXPECT_EQ(FirstCommand("# nothing\n"), "");
  EXPECT_EQ(FirstCommand("if [ -f x ]"), "");
}

}  // namespace
}  // namespace muster::contract
