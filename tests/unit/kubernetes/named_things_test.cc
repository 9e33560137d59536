#include "agents/kubernetes/cluster/named_things.h"

#include <atomic>

#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::Optional;

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
  v1::JobSpec spec_;
  ScriptedServer server_;
  hosts::LocalHost host_;
  Api api_{At(), &host_};
};

TEST_F(NamedThingsTest, OneRequestServesAllThatNameWhatIsThere) {
  NamedThings things(&api_);
  for (int launch = 0; launch < 5; ++launch)
    EXPECT_EQ(things.FindMissing(spec_, "lab"), std::nullopt);
  EXPECT_EQ(asked_, 1);
}

TEST_F(NamedThingsTest, WhatIsMissingIsToldWithSomeOfWhatIsThereAndLookedForAnew) {
  has_high_ = false;
  NamedThings things(&api_);
  EXPECT_THAT(things.FindMissing(spec_, "lab"),
              Optional(std::string(
                  "kubernetes.priority_class \"high\": there is none; it has \"class-0\", "
                  "\"class-1\", \"class-2\", \"class-3\", \"class-4\", \"class-5\", \"class-6\", "
                  "\"class-7\" and 2 more")));
  has_high_ = true;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), std::nullopt) << "it has been made";
}

TEST_F(NamedThingsTest, WhatMayNotBeSeenOrIsTooMuchCountsAsThere) {
  has_high_ = false;
  NamedThings things(&api_);
  status_ = 403;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), std::nullopt);
  status_ = 200;
  more_ = true;
  EXPECT_EQ(things.FindMissing(spec_, "lab"), std::nullopt);
}

TEST_F(NamedThingsTest, WhatNamesNothingAsksNothing) {
  NamedThings things(&api_);
  v1::JobSpec plain;
  plain.mutable_kubernetes()->add_volumes()->set_secret("key");
  EXPECT_EQ(things.FindMissing(plain, "lab"), std::nullopt);
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
