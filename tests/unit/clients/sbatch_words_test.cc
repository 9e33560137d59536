#include "clients/cli/slurm/sbatch_words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace muster::cli {
namespace {

TEST(SbatchWordsTest, FieldsOfAJobFileBecomeOptions) {
  const std::pair<const char*, const char*> cases[] = {
      {"ask for at most 1h (time_limit)", "ask for at most 1h (--time)"},
      {"ask for less (resources.cpus, resources.memory, resources.gpus)",
       "ask for less (--cpus-per-task, --mem, --gres)"},
      {"has 2 nodes; ask for at most 2 (nodes)", "has 2 nodes; ask for at most 2 (--nodes)"},
      {"placement.clusters names \"lab\"", "--clusters names \"lab\""},
      {"Set a lower time_limit, or wait.", "Set a lower --time, or wait."},
      {"Set placement.pool to a pool.", "Set --partition to a pool."},
      {"slurm.excluded and my.time_limit_x stay", "slurm.excluded and my.time_limit_x stay"},
      {"the path \"/data/time_limit (nodes)\" stays",
       "the path \"/data/time_limit (nodes)\" stays"},
      {"\"a\\\" time_limit\" time_limit", "\"a\\\" time_limit\" --time"},
      {"the name of nodes and env stay", "the name of nodes and env stay"}};
  for (const auto& [text, words] : cases) EXPECT_EQ(InSbatchsWords(text), words);
}

TEST(SbatchWordsTest, WhatIsWrongWithAFieldIsSaidOfItsOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"muster: requests[3].spec.time_limit: 0 is too short\nmuster: name: is too long\n",
       "muster: --time: 0 is too short\nmuster: --job-name: is too long\n"},
      {"muster: spec.resources.gpus[0].type: \"a b\" is no type\n",
       "muster: --gres: \"a b\" is no type\n"},
      {"spec.nodes: 0", "--nodes: 0"},
      {"--time (time_limit): 0", "--time: 0"},
      {"the script (command.script): is empty", "the script: is empty"},
      {"--begin (slurm.extra_options[1]): is odd", "--begin: is odd"},
      {"nodes: 0", "--nodes: 0"}};
  for (const auto& [text, words] : cases) EXPECT_EQ(InSbatchsWords(text), words);
}

TEST(SbatchWordsTest, AnOptionIsNotNamedTwice) {
  const std::pair<const char*, const char*> cases[] = {
      {"Set slurm.account (--account) to one.", "Set --account to one."},
      {"Use another QOS (slurm.qos, --qos).", "Use another QOS (--qos)."},
      {"Correct slurm.licenses (--licenses; scontrol shows them).",
       "Correct --licenses (scontrol shows them)."},
      {"--clusters: placement.clusters names \"lab\"", "--clusters names \"lab\""},
      {"--output (slurm.batch_script.output): x", "--output: x"}};
  for (const auto& [text, words] : cases) EXPECT_EQ(InSbatchsWords(text), words);
}

TEST(SbatchWordsTest, OtherVerbsKeepTheFields) {
  Invocation call;
  call.verb = Verb::kRun;
  EXPECT_EQ(InUsersWords(call, "a lower time_limit"), "a lower time_limit");
  call.verb = Verb::kSbatch;
  EXPECT_EQ(InUsersWords(call, "a lower time_limit"), "a lower --time");
}

}  // namespace
}  // namespace muster::cli
