#include "contract/roles.h"

#include <functional>

#include "contract/errors.h"
#include "contract/validate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::ElementsAre;

// Makes a controller on the first of three nodes, workers on all.
v1::JobSpec Spec() {
  v1::JobSpec spec;
  spec.set_nodes(3);
  for (const char* name : {"controller", "worker"}) {
    v1::Role* role = spec.add_roles();
    role->set_name(name);
    role->mutable_command()->mutable_argv()->add_args(name);
  }
  spec.mutable_roles(0)->set_nodes(1);
  return spec;
}

TEST(RolesTest, RanksAreCountedRoleByRole) {
  const auto spec = NormalizeJobSpec(Spec());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->roles(1).nodes(), 3u) << "all nodes from its first one on";
  EXPECT_EQ(spec->name(), "controller");
  EXPECT_THAT(FirstRanks(*spec), ElementsAre(0, 1));
  EXPECT_EQ(RankCount(*spec), 4u);
  EXPECT_EQ(RoleOfRank(*spec, 0)->name(), "controller");
  EXPECT_EQ(RoleOfRank(*spec, 1)->name(), "worker");
  EXPECT_EQ(RoleOfRank(*spec, 3)->name(), "worker");
  EXPECT_EQ(RoleOfRank(*spec, 4), nullptr);
}

TEST(RolesTest, WithoutRolesARankIsANodeAndABatchScriptHasOne) {
  v1::JobSpec spec;
  EXPECT_EQ(RankCount(spec), 1u);
  spec.set_nodes(4);
  EXPECT_EQ(RankCount(spec), 4u);
  EXPECT_EQ(RoleOfRank(spec, 0), nullptr);
  spec.mutable_slurm()->mutable_batch_script();
  EXPECT_EQ(RankCount(spec), 1u);
  spec.set_setup("true");
  EXPECT_EQ(RankCount(spec), 4u) << "a setup runs on each node";
}

struct BadCase {
  const char* field;
  std::function<void(v1::JobSpec*)> edit;
};

TEST(RolesTest, WhatIsWrongIsNamed) {
  const std::vector<BadCase> cases = {
      {"command", [](auto* s) { s->mutable_command()->set_script("true"); }},
      {"roles[0].name", [](auto* s) { s->mutable_roles(0)->set_name(""); }},
      {"roles[0].name", [](auto* s) { s->mutable_roles(0)->set_name("A"); }},
      {"roles[0].name", [](auto* s) { s->mutable_roles(0)->set_name(std::string(64, 'a')); }},
      {"roles[1].name", [](auto* s) { s->mutable_roles(1)->set_name("controller"); }},
      {"roles[1].command", [](auto* s) { s->mutable_roles(1)->clear_command(); }},
      {"roles[1].env[\"LD_PRELOAD\"]",
       [](auto* s) { (*s->mutable_roles(1)->mutable_env())["LD_PRELOAD"] = "x"; }},
      {"roles[1].first_node", [](auto* s) { s->mutable_roles(1)->set_first_node(3); }},
      {"roles[1].nodes",
       [](auto* s) {
         s->mutable_roles(1)->set_first_node(1);
         s->mutable_roles(1)->set_nodes(3);
       }},
      {"roles",
       [](auto* s) {
         while (s->roles_size() <= kMaxRoles) s->add_roles();
       }},
      {"slurm.tasks_per_node", [](auto* s) { s->mutable_slurm()->set_tasks_per_node(2); }},
      {"slurm.batch_script", [](auto* s) { s->mutable_slurm()->mutable_batch_script(); }},
  };
  for (const BadCase& bad : cases) {
    v1::JobSpec spec = Spec();
    bad.edit(&spec);
    const auto request = GetBadRequest(NormalizeJobSpec(spec).status());
    ASSERT_TRUE(request.has_value()) << bad.field;
    EXPECT_EQ(request->field_violations(0).field(), bad.field) << request->DebugString();
  }
}

TEST(SlurmProgramTest, WhatIsWrongIsNamed) {
  const auto timeout = [](int64_t seconds) {
    return [=](v1::JobSpec* s) { s->mutable_slurm()->mutable_timeout()->set_seconds(seconds); };
  };
  const std::vector<BadCase> cases = {
      {"slurm.timeout", timeout(0)},
      {"slurm.timeout", timeout(3600)},
      {"slurm.timeout", timeout(366 * int64_t{86400})},
      {"slurm.batch_script",
       [](auto* s) {
         s->mutable_slurm()->mutable_batch_script();
         s->mutable_command()->mutable_argv()->add_args("true");
       }},
      {"slurm.batch_script.output",
       [](auto* s) { s->mutable_slurm()->mutable_batch_script()->set_output("a\nb"); }},
  };
  for (const BadCase& bad : cases) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script("true");
    spec.mutable_time_limit()->set_seconds(3600);
    EXPECT_TRUE(NormalizeJobSpec(spec).ok());
    bad.edit(&spec);
    const auto request = GetBadRequest(NormalizeJobSpec(spec).status());
    ASSERT_TRUE(request.has_value()) << bad.field;
    EXPECT_EQ(request->field_violations(0).field(), bad.field) << request->DebugString();
  }
}

}  // namespace
}  // namespace muster::contract
