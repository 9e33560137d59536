#include "agents/kubernetes/api/object_watch.h"

#include <condition_variable>

#include "absl/time/clock.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Far more than anything here takes on a busy machine.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Writes down what it is told: "all a,b", "change c", "delete a".
class Log : public ObjectSink {
 public:
  void OnAll(std::vector<Json> objects) override {
    std::string line = "all";
    for (const Json& object : objects) line += " " + TextAt(object, "metadata/name");
    Add(line);
  }
  void OnChange(Json object) override { Add("change " + TextAt(object, "metadata/name")); }
  void OnDelete(Json object) override { Add("delete " + TextAt(object, "metadata/name")); }

  std::vector<std::string> Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kPatience),
                      [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  void Add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

Json Object(const std::string& name, const std::string& version) {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}}};
}
std::string List(const std::vector<Json>& items, const std::string& version,
                 const std::string& next = "") {
  return Json{{"metadata", {{"resourceVersion", version}, {"continue", next}}}, {"items", items}}
      .dump();
}
std::string Event(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}
bool IsWatch(const ScriptedRequest& request) {
  return request.target.find("watch=1") != std::string::npos;
}
bool Asks(const ScriptedRequest& request, const std::string& text) {
  return request.target.find(text) != std::string::npos;
}

class ObjectWatchTest : public ::testing::Test {
 protected:
  void Start(ScriptedServer::Handler handler) {
    server_ = std::make_unique<ScriptedServer>(std::move(handler));
    Endpoint endpoint;
    endpoint.server = server_->url();
    api_ = std::make_unique<Api>(endpoint, &host_);
    watch_ = std::make_unique<ObjectWatch>(
        ObjectWatch::Settings{.path = "/jobs",
                              .selector = "a=b",
                              .field_selector = "",
                              .on_recovery = [this] { ++recoveries_; }},
        api_.get(), &log_);
  }

  hosts::LocalHost host_;
  std::atomic<int> recoveries_ = 0;
  Log log_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<ObjectWatch> watch_;
};

TEST_F(ObjectWatchTest, AllPagesAreOneListAndEachChangeFollows) {
  Start([](const ScriptedRequest& request) -> ScriptedReply {
    if (IsWatch(request)) {
      EXPECT_TRUE(Asks(request, "resourceVersion=7&")) << request.target;
      EXPECT_TRUE(Asks(request, "labelSelector=a%3Db")) << request.target;
      return {.body = Event("ADDED", Object("c", "8")) + Event("BOOKMARK", Object("", "9")) +
                      Event("DELETED", Object("a", "10")),
              .stays_open = true};
    }
    if (Asks(request, "continue=more")) return {.body = List({Object("b", "2")}, "7")};
    return {.body = List({Object("a", "1")}, "7", "more")};
  });
  EXPECT_THAT(log_.Await(3), ElementsAre("all a b", "change c", "delete a"));
  EXPECT_TRUE(watch_->AwaitFirstList(kPatience));
  EXPECT_TRUE(watch_->state().ok()) << watch_->state();
  EXPECT_GT(watch_->freshness(), agents::SteadyNow() - absl::Minutes(5));
}

TEST_F(ObjectWatchTest, AWatchThatEndsGoesOnWhereItEnded) {
  Start([](const ScriptedRequest& request) -> ScriptedReply {
    if (!IsWatch(request)) return {.body = List({}, "7")};
    if (Asks(request, "resourceVersion=7&")) return {.body = Event("ADDED", Object("a", "8"))};
    if (Asks(request, "resourceVersion=8&"))
      return {.body = Event("ADDED", Object("b", "9")), .stays_open = true};
    return {.status = 500, .body = "asked from elsewhere"};
  });
  EXPECT_THAT(log_.Await(3), ElementsAre("all", "change a", "change b"));
}

TEST_F(ObjectWatchTest, WhatTheServerHasForgottenIsListedAnewAndNothingIsMadeUp) {
  std::atomic<int> lists = 0;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (!IsWatch(request)) {
      return ++lists == 1 ? ScriptedReply{.body = List({Object("a", "1")}, "7")}
                          : ScriptedReply{.body = List({Object("b", "2")}, "90")};
    }
    if (Asks(request, "resourceVersion=7&"))
      return {.body =
                  Event("ERROR", {{"code", 410}, {"reason", "Expired"}, {"message", "too old"}})};
    return {.body = Event("ADDED", Object("c", "91")), .stays_open = true};
  });
  EXPECT_THAT(log_.Await(3), ElementsAre("all a", "all b", "change c"));
  watch_.reset();
}

TEST_F(ObjectWatchTest, AVersionThatTheServerNeverHadIsNotAskedForAgain) {
  std::atomic<int> lists = 0;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (!IsWatch(request)) {
      return ++lists == 1 ? ScriptedReply{.body = List({Object("a", "1")}, "700")}
                          : ScriptedReply{.body = List({Object("b", "2")}, "7")};
    }
    if (Asks(request, "resourceVersion=700&")) {
      return {.status = 504,
              .body = Json{{"kind", "Status"},
                           {"reason", "Timeout"},
                           {"message", "Too large resource version: 700, current: 7"}}
                          .dump()};
    }
    return {.body = Event("ADDED", Object("c", "8")), .stays_open = true};
  });
  EXPECT_THAT(log_.Await(3), ElementsAre("all a", "all b", "change c"))
      << "etcd was restored from a backup";
  watch_.reset();
}

