#include "contract/slurm_container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "contract/validate.h"

namespace muster::contract {
namespace {

using testing::ElementsAre;

using Edit = std::function<void(v1::SlurmContainer*)>;

absl::Status Normalized(const std::string& image, const Edit& edit) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  spec.set_image(image);
  edit(spec.mutable_slurm()->mutable_container());
  return NormalizeJobSpec(spec).status();
}

std::vector<std::string> BadFields(const absl::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = GetBadRequest(status);
  if (!bad_request) return fields;
  for (const auto& violation : bad_request->field_violations()) fields.push_back(violation.field());
  return fields;
}

TEST(SlurmContainer, WhatPyxisTakesIsTaken) {
  const Edit good[] = {
      [](auto*) {},
      [](auto* c) { c->set_name("py-torch_2.4"); },
      [](auto* c) { c->add_env("CUDA_VISIBLE_DEVICES"); },
      [](auto* c) { c->set_mount_home(false); },
      [](auto* c) { c->set_writable(true); },
      [](auto* c) { c->set_remap_root(true); },
      [](auto* c) { c->set_entrypoint(true); },
      [](auto* c) { c->set_refresh_image(true); },
  };
  for (const Edit& edit : good) {
    const absl::Status status = Normalized("r.test/a/b:1", edit);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(SlurmContainer, OptionsOfABatchScriptsContainerNeedBoth) {
  for (const char* option :
       {"--container-save=/a.sqsh", "--container-workdir=/a", "--container-readonly"}) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script("#!/bin/sh\n");
    spec.set_image("r.test/a/b:1");
    spec.mutable_slurm()->add_extra_options(option);
    EXPECT_THAT(BadFields(NormalizeJobSpec(spec).status()), ElementsAre("slurm.extra_options[0]"));
    spec.mutable_slurm()->mutable_batch_script();
    EXPECT_TRUE(NormalizeJobSpec(spec).ok()) << NormalizeJobSpec(spec).status();
    spec.clear_image();
    EXPECT_THAT(BadFields(NormalizeJobSpec(spec).status()), ElementsAre("slurm.extra_options[0]"));
  }
}

TEST(SlurmContainer, EachBadValueIsNamedByItsField) {
  const std::pair<const char*, Edit> cases[] = {
      {"slurm.container.name", [](auto* c) { c->set_name("a:exec"); }},
      {"slurm.container.name", [](auto* c) { c->set_name("a/b"); }},
      {"slurm.container.name", [](auto* c) { c->set_name(std::string(64, 'a')); }},
      {"slurm.container.env[0]", [](auto* c) { c->add_env("A=b"); }},
      {"slurm.container.env[0]", [](auto* c) { c->add_env("A,B"); }},
      {"slurm.container.env[0]", [](auto* c) { c->add_env(""); }},
      {"slurm.container.env",
       [](auto* c) {
         for (int i = 0; i <= kMaxContainerEnv; ++i) c->add_env("A");
       }},
  };
  for (const auto& [field, edit] : cases)
    EXPECT_THAT(BadFields(Normalized("r.test/a/b:1", edit)), ElementsAre(field));
}

TEST(SlurmContainer, WithoutAnImageThereIsNothingToSay) {
  const absl::Status status = Normalized("", [](auto* c) { c->set_writable(true); });
  EXPECT_THAT(BadFields(status), ElementsAre("slurm.container"));
}

TEST(SlurmContainer, AFileIsNotConvertedAnew) {
  const absl::Status status = Normalized("/x.sqsh", [](auto* c) { c->set_refresh_image(true); });
  EXPECT_THAT(BadFields(status), ElementsAre("slurm.container.refresh_image"));
}

}  // namespace
}  // namespace muster::contract
