#include "agents/kubernetes/cluster/pull_secret.h"

#include "absl/strings/escaping.h"
#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KubernetesPullSecretTest, ACredentialIsCompletedAndWhatIsWrongWithItIsNamed) {
  const auto nvidia = CheckRegistryCredential({"nvcr.io", "", "key"});
  ASSERT_TRUE(nvidia.ok()) << nvidia.status();
  EXPECT_EQ(nvidia->user, "$oauthtoken");
  EXPECT_EQ(CheckRegistryCredential({"registry-1.docker.io", "u", "p"})->registry, "docker.io");
  const struct {
    RegistryCredential credential;
    const char* field;
  } kCases[] = {
      {{"nvcr.io", "me", "hidden"}, "user"},
      {{"not a host", "me", "hidden"}, "registry"},
      {{"", "me", "hidden"}, "registry"},
      {{"r.example.org", "", "hidden"}, "user"},
      {{"r.example.org", "a:b", "hidden"}, "user"},
      {{"r.example.org", "me", ""}, "secret"},
      {{"r.example.org", "me", "hidden\nhidden"}, "secret"},
      {{"r.example.org", "me", "hidden" + std::string(20000, 'x')}, "secret"},
  };
  for (const auto& one : kCases) {
    const absl::Status status = CheckRegistryCredential(one.credential).status();
    const auto bad = contract::GetBadRequest(status);
    ASSERT_TRUE(bad.has_value()) << one.credential.registry;
    EXPECT_EQ(bad->field_violations(0).field(), one.field);
    EXPECT_EQ(status.ToString().find("hidden"), std::string::npos);
  }
}

TEST(KubernetesPullSecretTest, ARegistryTakesThePlaceOfItselfAndOthersStay) {
  const auto first = WithRegistry("", {"nvcr.io", "$oauthtoken", "one"});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto both = WithRegistry(*first, {"docker.io", "me", "two"});
  const auto renewed = WithRegistry(*both, {"nvcr.io", "$oauthtoken", "three"});
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  const Json config = Json::parse(*renewed);
  EXPECT_EQ(config["auths"]["nvcr.io"]["password"], "three");
  EXPECT_EQ(config["auths"]["nvcr.io"]["auth"], absl::Base64Escape("$oauthtoken:three"));
  EXPECT_EQ(config["auths"]["https://index.docker.io/v1/"]["username"], "me");
  const Json secret = {{"data", {{".dockerconfigjson", absl::Base64Escape(*renewed)}}}};
  EXPECT_THAT(RegistriesOf(secret), ElementsAre("https://index.docker.io/v1/", "nvcr.io"));
}

TEST(KubernetesPullSecretTest, WhatIsNoDockerConfigIsLeftAlone) {
  for (const char* text : {"rubbish", "[]", R"({"auths": 3})"}) {
    EXPECT_EQ(WithRegistry(text, {"nvcr.io", "u", "p"}).status().code(),
              absl::StatusCode::kFailedPrecondition)
        << text;
  }
  EXPECT_THAT(RegistriesOf(Json({{"data", {{".dockerconfigjson", "%%%"}}}})), IsEmpty());
  EXPECT_THAT(RegistriesOf(Json()), IsEmpty());
}

}  // namespace
}  // namespace muster::kubernetes
