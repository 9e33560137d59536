#include "contract/spank_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/admission.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Admission Judged(const v1::JobSpec& spec, const v1::AdmissionFacts& facts) {
  return JudgeAdmission(*AdmissionNeedsOf(spec), facts, "lab");
}

TEST(SpankOptions, NamesThatAPluginMayHave) {
  for (const char* name : {"flavour", "x11", "no-home", "A_b-9"}) EXPECT_TRUE(IsSpankName(name));
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("_a"), std::string("a b"), std::string("a=b"),
        std::string("a.b"), std::string(kMaxSpankNameBytes + 1, 'q')}) {
    EXPECT_FALSE(IsSpankName(name)) << name;
  }
}

TEST(SpankOptions, NoneTakesTheNameOfAnOptionOfSbatchOrTheBeginningOfOne) {
  for (const char* name : {"output", "outp", "export", "chdir", "hold", "switches",
                           "container-image", "contain", "wrap", "uid", "job-name"})
    EXPECT_FALSE(IsSpankName(name)) << name;
}

TEST(SpankOptions, AnOptionIsToldFromSbatchsOwn) {
  EXPECT_EQ(SpankNameOf("--flavour=a=b"), "flavour");
  EXPECT_EQ(SpankNameOf("--flavour"), "flavour");
  for (const char* option : {"flavour", "-f", "--", "--=a", "--hint=x", "--output=x"})
    EXPECT_EQ(SpankNameOf(option), "") << option;
}

TEST(SpankOptions, AJobMayHaveThemWithAnyValueThatSbatchReadsAsOneWord) {
  const auto normalized = [](const char* option) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script("true");
    spec.mutable_slurm()->add_extra_options(option);
    return NormalizeJobSpec(spec).status();
  };
  for (const char* option : {"--flavour", "--flavour=", "--flavour=mint,rose:2"})
    EXPECT_TRUE(normalized(option).ok()) << normalized(option);
  for (const char* option : {"--flavour=a b", "--flavour=-x", "--flavour='a'", "--flavour=a\n"})
    EXPECT_THAT(std::string(normalized(option).message()), HasSubstr("is not a usable value"));
}

TEST(SpankOptions, AnOptionOfAPluginThatTheOperatorDoesNotAllowIsRefused) {
  v1::JobSpec spec;
  spec.mutable_slurm()->add_extra_options("--contiguous");
  EXPECT_FALSE(AdmissionNeedsOf(spec).has_value());
  spec.mutable_slurm()->add_extra_options("--flavour=mint");
  v1::AdmissionFacts facts;
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "an agent that tells nothing";
  facts.mutable_slurm();
  const Admission none = Judged(spec, facts);
  ASSERT_EQ(none.refusals.size(), 1u);
  EXPECT_EQ(none.refusals[0].resource(), "slurm.extra_options[1]");
  EXPECT_THAT(none.refusals[0].message(),
              HasSubstr("--flavour (slurm.extra_options[1]) is no option of sbatch's own"));
  EXPECT_THAT(none.refusals[0].message(), HasSubstr("allows none of its plug-ins"));
  facts.mutable_slurm()->add_spank_options("renice");
  EXPECT_THAT(Judged(spec, facts).refusals[0].message(), HasSubstr("allows only --renice"));
  facts.mutable_slurm()->add_spank_options("flavour");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

TEST(SpankOptions, JobsWithOtherOptionsOfPluginsAreNotAlike) {
  v1::JobSpec spec;
  spec.mutable_slurm()->add_extra_options("--flavour=mint");
  const auto bytes = [&] { return BytesOf(*RefusableOf(*AdmissionNeedsOf(spec))); };
  const std::string mint = bytes();
  spec.mutable_slurm()->set_extra_options(0, "--flavour=rose");
  EXPECT_EQ(bytes(), mint) << "its value is not judged";
  spec.mutable_slurm()->set_extra_options(0, "--renice=1");
  EXPECT_NE(bytes(), mint);
}

}  // namespace
}  // namespace muster::contract