TEST_F(ObjectWatchTest, AListWhoseRestHasBeenForgottenIsBegunAnew) {
  std::atomic<int> lists = 0;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (IsWatch(request)) return {.body = Event("BOOKMARK", Object("", "9")), .stays_open = true};
    if (Asks(request, "continue=more")) {
      return {
          .status = 410,
          .body = Json{{"kind", "Status"}, {"reason", "Expired"}, {"message", "too old"}}.dump()};
    }
    return ++lists == 1 ? ScriptedReply{.body = List({Object("a", "1")}, "7", "more")}
                        : ScriptedReply{.body = List({Object("b", "2")}, "8")};
  });
  EXPECT_THAT(log_.Await(1), ElementsAre("all b")) << "half a list is none";
  watch_.reset();
}

TEST_F(ObjectWatchTest, WhatIsNoListChangesNothing) {
  Start([](const ScriptedRequest&) -> ScriptedReply { return {.body = "[\"a page\"]"}; });
  const absl::Time end = absl::Now() + kPatience;
  while (watch_->state().code() != absl::StatusCode::kAborted && absl::Now() < end) {
    std::this_thread::yield();
  }
  EXPECT_THAT(std::string(watch_->state().message()), HasSubstr("the answer is no list"));
  EXPECT_FALSE(watch_->AwaitFirstList(absl::ZeroDuration()));
  watch_.reset();
}

TEST_F(ObjectWatchTest, AServerThatEndsEachWatchAtOnceIsNotAskedAsFastAsItCan) {
  std::atomic<int> watches = 0;
  absl::Time first;
  absl::Time third;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (!IsWatch(request)) return {.body = List({}, "7")};
    const int number = ++watches;
    if (number == 1) first = absl::Now();
    if (number != 3) return {.body = ""};
    third = absl::Now();
    return {.body = Event("ADDED", Object("a", "8")), .stays_open = true};
  });
  log_.Await(2);
  EXPECT_GT(third - first, absl::Milliseconds(400)) << "two pauses of 250 ms at least";
  watch_.reset();
}

TEST_F(ObjectWatchTest, AServerThatRefusesIsQuotedAndAskedAgain) {
  std::atomic<bool> allowed = false;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (!allowed)
      return {
          .status = 403,
          .body =
              Json{{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "jobs is forbidden"}}
                  .dump()};
    if (IsWatch(request)) return {.body = Event("BOOKMARK", Object("", "8")), .stays_open = true};
    return {.body = List({Object("a", "1")}, "7")};
  });
  const absl::Time end = absl::Now() + kPatience;
  while (watch_->state().code() != absl::StatusCode::kPermissionDenied && absl::Now() < end) {
    std::this_thread::yield();
  }
  EXPECT_THAT(std::string(watch_->state().message()), HasSubstr("jobs is forbidden"));
  EXPECT_EQ(recoveries_, 0);
  allowed = true;
  EXPECT_THAT(log_.Await(1), ElementsAre("all a"));
  while (!watch_->state().ok() && absl::Now() < end) std::this_thread::yield();
  watch_.reset();
  EXPECT_EQ(recoveries_, 1) << "whoever was told otherwise hears of it";
}

// Its own pauses would be over five minutes.
TEST_F(ObjectWatchTest, AServerThatDidNotKnowWhoAskedIsAskedAtOnceOnceItAnswersSomethingElse) {
  std::atomic<int> asked = 0;
  Start([&](const ScriptedRequest&) -> ScriptedReply {
    ++asked;
    return {.status = 401};
  });
  const absl::Time end = absl::Now() + kPatience;
  while (asked < 60 && absl::Now() < end) {
    watch_->Hurry();
    std::this_thread::yield();
  }
  EXPECT_GE(asked, 60);
  watch_.reset();
}

TEST_F(ObjectWatchTest, AServerThatAnswersAgainIsBelievedBeforeItHasNews) {
  std::atomic<bool> answers = false;
  Start([&](const ScriptedRequest& request) -> ScriptedReply {
    if (!IsWatch(request)) return {.body = List({}, "7")};
    if (!answers) return {.status = 429, .body = "come later"};
    return {.body = "", .stays_open = true};
  });
  const absl::Time end = absl::Now() + kPatience;
  while (!absl::IsResourceExhausted(watch_->state()) && absl::Now() < end)
    std::this_thread::yield();
  answers = true;
  while (!watch_->state().ok() && absl::Now() < end) std::this_thread::yield();
  EXPECT_TRUE(watch_->state().ok()) << watch_->state();
  watch_.reset();
}

TEST_F(ObjectWatchTest, AServerThatSendsAWatchAwayIsAskedNoEarlierThanItSays) {
  for (const int status : {429, 503}) {  // after the latter all is listed anew
    std::atomic<int> asked = 0;
    absl::Time refused;
    absl::Time next;
    Start([&](const ScriptedRequest& request) -> ScriptedReply {
      const int number = ++asked;
      if (number == 2) {
        refused = absl::Now();
        return {.status = status, .headers = {"Retry-After: 1"}};
      }
      if (number == 3) next = absl::Now();
      if (IsWatch(request)) return {.body = Event("ADDED", Object("a", "8")), .stays_open = true};
      return {.body = List({}, "7")};
    });
    const absl::Time end = absl::Now() + kPatience;
    while ((asked < 3 || !watch_->state().ok()) && absl::Now() < end) std::this_thread::yield();
    watch_.reset();
    server_.reset();
    EXPECT_GE(next - refused, absl::Seconds(1)) << status;
  }
}

TEST_F(ObjectWatchTest, ItEndsWhileItsStreamIsOpen) {
  Start([](const ScriptedRequest& request) -> ScriptedReply {
    if (IsWatch(request)) return {.body = Event("ADDED", Object("a", "8")), .stays_open = true};
    return {.body = List({}, "7")};
  });
  log_.Await(2);
  watch_.reset();
  EXPECT_EQ(recoveries_, 0) << "it has always answered";
}

}  // namespace
}  // namespace muster::kubernetes
