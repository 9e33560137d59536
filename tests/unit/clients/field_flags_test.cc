// Tests how answers name what the user typed.
#include "clients/cli/field_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "clients/cli/report.h"
#include "clients/cli/slurm/sbatch_flags.h"
#include "clients/cli/submission.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

// Names of fields that a text of ours or of a scheduler may hold.
constexpr std::string_view kWords =
    "the path \"/data/time_limit\" (nodes) has no env; set slurm.qos or placement.pool";

TEST(FieldFlagsTest, AFieldIsNamedByTheFlagThatSetsIt) {
  const std::pair<const char*, const char*> cases[] = {{"time_limit", "--time"},
                                                       {"resources.gpus[0].type", "--gres"},
                                                       {"env[\"A\"]", "--export"},
                                                       {"slurm.batch_script.output", "--output"},
                                                       {"slurm.batch_script", "the script"},
                                                       {"slurm.excluded", "slurm.excluded"},
                                                       {"time_limits", "time_limits"},
                                                       {"partition gpu", "partition gpu"}};
  for (const auto& [field, flag] : cases) EXPECT_EQ(Typed(field, SbatchFlags()), flag);
  EXPECT_EQ(Typed("time_limit", JobFlags()), "--time (time)");
  EXPECT_EQ(Typed("command.script", JobFlags()), "run");
}

TEST(FieldFlagsTest, BadFieldsOfARequestAreTheFlagsAndTheirWordsStay) {
  contract::FieldErrors errors;
  errors.Add("requests[3].spec.time_limit", kWords);
  errors.Add("request_id", "is too long");
  EXPECT_EQ(ErrorText(NamingFlags(errors.ToStatus(), SbatchFlags())),
            "muster: --time: " + std::string(kWords) + "\nmuster: request_id: is too long\n");
  EXPECT_EQ(ErrorText(NamingFlags(errors.ToStatus(), JobFlags())),
            "muster: job 4: time: " + std::string(kWords) + "\nmuster: request_id: is too long\n");
}

TEST(FieldFlagsTest, TheFieldOfAnErrorStandsBeforeItsMessageAsAFlag) {
  const absl::Status status = contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_CLUSTER",
                                              kWords, {{"field", "spec.placement.clusters"}});
  EXPECT_EQ(ErrorText(NamingFlags(status, SbatchFlags())),
            "muster: --clusters: " + std::string(kWords) + " [UNKNOWN_CLUSTER]\n");
  EXPECT_EQ(ToStd(NamingFlags(status, JobFlags()).message()), "--cluster: " + std::string(kWords));
}

TEST(FieldFlagsTest, AMessageWithoutFactsStaysAsItIs) {
  const absl::Status status = contract::Error(absl::StatusCode::kInternal, "ANY", kWords);
  EXPECT_EQ(NamingFlags(status, SbatchFlags()), status);
}

TEST(FieldFlagsTest, WhatThereIsTooLittleOfIsNamedByTheFlagsThatAskForIt) {
  v1::StateReason reason;
  const auto add = [&](const char* resource, uint64_t requested) {
    v1::Shortage* shortage = reason.add_clusters()->add_shortages();
    shortage->set_resource(resource);
    shortage->set_requested(requested);
  };
  for (const char* resource : {"memory", "cpus", "memory", "gpus:h100", "pool", "kind", "nodes",
                               "slurm.batch_script.environment"})
    add(resource, 0);
  absl::Status status =
      contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", kWords);
  contract::AttachReason(reason, &status);
  EXPECT_EQ(ToStd(NamingFlags(status, SbatchFlags()).message()),
            "--mem, --cpus-per-task, --gres, --partition, --export: " + std::string(kWords));
  EXPECT_EQ(NamingFlags(status, JobFlags()), status);
  reason.clear_clusters();
  add("nodes", 3);
  contract::AttachReason(reason, &status);
  EXPECT_EQ(ToStd(NamingFlags(status, SbatchFlags()).message()), "--nodes: " + std::string(kWords));
}

TEST(FieldFlagsTest, AWarningStandsBehindTheFlagOfItsField) {
  v1::SubmitWarning warning;
  warning.set_code(v1::SUBMIT_WARNING_CODE_WORKING_DIRECTORY);
  warning.set_message("on cluster kube: working_directory \"/nodes\" is not there");
  warning.set_remedy("Name another one.");
  warning.set_subject("working_directory");
  const std::string text =
      "on cluster kube: working_directory \"/nodes\" is not there. Name another one.";
  EXPECT_EQ(WarningText(warning, SbatchFlags()), "--chdir: " + text);
  EXPECT_EQ(WarningText(warning, JobFlags()), text);
  // A pool of that name.
  warning.set_subject("nodes");
  warning.set_code(v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
  EXPECT_EQ(WarningText(warning, SbatchFlags()), text);
}

}  // namespace
}  // namespace muster::cli
