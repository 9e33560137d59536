// Tests ObjectWatch against a real API server, while things go wrong: nothing is lost, nothing made
// up.
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "agents/kubernetes/api/object_watch.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/relay.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::IsSupersetOf;

// Keeps the objects that the watch has told, as a store would.
class Model : public ObjectSink {
 public:
  void OnAll(std::vector<Json> objects) override {
    const std::lock_guard lock(mutex_);
    ++lists_;
    names_.clear();
    for (const Json& object : objects) Add(object);
  }
  void OnChange(Json object) override {
    const std::lock_guard lock(mutex_);
    Add(object);
  }
  void OnDelete(Json object) override {
    const std::lock_guard lock(mutex_);
    names_.erase(TextAt(object, "metadata/name"));
    deleted_.insert(TextAt(object, "metadata/name"));
  }

  std::set<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }
  // All that were ever there, and those that were told to have been deleted.
  std::set<std::string> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  std::set<std::string> deleted() const {
    const std::lock_guard lock(mutex_);
    return deleted_;
  }
  int lists() const {
    const std::lock_guard lock(mutex_);
    return lists_;
  }

 private:
  void Add(const Json& object) {
    names_.insert(TextAt(object, "metadata/name"));
    seen_.insert(TextAt(object, "metadata/name"));
  }

  mutable std::mutex mutex_;
  std::set<std::string> names_;
  std::set<std::string> seen_;
  std::set<std::string> deleted_;
  int lists_ = 0;
};

constexpr char kLabel[] = "watched";

// Objects of the label in one namespace, and a watch of them through a relay.
class Scene {
 public:
  explicit Scene(TestCluster& cluster)
      : cluster_(cluster),
        path_("/api/v1/namespaces/" + cluster.MakeNamespace() + "/configmaps"),
        relay_(cluster.endpoint().server),
        api_(Through(relay_, cluster.endpoint()), &host_),
        watch_({.path = path_, .selector = std::string(kLabel) + "=yes", .field_selector = ""},
               &api_, &model_) {
    EXPECT_TRUE(watch_.AwaitFirstList(kPatience)) << watch_.state();
  }

  // Creates the object, and returns once the server has done it; it may be gone meanwhile. A
  // creation that was done before its answer was lost counts.
  void Create(const std::string& name) {
    Insist("POST", path_, {{"metadata", {{"name", name}, {"labels", {{kLabel, "yes"}}}}}}, 409);
  }
  void Delete(const std::string& name) { Insist("DELETE", path_ + "/" + name, nullptr, 404); }

  void AwaitNames(const std::set<std::string>& names) {
    WaitFor("the watch knows what is there", [&] { return model_.names() == names; });
    EXPECT_EQ(model_.names(), names);
    WaitFor("the watch goes on", [&] { return watch_.state().ok(); });
  }

  TestCluster& cluster() { return cluster_; }
  Relay& relay() { return relay_; }
  const Model& model() const { return model_; }
  ObjectWatch& watch() { return watch_; }
  const std::string& path() const { return path_; }

 private:
  static Endpoint Through(const Relay& relay, Endpoint endpoint) {
    endpoint.server = relay.url();
    return endpoint;
  }

  void Insist(const std::string& method, const std::string& path, const Json& body, int done) {
    WaitFor(method + " " + path, [&] {
      const auto answer = cluster_.api().Call(
          {.method = method, .path = path, .body = body, .timeout = absl::Seconds(5)});
      return answer.ok() && (answer->ok() || answer->status == done);
    });
  }

  TestCluster& cluster_;
  hosts::LocalHost host_;
  Model model_;
  const std::string path_;
  Relay relay_;
  Api api_;
  ObjectWatch watch_;
};

std::set<std::string> Numbered(int from, int to) {
  std::set<std::string> names;
  for (int i = from; i < to; ++i) names.insert(fmt::format("c{}", i));
  return names;
}

TEST(KubernetesWatchTest, WhatCameWhileItWasCutIsToldByEventsWithoutAnotherList) {
  Scene scene(SharedCluster());
  scene.Create("c0");
  scene.AwaitNames(Numbered(0, 1));
  scene.relay().Cut();
  scene.Create("c1");
  scene.Create("c2");
  scene.Delete("c1");
  WaitFor("the cut is told", [&] { return !scene.watch().state().ok(); });
  EXPECT_EQ(scene.model().names(), Numbered(0, 1)) << "what is known stays so";
  scene.relay().Mend();
  scene.AwaitNames({"c0", "c2"});
  EXPECT_THAT(scene.model().deleted(), ::testing::ElementsAre("c1"));
  EXPECT_EQ(scene.model().lists(), 1);
}

