#include "contract/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/text.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

v1::JobSpec SpecWith(const std::string& variable, const std::string& name) {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  v1::SecretUse* use = spec.add_secrets();
  use->set_variable(variable);
  use->set_name(name);
  return spec;
}

std::string Problem(const v1::JobSpec& spec) {
  return std::string(ToStd(NormalizeJobSpec(spec).status().message()));
}

TEST(Secrets, AJobNamesThemByVariables) {
  v1::JobSpec spec = SpecWith("HF_TOKEN", "hf");
  spec.add_secrets()->CopyFrom(SpecWith("KUBECONFIG", "team.kube-1").secrets(0));
  EXPECT_TRUE(NormalizeJobSpec(spec).ok()) << Problem(spec);
}

TEST(Secrets, BadNamesAndVariablesAreNamed) {
  EXPECT_THAT(Problem(SpecWith("1A", "hf")), HasSubstr("secrets[0].variable"));
  EXPECT_THAT(Problem(SpecWith("", "hf")), HasSubstr("secrets[0].variable"));
  EXPECT_THAT(Problem(SpecWith("LD_PRELOAD", "hf")), HasSubstr("LD_*"));
  EXPECT_THAT(Problem(SpecWith("MUSTER_RUN_DIR", "hf")), HasSubstr("MUSTER_*"));
  for (const char* name : {"", ".hf", "-hf", "a/b", "a b", "h\xc3\xa9"})
    EXPECT_THAT(Problem(SpecWith("A", name)), HasSubstr("secrets[0].name")) << name;
  EXPECT_THAT(Problem(SpecWith("A", std::string(kMaxSecretNameBytes + 1, 'a'))),
              HasSubstr("secrets[0].name"));
  EXPECT_EQ(Problem(SpecWith("A", std::string(kMaxSecretNameBytes, 'a'))), "");
}

TEST(Secrets, AVariableHasOneValue) {
  v1::JobSpec twice = SpecWith("A", "hf");
  twice.add_secrets()->CopyFrom(twice.secrets(0));
  EXPECT_THAT(Problem(twice), HasSubstr("secrets[1].variable"));
  v1::JobSpec in_env = SpecWith("A", "hf");
  (*in_env.mutable_env())["A"] = "x";
  EXPECT_THAT(Problem(in_env), HasSubstr("is in env, too"));
  v1::JobSpec in_role = SpecWith("A", "hf");
  v1::Role* role = in_role.add_roles();
  role->set_name("main");
  *role->mutable_command() = in_role.command();
  in_role.clear_command();
  (*role->mutable_env())["A"] = "x";
  EXPECT_THAT(Problem(in_role), HasSubstr("is in env, too"));
}

TEST(Secrets, AJobHasABound) {
  v1::JobSpec spec = SpecWith("V0", "hf");
  for (size_t i = 1; i < kMaxJobSecrets; ++i)
    spec.add_secrets()->CopyFrom(SpecWith("V" + std::to_string(i), "hf").secrets(0));
  EXPECT_EQ(Problem(spec), "");
  spec.add_secrets()->CopyFrom(SpecWith("ONE_MORE", "hf").secrets(0));
  EXPECT_THAT(Problem(spec), HasSubstr("use at most 64"));
}

}  // namespace
}  // namespace muster::contract
