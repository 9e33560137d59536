#include "broker/auth/oidc/person.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::oidc {
namespace {

using auth::Role;
using nlohmann::json;
using testing::ElementsAre;

const PersonRules kRules{.role = Role::kNone,
                         .user_roles = {{"root@example.org", Role::kAdmin}},
                         .group_roles = {{"ml", Role::kSubmitter}, {"ops", Role::kOperator}}};

json Claims(const json& groups = nullptr) {
  json claims = {{"email", "ada@example.org"}, {"preferred_username", "ada"}};
  if (!groups.is_null()) claims["groups"] = groups;
  return claims;
}

TEST(Person, HasANameThatNoUnixUserCanHave) {
  EXPECT_EQ(PersonOf(Claims(), kRules).user, "oidc:ada@example.org");
  PersonRules rules = kRules;
  rules.username_claim = "preferred_username";
  EXPECT_EQ(PersonOf(Claims(), rules).user, "oidc:ada");
}

TEST(Person, WithoutAGoodNameIsNobody) {
  for (const json& name : {json(""), json(1), json(nullptr), json("a b"), json("a\nb"),
                           json("a\x7f"), json(std::string(252, 'a')), json({"ada"})}) {
    json claims = Claims();
    claims["email"] = name;
    EXPECT_EQ(PersonOf(claims, kRules).fault, Fault::kUser) << name;
  }
  EXPECT_EQ(PersonOf(json::object(), kRules).fault, Fault::kUser);
}

TEST(Person, AnAddressThatIsNotConfirmedIsNoName) {
  json claims = Claims();
  for (const json& verified : {json(false), json("true"), json(1), json(nullptr)}) {
    claims["email_verified"] = verified;
    EXPECT_EQ(PersonOf(claims, kRules).fault, Fault::kUser) << verified;
  }
  claims["email_verified"] = true;
  EXPECT_EQ(PersonOf(claims, kRules).fault, Fault::kNone);
}

TEST(Person, HasTheGreatestRoleThatFits) {
  EXPECT_EQ(PersonOf(Claims(), kRules).role, Role::kNone);
  EXPECT_EQ(PersonOf(Claims({"x", "ml"}), kRules).role, Role::kSubmitter);
  EXPECT_EQ(PersonOf(Claims({"ops", "ml"}), kRules).role, Role::kOperator);
  EXPECT_EQ(PersonOf(Claims("ops"), kRules).role, Role::kOperator);
  json root = Claims({"ml"});
  root["email"] = "root@example.org";
  EXPECT_EQ(PersonOf(root, kRules).role, Role::kAdmin);
  PersonRules open = kRules;
  open.role = Role::kViewer;
  EXPECT_EQ(PersonOf(Claims(), open).role, Role::kViewer);
}

TEST(Person, HasTheGroupsOfTheClaim) {
  EXPECT_THAT(PersonOf(Claims({"x", "ml"}), kRules).groups, ElementsAre("x", "ml"));
  PersonRules none = kRules;
  none.groups_claim = "";
  EXPECT_THAT(PersonOf(Claims({"ops"}), none).groups, ElementsAre());
  EXPECT_EQ(PersonOf(Claims({"ops"}), none).role, Role::kNone);
  for (const json& groups :
       {json(1), json({1}), json({""}), json({"a\n"}), json({{"ops", 1}}),
        json(std::vector<std::string>(257, "g")), json({std::string(257, 'g')})})
    EXPECT_EQ(PersonOf(Claims(groups), kRules).fault, Fault::kGroups) << groups;
}

}  // namespace
}  // namespace muster::oidc