TEST(KubernetesWatchTest, WhatTheServerHasCompactedMeanwhileIsListedAnew) {
  // The server asks etcd if it has no cache; etcd forgets within seconds.
  TestCluster cluster({.nodes = 0,
                       .gpus = 0,
                       .more = {"-arg", "kube-apiserver=--watch-cache=false", "-arg",
                                "kube-apiserver=--etcd-compaction-interval=1s"}});
  Scene scene(cluster);
  scene.Create("c0");
  scene.Create("c1");
  scene.AwaitNames(Numbered(0, 2));
  scene.relay().Cut();
  scene.Delete("c0");
  scene.Create("c2");
  // The version is after what the watch has missed: one that goes on just where etcd begins misses
  // nothing.
  const std::string version =
      TextAt(cluster.MustDo("GET", scene.path()), "metadata/resourceVersion");
  WaitFor("etcd has forgotten", [&] {
    // Etcd compacts what was there a turn ago, if there was something since.
    scene.Create("other");
    scene.Delete("other");
    return cluster
               .Admin("GET",
                      scene.path() + "?resourceVersionMatch=Exact&resourceVersion=" + version)
               .status == 410;
  });
  EXPECT_EQ(scene.model().names(), Numbered(0, 2));
  EXPECT_EQ(scene.model().lists(), 1);
  scene.relay().Mend();
  scene.AwaitNames({"c1", "c2"});
  EXPECT_EQ(scene.model().lists(), 2);
  scene.Create("c3");
  scene.AwaitNames({"c1", "c2", "c3"});
}

TEST(KubernetesWatchTest, TenKillsOfTheServerLoseNothingAndMakeUpNothing) {
  TestCluster cluster({.nodes = 0, .gpus = 0});
  Scene scene(cluster);
  int made = 0;
  for (int kill = 0; kill < 10; ++kill) {
    for (int i = 0; i < 5; ++i) scene.Create(fmt::format("c{}", made++));
    // The server dies in the midst of it: the events of some of these are on their way.
    cluster.Kill("kube-apiserver");
    scene.Create(fmt::format("c{}", made++));
  }
  scene.AwaitNames(Numbered(0, made));
  EXPECT_EQ(scene.model().seen(), Numbered(0, made));
  EXPECT_TRUE(scene.model().deleted().empty());
}

TEST(KubernetesWatchTest, NothingIsMadeUpWhileEtcdIsPausedForTenSeconds) {
  TestCluster cluster({.nodes = 0, .gpus = 0});
  Scene scene(cluster);
  for (int i = 0; i < 5; ++i) scene.Create(fmt::format("c{}", i));
  scene.AwaitNames(Numbered(0, 5));
  cluster.Stop("etcd");
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (absl::Now() < end) {
    EXPECT_EQ(scene.model().names(), Numbered(0, 5));
    absl::SleepFor(absl::Milliseconds(100));
  }
  cluster.Continue("etcd");
  scene.Create("c5");
  scene.AwaitNames(Numbered(0, 6));
  EXPECT_TRUE(scene.model().deleted().empty());
}

// Calls it for 0 to count - 1, on several threads.
void ForEachBesideOthers(int count, const std::function<void(int)>& call) {
  constexpr int kThreads = 16;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread; i < count; i += kThreads) call(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(KubernetesWatchTest, FiveThousandObjectsAreListedInPagesAndThenFollowed) {
  TestCluster& cluster = SharedCluster();
  const std::string path = "/api/v1/namespaces/" + cluster.MakeNamespace() + "/configmaps";
  constexpr int kObjects = 5000;
  ForEachBesideOthers(kObjects, [&](int i) {
    cluster.MustDo("POST", path, {{"metadata", {{"name", fmt::format("c{}", i)}}}});
  });
  Model model;
  hosts::LocalHost host;
  Api api(cluster.endpoint(), &host);
  ObjectWatch watch(
      {.path = path, .selector = "", .field_selector = "metadata.name!=kube-root-ca.crt"}, &api,
      &model);
  ASSERT_TRUE(watch.AwaitFirstList(kPatience)) << watch.state();
  EXPECT_EQ(model.names(), Numbered(0, kObjects));
  EXPECT_EQ(api.Calls()["GET"], 11u) << "pages of 500; the last has only what is not selected";
  // They go one by one, because a call for all of them may take longer than a call may.
  ForEachBesideOthers(kObjects,
                      [&](int i) { cluster.MustDo("DELETE", fmt::format("{}/c{}", path, i)); });
  WaitFor("all are gone", [&] { return model.names().empty(); });
  EXPECT_THAT(model.deleted(), IsSupersetOf(Numbered(0, kObjects)));
  EXPECT_EQ(model.lists(), 1);
}

}  // namespace
}  // namespace muster::kubernetes
