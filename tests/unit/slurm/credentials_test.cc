#include "agents/slurm/credentials.h"

#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "nvapi-open-sesame";

TEST(CredentialsTest, TheHostsThatHandOutTokensBelongToTheRegistry) {
  EXPECT_THAT(CredentialHosts("nvcr.io"), ElementsAre("nvcr.io", "authn.nvidia.com"));
  EXPECT_THAT(CredentialHosts("docker.io"), ElementsAre("registry-1.docker.io", "auth.docker.io"));
  EXPECT_THAT(CredentialHosts("r.test:5000"), ElementsAre("r.test"));
}

TEST(CredentialsTest, NgcHasOneUserAndNeedsNoneGiven) {
  const auto credential = CheckCredential({"nvcr.io", "", kSecret});
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->user, "$oauthtoken");
  EXPECT_THAT(CheckCredential({"nvcr.io", "ann", kSecret}).status().ToString(),
              HasSubstr("$oauthtoken"));
}

TEST(CredentialsTest, WhatNetrcOrEnrootWouldMisreadIsRefusedWithoutTheSecret) {
  const struct {
    Credential credential;
    const char* field;
  } cases[] = {
      {{"", "ci", kSecret}, "registry"},
      {{"team", "ci", kSecret}, "registry"},
      {{"r.test/team", "ci", kSecret}, "registry"},
      {{"r.test\nmachine x", "ci", kSecret}, "registry"},
      {{"r.test", "", kSecret}, "user"},
      {{"r.test", "c i", kSecret}, "user"},
      {{"r.test", "ci", ""}, "secret"},
      {{"r.test", "ci", "$(nvapi-open-sesame)"}, "secret"},
      {{"r.test", "ci", "nvapi-open-sesame\nmachine x"}, "secret"},
      {{"r.test", "ci", "nvapi-open-sesame and more"}, "secret"},
  };
  for (const auto& c : cases) {
    const absl::Status status = CheckCredential(c.credential).status();
    const auto bad = contract::GetBadRequest(status);
    ASSERT_TRUE(bad.has_value()) << c.field;
    EXPECT_EQ(bad->field_violations(0).field(), c.field);
    EXPECT_THAT(status.ToString(), Not(HasSubstr("sesame")));
    EXPECT_THAT(bad->field_violations(0).description(), Not(HasSubstr("sesame")));
  }
}

TEST(CredentialsTest, OnlyTheEntriesOfTheRegistryAreReplaced) {
  constexpr char kBefore[] =
      "# mine\n"
      "machine nvcr.io login $oauthtoken password old\n"
      "\n"
      "machine r.test\n"
      "  login ci\n"
      "  password keep\n"
      "machine authn.nvidia.com\n"
      "  login $oauthtoken\n"
      "  password old\n"
      "default login anonymous password none";
  EXPECT_EQ(WithCredential(kBefore, {"nvcr.io", "$oauthtoken", kSecret}),
            "# mine\n"
            "\n"
            "machine r.test\n"
            "  login ci\n"
            "  password keep\n"
            "default login anonymous password none\n"
            "machine nvcr.io login $oauthtoken password nvapi-open-sesame\n"
            "machine authn.nvidia.com login $oauthtoken password nvapi-open-sesame\n");
  EXPECT_EQ(WithCredential("", {"r.test:5000", "ci", kSecret}),
            "machine r.test login ci password nvapi-open-sesame\n");
}

TEST(CredentialsTest, AFileTellsItsHostsAndWhichRegistriesTheyCover) {
  CredentialsFile file;
  file.hosts = HostsWithCredentials(
      "# machine no.test login a password b\nmachine nvcr.io login $oauthtoken password s\n"
      "machine r.test\nlogin machine password s\n");
  EXPECT_THAT(file.hosts, ElementsAre("nvcr.io", "r.test"));
  EXPECT_TRUE(file.Covers("r.test:5000"));
  EXPECT_FALSE(file.Covers("nvcr.io")) << "authn.nvidia.com is missing";
}

}  // namespace
}  // namespace muster::slurm
