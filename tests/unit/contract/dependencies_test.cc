#include "contract/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/text.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

v1::JobSpec SpecAfter(std::initializer_list<uint64_t> jobs) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  for (const uint64_t job : jobs) spec.add_depends_on()->set_job_id(job);
  return spec;
}

std::string DependencyProblem(const v1::JobSpec& spec) {
  return std::string(ToStd(NormalizeJobSpec(spec).status().message()));
}

std::string PlaceProblem(uint32_t request, uint32_t place) {
  v1::JobSpec spec = SpecAfter({1});
  spec.add_depends_on()->set_request(request);
  FieldErrors errors;
  CheckRequestPlaces(spec, place, &errors);
  return errors.empty() ? "" : std::string(ToStd(errors.ToStatus().message()));
}

TEST(Dependencies, NeedASuccessUnlessTheySayOtherwise) {
  v1::JobSpec spec = SpecAfter({7, 5});
  spec.mutable_depends_on(1)->set_outcome(v1::JOB_OUTCOME_ENDED);
  const auto normal = NormalizeJobSpec(spec);
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_EQ(normal->depends_on(0).outcome(), v1::JOB_OUTCOME_SUCCEEDED);
  EXPECT_EQ(normal->depends_on(1).outcome(), v1::JOB_OUTCOME_ENDED);
}

TEST(Dependencies, NameEachJobOnceByItsNumberOrByItsPlace) {
  EXPECT_THAT(DependencyProblem(SpecAfter({7, 7})),
              HasSubstr("depends_on[1].job_id: 7 is there twice"));
  EXPECT_THAT(DependencyProblem(SpecAfter({0})), HasSubstr("depends_on[0].job_id"));
  v1::JobSpec both = SpecAfter({7});
  both.mutable_depends_on(0)->set_request(1);
  EXPECT_THAT(DependencyProblem(both), HasSubstr("7 together with request 1"));
  v1::JobSpec places = SpecAfter({1});
  places.add_depends_on()->set_request(1);
  EXPECT_EQ(DependencyProblem(places), "") << "a number and a place are not compared";
  places.add_depends_on()->set_request(1);
  EXPECT_THAT(DependencyProblem(places), HasSubstr("depends_on[2].request: 1 is there twice"));
}

TEST(Dependencies, OutcomesAreThoseOfTheTable) {
  v1::JobSpec spec = SpecAfter({7});
  spec.mutable_depends_on(0)->set_outcome(static_cast<v1::JobOutcome>(9));
  EXPECT_THAT(DependencyProblem(spec), HasSubstr("depends_on[0].outcome: 9 is not an outcome"));
}

TEST(Dependencies, AreAtMostAHundred) {
  v1::JobSpec spec = SpecAfter({});
  for (uint64_t job = 1; job <= kMaxDependencies; ++job) spec.add_depends_on()->set_job_id(job);
  EXPECT_EQ(DependencyProblem(spec), "");
  spec.add_depends_on()->set_job_id(kMaxDependencies + 1);
  EXPECT_THAT(DependencyProblem(spec), HasSubstr("depends_on: 101 jobs; use at most 100"));
}

TEST(Dependencies, APlaceIsThatOfAnEarlierRequestOfTheSameCall) {
  EXPECT_EQ(PlaceProblem(/*request=*/1, /*place=*/2), "");
  EXPECT_THAT(PlaceProblem(2, 2), HasSubstr("depends_on[1].request: 2 does not come before"));
  EXPECT_THAT(PlaceProblem(9, 2),
              HasSubstr("does not come before this request, which is number 2"));
  EXPECT_THAT(PlaceProblem(1, 0), HasSubstr("submitted alone"));
}

TEST(Dependencies, AreMetByTheEndsThatTheyName) {
  const auto meets = [](v1::JobOutcome needed) {
    std::string met;
    for (const auto end : {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELED})
      met += Meets(end, needed) ? '1' : '0';
    return met;
  };
  EXPECT_EQ(meets(v1::JOB_OUTCOME_UNSPECIFIED), "100");
  EXPECT_EQ(meets(v1::JOB_OUTCOME_SUCCEEDED), "100");
  EXPECT_EQ(meets(v1::JOB_OUTCOME_FAILED), "011");
  EXPECT_EQ(meets(v1::JOB_OUTCOME_ENDED), "111");
}

TEST(Dependencies, TellTheirEndsInVariablesOfMustersOwn) {
  EXPECT_EQ(DependencyVariable(42), "MUSTER_DEPENDENCY_42");
  v1::JobSpec spec = SpecAfter({42});
  (*spec.mutable_env())[DependencyVariable(42)] = "SUCCEEDED";
  EXPECT_THAT(DependencyProblem(spec), HasSubstr("MUSTER_*")) << "nobody else sets them";
}

}  // namespace
}  // namespace muster::contract
