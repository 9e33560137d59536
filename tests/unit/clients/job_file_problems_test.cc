// All problems of a job file come at once, in the order of the file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cpp/jobfile.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/text.h"

namespace muster::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::string ProblemsOf(std::string_view yaml) {
  return std::string(ToStd(ParseJobFile("t.yaml", yaml).status().message()));
}

TEST(JobFileProblems, ComeInTheOrderOfTheFileWhateverTheirKind) {
  EXPECT_THAT(ProblemsOf("time: soon\n"
                         "nodes: 20000\n"
                         "priority: 5000\n"
                         "naem: a\n"
                         "resources: {cpus: four, memory: 12}\n"
                         "run: x\n"),
              MatchesRegex("t.yaml:1:7: time: [^\n]*\n"
                           "t.yaml:2:8: nodes: [^\n]*\n"
                           "t.yaml:3:11: priority: [^\n]*\n"
                           "t.yaml:4:1: naem: no such field[^\n]*\n"
                           "t.yaml:5:19: resources.cpus: [^\n]*\n"
                           "t.yaml:5:33: resources.memory: [^\n]*"));
}

TEST(JobFileProblems, AreThoseOfAllDocuments) {
  EXPECT_THAT(ProblemsOf("run: x\npriority: 5000\n---\nrun: y\nnaem: z\n---\nrun: z\n---\n{}\n"),
              MatchesRegex("t.yaml:2:11: priority: [^\n]*\n"
                           "t.yaml:5:1: naem: [^\n]*\n"
                           "t.yaml:9:1: command: [^\n]*"));
}

TEST(JobFileProblems, WhatMayComeOfAnotherProblemIsLeftOut) {
  // Without its `run` the job has no command, and that is one problem.
  EXPECT_THAT(ProblemsOf("run: [a]\n"), Not(HasSubstr("\n")));
  EXPECT_THAT(ProblemsOf("rum: x\n"), Not(HasSubstr("\n")));
}

TEST(JobFileProblems, NameTheCommaAtWhichTheReaderOfYamlWouldStandStill) {
  EXPECT_THAT(ProblemsOf(","), StartsWith("t.yaml:1:1: not valid YAML: "));
  EXPECT_THAT(ProblemsOf("run: x\n---\n, a"), StartsWith("t.yaml:3:1: not valid YAML: "));
}

TEST(JobFileProblems, AreCountedBeyondTheMostThatAreTold) {
  std::string yaml = "run: x\n";
  for (int i = 0; i < 30; ++i) yaml += fmt::format("field{}: x\n", i);
  EXPECT_THAT(ProblemsOf(yaml), StartsWith("t.yaml:2:1: field0: "));
  EXPECT_THAT(ProblemsOf(yaml), EndsWith("t.yaml:21:1: field19: no such field\n... and 10 more"));
  std::string spec = "run: x\nlabels:\n";
  for (int i = 0; i < 300; ++i) spec += fmt::format("  {}: \"a\\tb\"\n", i);
  // Too many labels is a problem of its own.
  EXPECT_THAT(ProblemsOf(spec), EndsWith(fmt::format("... and {} more", 301 - kMaxYamlProblems)));
}

}  // namespace
}  // namespace muster::client
