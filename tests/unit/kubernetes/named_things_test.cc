#include "agents/kubernetes/cluster/named_things.h"

#include <atomic>

#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamedThingsTest : public ::testing::Test {
 protected:
  NamedThingsTest() : server_([this](const ScriptedRequest&) { return Answer(); }) {
    spec_.mutable_kubernetes()->set_priority_class("high");
  }

  ScriptedReply Answer() {
    ++asked_;
    ScriptedReply reply;
    reply.status = status_;
    Json list = {{"metadata", {{"continue", more_ ? "next" : ""}}}, {"items", Json::array()}};
    for (int i = 0; i < 10; ++i)
      list["items"].push_back({{"metadata", {{"name", "class-" + std::to_string(i)}}}});
    for (const Json& item : items_) list["items"].push_back(item);
    if (has_high_) list["items"].push_back({{"metadata", {{"name", "high"}}}});
    reply.body = list.dump();
    return reply;
  }
  Endpoint At() const {
    Endpoint endpoint;
    endpoint.server = server_.url();
    return endpoint;
  }

  std::atomic<int> asked_ = 0;
  std::atomic<int> status_ = 200;
  std::atomic<bool> more_ = false;
  std::atomic<bool> has_high_ = true;
  Json items_ = Json::array();  // before the first question
  v1::JobSpec spec_;
  ScriptedServer server_;
  hosts::LocalHost host_;
  Api api_{At(), &host_};
};

TEST_F(NamedThingsTest, OneRequestServesAllThatNameWhatIsThere) {
  NamedThings things(&api_);
  for (int launch = 0; launch < 5; ++launch) EXPECT_EQ(things.FindMissing(spec_, "lab"), "");
  EXPECT_EQ(asked_, 1);
}

TEST_F(NamedThingsTest, WhatIsMissingIsToldWithSomeOfWhatIsThereAndLookedForAnew) {
  has_high_ = false;
  NamedThings things(&api_);
  EXPECT_EQ(things.FindMissing(spec_, "lab"),
            "kubernetes.priority_class \"high\": there is none; it has \"class-0\", "
            "\"class-1\", \"class-2\", \"class-3\", \"class-4\", \"class-5\", \"class-6\", "
            "\"class-7\" and 2 more");
  has_high_ = true;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), "") << "it has been made";
}

TEST_F(NamedThingsTest, AllThatIsMissingIsToldAtOnce) {
  has_high_ = false;
  spec_.mutable_kubernetes()->set_runtime_class("fast");
  spec_.mutable_kubernetes()->set_service_account("trainer");
  const std::string missing = NamedThings(&api_).FindMissing(spec_, "lab");
  for (const char* words :
       {"kubernetes.priority_class \"high\": there is none; it has",
        "; kubernetes.runtime_class \"fast\": there is none; it has",
        "; kubernetes.service_account \"trainer\": there is none in namespace lab"})
    EXPECT_THAT(missing, HasSubstr(words));
}

