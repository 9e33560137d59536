#include "agents/kubernetes/api/lane_sink.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/api.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

constexpr auto kLongest = std::chrono::seconds(60);
// Many times as much as may wait.
constexpr size_t kAnswerBytes = 20 * kMaxWaitingBytes;

std::string Numbers() {
  std::string text;
  for (int i = 0; text.size() < kAnswerBytes; ++i) text += std::to_string(i) + " ";
  return text;
}

struct Taken {
  std::promise<void> begins;
  std::promise<void> goes_on;  // the first bytes are held up until then
  std::promise<absl::Status> end;
  int status = 0;
  std::string bytes;
  bool wants_more = true;
};

class SlowSink : public HttpSink {
 public:
  explicit SlowSink(Taken* taken) : taken_(*taken) {}
  void OnStatus(int status, const std::map<std::string, std::string>& /*headers*/) override {
    taken_.status = status;
  }
  bool OnBytes(std::string_view bytes) override {
    if (taken_.bytes.empty()) {
      taken_.begins.set_value();
      taken_.goes_on.get_future().wait_for(kLongest);
    }
    taken_.bytes += bytes;
    return taken_.wants_more;
  }
  void OnEnd(const absl::Status& status) override { taken_.end.set_value(status); }

 private:
  Taken& taken_;
};

class LaneSinkTest : public testing::Test {
 protected:
  LaneSinkTest() {
    Endpoint endpoint;
    endpoint.server = server_.url();
    api_ = std::make_unique<Api>(endpoint, &host_);
  }
  void Start() {
    ASSERT_TRUE(
        api_->Stream("/log", absl::InfiniteDuration(), std::make_unique<SlowSink>(&taken_), &lane_)
            .ok());
    ASSERT_EQ(taken_.begins.get_future().wait_for(kLongest), std::future_status::ready);
  }
  absl::Status End() {
    std::future<absl::Status> end = taken_.end.get_future();
    if (end.wait_for(kLongest) != std::future_status::ready) return absl::UnknownError("no end");
    return end.get();
  }

  const std::string numbers_ = Numbers();
  ScriptedServer server_{[this](const ScriptedRequest& request) -> ScriptedReply {
    return {.body = request.target == "/log" ? numbers_ : "{}"};
  }};
  hosts::LocalHost host_;
  Taken taken_;
  agents::WorkerLane lane_{1};
  std::unique_ptr<Api> api_;
};

TEST_F(LaneSinkTest, OneThatIsSlowHoldsUpNoOtherCallAndMissesNothing) {
  Start();
  EXPECT_TRUE(api_->Call({.path = "/other", .timeout = absl::Seconds(60)}).ok());
  taken_.goes_on.set_value();
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(taken_.status, 200);
  EXPECT_TRUE(taken_.bytes == numbers_) << taken_.bytes.size() << " of " << numbers_.size();
}

TEST_F(LaneSinkTest, WhatIsNotTakenIsNotFetched) {
  Taken& taken = taken_;
  HttpLoop loop;
  LaneSink sink(std::make_unique<SlowSink>(&taken), &lane_, &loop);
  sink.OnStart(1);
  const std::string chunk(kMaxWaitingBytes / 4, 'x');
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(sink.MayTake());
    EXPECT_TRUE(sink.OnBytes(chunk));
  }
  EXPECT_FALSE(sink.MayTake());
  taken.goes_on.set_value();
  sink.OnEnd(absl::OkStatus());
  EXPECT_TRUE(End().ok());
  EXPECT_TRUE(sink.MayTake());
}

TEST_F(LaneSinkTest, OneThatWantsNoMoreEndsItsCall) {
  taken_.wants_more = false;
  Start();
  taken_.goes_on.set_value();
  EXPECT_TRUE(absl::IsCancelled(End()));
  EXPECT_LT(taken_.bytes.size(), numbers_.size());
}

}  // namespace
}  // namespace muster::kubernetes
