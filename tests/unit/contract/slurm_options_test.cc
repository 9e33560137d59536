#include "contract/slurm_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "contract/validate.h"

namespace muster::contract {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Edit = std::function<void(v1::SlurmOptions*)>;

absl::Status Normalized(const Edit& edit) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  edit(spec.mutable_slurm());
  return NormalizeJobSpec(spec).status();
}

std::vector<std::string> BadFields(const absl::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = GetBadRequest(status);
  if (!bad_request) return fields;
  for (const auto& violation : bad_request->field_violations()) fields.push_back(violation.field());
  return fields;
}

TEST(SlurmOptions, ABatchScriptMayBeKilledBeforeItsTimeLimit) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("#!/bin/sh\n");
  spec.mutable_slurm()->mutable_batch_script();
  spec.mutable_slurm()->set_signal("B:KILL@60");
  EXPECT_TRUE(NormalizeJobSpec(spec).ok()) << NormalizeJobSpec(spec).status();
}

TEST(SlurmOptions, WhatSbatchTakesIsTaken) {
  const Edit good[] = {
      [](auto* s) { s->set_licenses("matlab:2,ansys@lic"); },
      [](auto* s) { s->set_dependency("afterok:123,afterany:124:125"); },
      [](auto* s) { s->set_dependency("after:12+30,aftercorr:7_3"); },
      [](auto* s) { s->set_dependency("afterok:1?afterany:2:3"); },
      [](auto* s) { s->set_mail_type("BEGIN,END,TIME_LIMIT_90"); },
      [](auto* s) { s->set_mail_user("ann@example.org"); },
      [](auto* s) { s->set_nice(kMaxNice); },
      [](auto* s) { s->set_requeue(false); },
      [](auto* s) { s->set_gres("nvme:1,fpga:xilinx:2,craynetwork"); },
      [](auto* s) { s->add_extra_options("--switches=1@60"); },
      [](auto* s) { s->add_extra_options("--contiguous"); },
      [](auto* s) { s->set_signal("B:USR1@120"); },
  };
  for (const Edit& edit : good) EXPECT_TRUE(Normalized(edit).ok()) << Normalized(edit);
}

TEST(SlurmOptions, EachBadValueIsNamedByItsField) {
  const std::pair<const char*, Edit> cases[] = {
      {"slurm.licenses", [](auto* s) { s->set_licenses("a b"); }},
      {"slurm.dependency", [](auto* s) { s->set_dependency("afterok"); }},
      {"slurm.dependency", [](auto* s) { s->set_dependency("singleton"); }},
      {"slurm.dependency", [](auto* s) { s->set_dependency("afterok:1?afterok:2,afterok:3"); }},
      {"slurm.dependency", [](auto* s) { s->set_dependency("afterok:x"); }},
      {"slurm.dependency", [](auto* s) { s->set_dependency("afterok:1,"); }},
      {"slurm.mail_type", [](auto* s) { s->set_mail_type("SOMETIMES"); }},
      {"slurm.mail_type", [](auto* s) { s->set_mail_type("END,"); }},
      {"slurm.mail_user", [](auto* s) { s->set_mail_user("-x"); }},
      {"slurm.nice", [](auto* s) { s->set_nice(kMaxNice + 1); }},
      {"slurm.signal", [](auto* s) { s->set_signal("KILL@60"); }},
      {"slurm.gres", [](auto* s) { s->set_gres("gpu:4"); }},
      {"slurm.gres", [](auto* s) { s->set_gres("nvme:1,gpu:h100:4"); }},
      {"slurm.gres", [](auto* s) { s->set_gres("a:"); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--switches"); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--switches="); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--contiguous=1"); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--hint=a b"); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--mem=1G"); }},
      {"slurm.extra_options[0]", [](auto* s) { s->add_extra_options("--time=5"); }},
      {"slurm.extra_options",
       [](auto* s) {
         for (int i = 0; i <= kMaxExtraOptions; ++i) s->add_extra_options("--contiguous");
       }},
  };
  for (const auto& [field, edit] : cases)
    EXPECT_THAT(BadFields(Normalized(edit)), ElementsAre(field));
}

TEST(SlurmOptions, OptionsThatHaveAFieldAreForBatchScripts) {
  for (const char* option : {"--gres=gpu:h100:2,nvme:1", "--mem=1G", "--cpus-per-task=2",
                             "--cpus-per-gpu=2", "--gpus-per-node=h100:1"}) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script("true");
    spec.mutable_slurm()->add_extra_options(option);
    EXPECT_THAT(BadFields(NormalizeJobSpec(spec).status()), ElementsAre("slurm.extra_options[0]"))
        << option;
    spec.mutable_slurm()->mutable_batch_script();
    EXPECT_TRUE(NormalizeJobSpec(spec).ok()) << option;
    *spec.mutable_slurm()->mutable_extra_options(0) += " --uid=0";
    EXPECT_FALSE(NormalizeJobSpec(spec).ok()) << option;
  }
}

TEST(SlurmOptions, WhatFieldsSayIsNoReasonToStayOnSlurm) {
  for (const char* option : {"--nodes=1-3", "--ntasks=1", "--cpus-per-task=4", "--mem=1G",
                             "--mem-per-cpu=100", "--gres=gpu:2", "--gpus=h100:1"})
    EXPECT_TRUE(IsInFields(option)) << option;
  for (const char* option : {"--ntasks=4", "--ntasks-per-node=2", "--mem=0", "--mem-per-gpu=0",
                             "--begin=now", "--contiguous", "--gpus-per-socket=1", "nodes=1", ""})
    EXPECT_FALSE(IsInFields(option)) << option;
}

TEST(SlurmOptions, OneOfSeveralConditionsIsNotForAnImageThatIsConvertedFirst) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("true");
  spec.mutable_slurm()->set_dependency("afterok:1?afterok:2");
  EXPECT_TRUE(NormalizeJobSpec(spec).ok());
  spec.set_image("ubuntu:24.04");
  EXPECT_THAT(BadFields(NormalizeJobSpec(spec).status()), ElementsAre("slurm.dependency"));
}

TEST(SlurmOptions, OptionsThatMusterReliesOnCannotBeTakenAway) {
  for (const char* option :
       {"--job-name=x", "--output=x", "--export=NONE", "--wrap=x", "--array=1-9",
        "--open-mode=truncate", "--uid=0", "--dependency=afterany:1", "--parsable", "--test-only",
        "-N2", "switches=1", "--swit=1", "", "run.sh", "--"}) {
    const absl::Status status = Normalized([&](auto* s) { s->add_extra_options(option); });
    EXPECT_THAT(BadFields(status), ElementsAre("slurm.extra_options[0]")) << option;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not taken")) << option;
  }
  const absl::Status chdir = Normalized([](auto* s) { s->add_extra_options("--chdir=/"); });
  EXPECT_THAT(std::string(chdir.message()), HasSubstr("the spec has a field for other values"));
}

}  // namespace
}  // namespace muster::contract
