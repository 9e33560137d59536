// Jobs that need something that agents of older releases cannot do.
#include "broker/core/fit.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FitAbilitiesTest : public ::testing::Test {
 protected:
  FitAbilitiesTest() {
    cluster_.name = "here";
    cluster_.kind = v1::CLUSTER_KIND_SLURM;
    *cluster_.inventory.add_pools() = PoolOf("cpu");
  }

  // The sentence of what the cluster lacks for the job; empty: it fits.
  std::string Lacks(const v1::JobSpec& spec) {
    const Fit fit = CheckFit(RequirementsOf(spec), cluster_, {});
    EXPECT_EQ(fit.verdict, fit.now() ? Fit::Verdict::kFits : Fit::Verdict::kWrongKind);
    return contract::SentenceOf(fit.lack);
  }

  PutCluster cluster_;
};

TEST_F(FitAbilitiesTest, AJobThatNeedsNoneFits) { EXPECT_THAT(Lacks(Spec()), IsEmpty()); }

TEST_F(FitAbilitiesTest, AJobThatBringsFilesAlongRunsOnlyWhereAnAgentFetchesThem) {
  v1::JobSpec spec = Spec();
  spec.add_uploads()->set_tree_sha256(std::string(64, 'a'));
  EXPECT_THAT(Lacks(spec), HasSubstr("takes no files"));
  EXPECT_THAT(Lacks(spec), HasSubstr("uploads"));
  cluster_.inventory.set_takes_uploads(true);
  EXPECT_THAT(Lacks(spec), IsEmpty());
}

TEST_F(FitAbilitiesTest, AJobThatTakesItsShellAlongRunsOnlyWhereAnAgentKnowsThat) {
  v1::JobSpec spec = Spec();
  spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(
      std::string(64, 'a'));
  EXPECT_THAT(Lacks(spec), HasSubstr("variables of your shell"));
  cluster_.inventory.set_takes_shell_environment(true);
  EXPECT_THAT(Lacks(spec), IsEmpty());
}

TEST_F(FitAbilitiesTest, AJobWithSecretsRunsOnlyWhereAnAgentGivesThemToRuns) {
  v1::JobSpec spec = Spec();
  spec.add_secrets()->set_name("hf");
  EXPECT_THAT(Lacks(spec), HasSubstr("gives runs no secrets"));
  cluster_.inventory.set_takes_secrets(true);
  EXPECT_THAT(Lacks(spec), IsEmpty());
}

}  // namespace
}  // namespace muster::core
