// Several identity providers beside each other: each judges its own tokens, and no other's.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "broker/auth/oidc/verifier.h"
#include "signer.h"

namespace muster::oidc {
namespace {

using auth::Role;
using nlohmann::json;

// A provider that answers from memory with one key.
struct KeyedSite {
  KeyedSite(std::string url, const Signer& signer, PersonRules person)
      : issuer(std::move(url)),
        keys(SetOf({signer.Jwk()})),
        options{.jwt = {issuer, "muster", absl::ZeroDuration()}, .person = std::move(person)},
        provider({.issuer = issuer,
                  .exchange = [this](const HttpsRequest& request) { return Answer(request); },
                  .fetch_pause = absl::Milliseconds(1)}) {
    while (provider.keys()->empty()) {
    }
  }

  absl::StatusOr<HttpsAnswer> Answer(const HttpsRequest& request) const {
    const json discovery = {
        {"issuer", issuer}, {"jwks_uri", issuer + "/keys"}, {"token_endpoint", issuer + "/token"}};
    const bool asks_keys = request.url == issuer + "/keys";
    return HttpsAnswer{200, asks_keys ? keys : discovery.dump(), absl::Hours(24)};
  }

  const std::string issuer;
  const std::string keys;
  const VerifierOptions options;
  Provider provider;
};

class IssuersTest : public testing::Test {
 protected:
  // Both keys have the same name, as those of two instances of one product may.
  const Signer site_key_{Algorithm::kEs256, "k"};
  const Signer corp_key_{Algorithm::kEs256, "k"};
  KeyedSite site_{"https://id.site",
                  site_key_,
                  {.foreign_prefixes = {"corp:"}, .group_roles = {{"ml", Role::kSubmitter}}}};
  KeyedSite corp_{"https://id.corp",
                  corp_key_,
                  {.prefix = "corp:",
                   .foreign_prefixes = {"corp:"},
                   .user_roles = {{"root@lab.org", Role::kAdmin}},
                   .group_roles = {{"ml", Role::kViewer}}}};
  const Verifier verifier_{std::vector<Verifier::Issuer>{{&site_.options, &site_.provider},
                                                         {&corp_.options, &corp_.provider}}};

  static json Claims(const std::string& issuer, const std::string& email = "ada@lab.org") {
    return {{"iss", issuer}, {"aud", "muster"}, {"email", email}, {"groups", {"ml"}}, {"exp", 2}};
  }
  Person Ask(const Signer& signer, const json& claims) const {
    return verifier_.Recognise(signer.Token(claims), absl::FromUnixSeconds(1)).person;
  }
};

TEST_F(IssuersTest, TheSameNameAtTwoProvidersIsTwoUsersAndTheirGroupsAreTwoGroups) {
  const Person site = Ask(site_key_, Claims(site_.issuer));
  const Person corp = Ask(corp_key_, Claims(corp_.issuer));
  EXPECT_EQ(site.user, "oidc:ada@lab.org");
  EXPECT_EQ(corp.user, "oidc:corp:ada@lab.org");
  EXPECT_EQ(site.groups, std::vector<std::string>{"ml"});
  EXPECT_EQ(corp.groups, std::vector<std::string>{"corp:ml"});
  EXPECT_EQ(site.role, Role::kSubmitter);
  EXPECT_EQ(corp.role, Role::kViewer) << "each by its own rules";
}

TEST_F(IssuersTest, AKeyOfOneProviderSignsNoTokenOfAnother) {
  EXPECT_EQ(Ask(corp_key_, Claims(site_.issuer)).fault, Fault::kSignature);
  EXPECT_EQ(Ask(site_key_, Claims(corp_.issuer, "root@lab.org")).fault, Fault::kSignature);
  EXPECT_EQ(Ask(corp_key_, Claims(corp_.issuer, "root@lab.org")).role, Role::kAdmin);
  EXPECT_EQ(Ask(site_key_, Claims(site_.issuer, "root@lab.org")).role, Role::kSubmitter)
      << "a role that the other provider's users have";
}

TEST_F(IssuersTest, ATokenOfAnUnknownOrForgedIssuerIsRefused) {
  for (const std::string issuer : {"https://id.evil", "", "https://id.site/", "https://ID.site"}) {
    EXPECT_EQ(Ask(site_key_, Claims(issuer)).fault, Fault::kIssuer) << issuer;
  }
  json claims = Claims(site_.issuer);
  claims["iss"] = json::array({site_.issuer, corp_.issuer});
  EXPECT_EQ(Ask(site_key_, claims).fault, Fault::kIssuer);
  claims.erase("iss");
  EXPECT_EQ(Ask(site_key_, claims).fault, Fault::kIssuer);
  const std::string twice = R"({"iss":"https://id.site","iss":"https://id.corp","aud":"muster"})";
  EXPECT_EQ(verifier_.Recognise(site_key_.Token(site_key_.Header(), twice), absl::UnixEpoch())
                .person.fault,
            Fault::kForm);
  EXPECT_EQ(verifier_.Recognise("a.b.c", absl::UnixEpoch()).person.fault, Fault::kForm);
}

TEST_F(IssuersTest, NobodyOfTheProviderWithoutAPrefixTakesTheNameOrAGroupOfAnother) {
  EXPECT_EQ(Ask(site_key_, Claims(site_.issuer, "corp:ada@lab.org")).fault, Fault::kUser);
  json claims = Claims(site_.issuer);
  claims["groups"] = {"x", "corp:ml"};
  EXPECT_EQ(Ask(site_key_, claims).fault, Fault::kGroups);
  EXPECT_EQ(Ask(corp_key_, Claims(corp_.issuer, "corp:ada@lab.org")).user,
            "oidc:corp:corp:ada@lab.org");
}

}  // namespace
}  // namespace muster::oidc
