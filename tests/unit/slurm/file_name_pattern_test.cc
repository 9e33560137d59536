#include "agents/slurm/file_name_pattern.h"

#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::slurm {
namespace {

FileNameValues Values() {
  FileNameValues values;
  values.job_id = 128;
  values.node = "n1";
  values.user = "ann";
  values.job_name = "train";
  return values;
}

TEST(ExpandFileNameTest, PatternsBecomeWhatSlurmPutsThere) {
  // Each row was seen with Slurm 22.05.
  const std::pair<const char*, const char*> cases[] = {
      {"slurm-%j.out", "slurm-128.out"},
      {"%x-%j/main.out", "train-128/main.out"},
      {"%u@%N", "ann@n1"},
      {"%A_%a", "128_4294967294"},
      {"%6j", "000128"},
      {"%2j", "128"},
      {"%99j", "0000000128"},
      {"%%j", "%j"},
      {"%q%", "%q%"},
      {"%5q", "5q"},
      {"m-%4%", "m-4%"},
      {"%J %s %t %n", "128 batch 0 0"},
      {"", ""},
      {"plain", "plain"},
      {"\\%j", "%j"},
  };
  for (const auto& [pattern, name] : cases) {
    EXPECT_EQ(ExpandFileName(pattern, Values()), name) << pattern;
  }
}

TEST(ExpandFileNameTest, ATaskOfAnArrayHasTwoNumbers) {
  FileNameValues values = Values();
  values.array_job_id = 120;
  values.array_task = 8;
  EXPECT_EQ(ExpandFileName("%A_%3a.%j", values), "120_008.128");
}

RC_GTEST_PROP(ExpandFileNameTest, ANameWithoutPatternsStaysAsItIs, ()) {
  auto name = *rc::gen::arbitrary<std::string>();
  std::erase_if(name, [](char c) { return c == '%' || c == '\\'; });
  RC_ASSERT(ExpandFileName(name, Values()) == name);
}

}  // namespace
}  // namespace muster::slurm