TEST_F(NamedThingsTest, OfAClaimWithoutAVolumeItIsToldWhetherAnythingMakesOne) {
  const auto claim = [](const char* name, const char* phase, const char* storage_class) {
    Json item = {{"metadata", {{"name", name}}}, {"status", {{"phase", phase}}}};
    if (*storage_class != 0) item["spec"]["storageClassName"] = storage_class;
    return item;
  };
  items_ = {claim("bound", "Bound", ""), claim("slow", "Pending", "nfs"),
            claim("stuck", "Pending", ""), claim("lost", "Lost", "nfs")};
  v1::JobSpec spec;
  for (const char* name : {"bound", "slow", "stuck", "lost", "nosuch"})
    spec.mutable_kubernetes()->add_volumes()->set_claim(name);
  NamedThings things(&api_);
  const std::vector<UnboundClaim> unbound = things.FindUnbound(spec, "lab");
  ASSERT_EQ(unbound.size(), 3u);
  EXPECT_EQ(unbound[0].field, "kubernetes.volumes[1].claim");
  EXPECT_EQ(unbound[0].words, "\"slow\" has no volume yet, which its storage class nfs is to make");
  EXPECT_FALSE(unbound[0].is_stuck) << "a provisioner may take long";
  EXPECT_EQ(unbound[1].words, "\"stuck\" has no volume, and no storage class that makes one");
  EXPECT_TRUE(unbound[1].is_stuck);
  EXPECT_EQ(unbound[2].words, "\"lost\": its volume is lost");
  EXPECT_TRUE(unbound[2].is_stuck);
  const int asked = asked_;
  EXPECT_EQ(things.FindUnbound(spec, "lab").size(), 3u);
  EXPECT_EQ(asked_, asked) << "one request serves all that look";
  std::vector<std::string> awaited;
  for (const NamedThings::Missing& missing : things.FindAwaited(spec, "lab"))
    awaited.push_back(missing.field + (missing.exists ? " unbound" : " missing"));
  EXPECT_THAT(awaited, ElementsAre("kubernetes.volumes[4].claim missing",
                                   "kubernetes.volumes[2].claim unbound",
                                   "kubernetes.volumes[3].claim unbound"));
  status_ = 403;
  EXPECT_TRUE(NamedThings(&api_).FindUnbound(spec, "lab").empty());
}

TEST_F(NamedThingsTest, WhatMayNotBeSeenOrIsTooMuchCountsAsThere) {
  has_high_ = false;
  NamedThings things(&api_);
  status_ = 403;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), "");
  status_ = 200;
  more_ = true;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), "");
}

TEST_F(NamedThingsTest, FactsHaveAllNamesAndLeaveOutWhatMayNotBeSeen) {
  v1::KubernetesFacts facts;
  facts.add_namespaces()->set_name("lab");
  NamedThings things(&api_);
  things.AddFacts(&facts);
  EXPECT_EQ(facts.priority_classes().names_size(), 11);
  EXPECT_EQ(facts.priority_classes().names(10), "high");
  EXPECT_EQ(facts.namespaces(0).service_accounts().names_size(), 11);
  EXPECT_EQ(facts.namespaces(0).claims().names_size(), 11);
  EXPECT_EQ(facts.namespaces(0).stuck_claims_size(), 11) << "none has a class or a volume";
  status_ = 403;
  v1::KubernetesFacts unseen;
  unseen.add_namespaces()->set_name("team");
  things.AddFacts(&unseen);
  EXPECT_FALSE(unseen.has_priority_classes());
  EXPECT_FALSE(unseen.namespaces(0).has_claims());
}

TEST_F(NamedThingsTest, WhatNamesNothingAsksNothing) {
  NamedThings things(&api_);
  v1::JobSpec plain;
  plain.mutable_kubernetes()->add_volumes()->set_secret("key");
  EXPECT_EQ(things.FindMissing(plain, "lab"), "");
  EXPECT_TRUE(things.FindAwaited(plain, "lab").empty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(NamedThingsTest, TheFieldThatNamedAVolumeIsInItsWords) {
  v1::JobSpec spec;
  spec.mutable_kubernetes()->add_volumes()->set_claim("data");
  spec.mutable_kubernetes()->add_volumes()->set_secret("key");
  spec.mutable_kubernetes()->add_volumes()->set_config_map("key");
  EXPECT_EQ(WithField("FailedMount: secret \"key\" not found", spec),
            "FailedMount: secret \"key\" not found (kubernetes.volumes[1].secret)");
  EXPECT_EQ(WithField("FailedMount: configmap \"key\" not found: gone", spec),
            "FailedMount: configmap \"key\" not found (kubernetes.volumes[2].config_map): gone");
  EXPECT_EQ(WithField("persistentvolumeclaim \"data\" not found", spec),
            "persistentvolumeclaim \"data\" not found (kubernetes.volumes[0].claim)");
  for (const char* words : {"secret \"other\" not found", "secret \"data\" not found", ""})
    EXPECT_EQ(WithField(words, spec), words);
}

}  // namespace
}  // namespace muster::kubernetes
