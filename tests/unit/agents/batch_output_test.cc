#include "agents/core/batch_output.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::agents {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::JobSpec Script(const std::string& output, const std::string& error) {
  v1::JobSpec spec;
  spec.mutable_slurm()->mutable_batch_script()->set_output(output);
  spec.mutable_slurm()->mutable_batch_script()->set_error(error);
  return spec;
}

TEST(BatchOutput, OneThatNamesAFileIsWarnedThatOnlySlurmWritesIt) {
  const auto warning = WarnOfBatchOutput(Script("/data/%A_%a.out", ""));
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->result(), v1::CHECK_RESULT_WARN);
  EXPECT_EQ(warning->subject(), "--output (slurm.batch_script.output)");
  EXPECT_EQ(warning->seen(),
            "\"/data/%A_%a.out\" only Slurm writes; here the output is in muster logs ID alone");
  EXPECT_THAT(warning->remedy(), HasSubstr("--clusters"));
  const auto both = WarnOfBatchOutput(Script("a", "b"));
  ASSERT_TRUE(both.has_value());
  EXPECT_THAT(both->seen(), HasSubstr("\"a\", and what --error names, only Slurm writes"));
}

TEST(BatchOutput, ItsErrorsAreNamedIfOnlyTheyHaveAFile) {
  const auto warning = WarnOfBatchOutput(Script("slurm-%j.out", "job.err"));
  ASSERT_TRUE(warning.has_value());
  EXPECT_EQ(warning->subject(), "--error (slurm.batch_script.error)");
  EXPECT_THAT(warning->seen(), HasSubstr("\"job.err\" only Slurm writes"));
  EXPECT_THAT(warning->seen(), Not(HasSubstr("--error")));
}

TEST(BatchOutput, NobodyIsWarnedOfAFileThatNobodyNamedOrWants) {
  EXPECT_FALSE(WarnOfBatchOutput({}).has_value());
  EXPECT_FALSE(WarnOfBatchOutput(Script("slurm-%j.out", "")).has_value());
  EXPECT_FALSE(WarnOfBatchOutput(Script("slurm-%A_%a.out", "/dev/null")).has_value());
}

}  // namespace
}  // namespace muster::agents
