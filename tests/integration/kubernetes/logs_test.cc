// Logs of pods on a real cluster: what a program has written comes out whole, once and in order,
// whatever happens on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/logs/log_follower.h"
#include "agents/kubernetes/logs/log_spool.h"
#include "fmt/format.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Numbered lines, some of them to nowhere else; a pause now and then.
constexpr char kNumbers[] =
    "i=1; while [ $i -le 20000 ]; do echo line $i; [ $((i % 500)) = 0 ] && sleep 0.1; "
    "i=$((i+1)); done";

std::string Numbers(int last) {
  std::string text;
  for (int i = 1; i <= last; ++i) text += fmt::format("line {}\n", i);
  return text;
}

// Tells a follower of every pod of a namespace, as the backend does.
class Relay : public ObjectSink {
 public:
  void OnAll(std::vector<Json> objects) override {
    for (Json& object : objects) OnChange(std::move(object));
  }
  void OnChange(Json object) override {
    const std::lock_guard lock(mutex_);
    const PodObject pod = ParsePod(object);
    pods_[pod.name.uid] = pod;
    if (follower_ != nullptr) follower_->Watch(pod, "run");
  }
  void OnDelete(Json object) override { OnChange(std::move(object)); }
  void Tell(LogFollower* follower) {
    const std::lock_guard lock(mutex_);
    follower_ = follower;
    for (const auto& [uid, pod] : pods_) {
      if (follower_ != nullptr) follower_->Watch(pod, "run");
    }
  }
  std::vector<PodObject> pods() {
    const std::lock_guard lock(mutex_);
    std::vector<PodObject> pods;
    for (const auto& [uid, pod] : pods_) pods.push_back(pod);
    return pods;
  }

 private:
  std::mutex mutex_;
  LogFollower* follower_ = nullptr;
  std::map<std::string, PodObject> pods_;
};

class KubernetesLogsTest : public ::testing::Test {
 protected:
  explicit KubernetesLogsTest(TestCluster* cluster = &SharedCluster())
      : cluster_(*cluster),
        name_space_(cluster_.MakeNamespace()),
        spool_(cluster_.directory() + "/spool-" + name_space_),
        api_(cluster_.endpoint(), &host_),
        watch_(std::make_unique<ObjectWatch>(
            ObjectWatch::Settings{.path = Path(), .selector = "", .field_selector = ""}, &api_,
            &relay_)) {
    Begin();
  }
  ~KubernetesLogsTest() override { watch_.reset(); }

  std::string Path() const { return "/api/v1/namespaces/" + name_space_ + "/pods"; }
  void Begin() {
    follower_ = std::make_unique<LogFollower>(spool_, &api_);
    relay_.Tell(follower_.get());
  }
  void End() {
    relay_.Tell(nullptr);
    follower_.reset();
  }
  // The script sees the directory /gate, in which Open makes files.
  void Run(const std::string& script, const std::string& setup = "") {
    std::filesystem::create_directories(Gate());
    Json spec = {{"restartPolicy", "Never"},
                 {"terminationGracePeriodSeconds", 1},
                 {"volumes", {{{"name", "gate"}, {"hostPath", {{"path", Gate()}}}}}},
                 {"containers",
                  {{{"name", "main"},
                    {"image", "any"},
                    {"command", {"/bin/sh", "-c", script}},
                    {"volumeMounts", {{{"name", "gate"}, {"mountPath", "/gate"}}}}}}}};
    if (!setup.empty())
      spec["initContainers"] = {
          {{"name", "setup"}, {"image", "any"}, {"command", {"/bin/sh", "-c", setup}}}};
    cluster_.MustDo("POST", Path(),
                    {{"kind", "Pod"}, {"metadata", {{"name", "pod"}}}, {"spec", spec}});
  }
  std::string Gate() const { return cluster_.directory() + "/gate-" + name_space_; }
  void Open(const std::string& name) const { std::ofstream(Gate() + "/" + name).close(); }
  // Returns whether the node has begun a new file for the pod's log.
  bool IsRotated() const {
    const std::filesystem::recursive_directory_iterator files(
        cluster_.directory(), std::filesystem::directory_options::skip_permission_denied);
    return std::any_of(begin(files), end(files), [&](const auto& file) {
      return file.path().filename().string().starts_with("0.log.") &&
             file.path().string().find("/" + name_space_ + "_pod_") != std::string::npos;
    });
  }
  void Delete() {
    cluster_.MustDo("DELETE", Path() + "/pod");
    WaitFor("the pod's deletion",
            [&] { return cluster_.Admin("GET", Path() + "/pod").status == 404; });
    is_deleted_ = true;
  }
  // All that there will be, once no pod runs any more.
  void AwaitEnd() {
    WaitFor("the pod's end", [&] {
      const std::vector<PodObject> pods = relay_.pods();
      return !pods.empty() && (pods[0].HasEnded() || is_deleted_);
    });
    WaitFor("the log's end", [&] { return follower_->IsComplete("run", relay_.pods()); });
  }
  std::string Output(const std::string& name = "rank-0.out") const {
    return ReadWhole(spool_ + "/run/" + name);
  }
  // The message of a failure does not show all bytes.
  void ExpectNumbers(const std::string& output, int last) {
    const std::string expected = Numbers(last);
    if (output == expected) return;
    const auto [a, b] =
        std::mismatch(output.begin(), output.end(), expected.begin(), expected.end());
    const size_t at = static_cast<size_t>(a - output.begin());
    ADD_FAILURE() << output.size() << " bytes instead of " << expected.size() << "; at " << at
                  << " is: " << output.substr(at < 40 ? 0 : at - 40, 120);
  }

  TestCluster& cluster_;
  const std::string name_space_;
  const std::string spool_;
  bool is_deleted_ = false;
  hosts::LocalHost host_;
  Api api_;
  Relay relay_;
  std::unique_ptr<LogFollower> follower_;
  std::unique_ptr<ObjectWatch> watch_;
};

TEST_F(KubernetesLogsTest, OutputComesWhileThePodRunsAndItsInitContainersFirst) {
  Run("trap 'exit 0' TERM; echo before; while true; do sleep 0.05; done",
      "echo setup; echo problem >&2");
  WaitFor("output of a running pod",
          [&] { return Output().ends_with("before\n") && relay_.pods()[0].phase == "Running"; });
  EXPECT_FALSE(follower_->IsComplete("run", relay_.pods()));
  EXPECT_TRUE(follower_->health().ok()) << follower_->health();
  Delete();
  AwaitEnd();
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("setup\n"));
  EXPECT_THAT(output, HasSubstr("problem\n"));
  // A line may say, if a pod is deleted, that nobody can tell whether that was all.
  EXPECT_EQ(output.substr(0, output.find("muster: ")).size(),
            std::string("setup\nproblem\nbefore\n").size());
}

TEST_F(KubernetesLogsTest, WhatAProgramWritesIsKeptByteForByte) {
  // A line of a mebibyte, bytes of no text, a time as the node writes it, and no newline at the
  // end.
  Run("head -c 1048576 /dev/zero | tr '\\0' x; echo; printf '\\377\\0\\r\\200\\n\\n'; "
      "echo '2026-11-21T14:53:20.862802024Z said'; sleep 1; printf 'no newline'");
  AwaitEnd();
  const std::string output = Output();
  const std::string tail =
      std::string("\n\xff\0\r\x80\n\n", 7) + "2026-11-21T14:53:20.862802024Z said\nno newline";
  EXPECT_EQ(output.size(), (1 << 20) + tail.size());
  EXPECT_EQ(output.find_first_not_of('x'), size_t{1} << 20);
  EXPECT_TRUE(output.ends_with(tail)) << output.substr(output.size() - tail.size());
}

TEST_F(KubernetesLogsTest, AnApiServerThatIsKilledLosesAndRepeatsNothing) {
  Run(kNumbers);
  for (const int seen : {1000, 6000, 12000}) {
    WaitFor("output", [&] { return Output().size() > Numbers(seen).size(); });
    cluster_.Kill("kube-apiserver");
    cluster_.AwaitApi();
  }
  AwaitEnd();
  ExpectNumbers(Output(), 20000);
}

TEST_F(KubernetesLogsTest, AFollowerThatIsMadeAnewGoesOn) {
  Run(kNumbers);
  for (const int seen : {1000, 5000, 9000, 13000}) {
    WaitFor("output", [&] { return Output().size() > Numbers(seen).size(); });
    End();
    Begin();
  }
  AwaitEnd();
  ExpectNumbers(Output(), 20000);
  End();
  Begin();
  AwaitEnd();
  ExpectNumbers(Output(), 20000);
}

TEST_F(KubernetesLogsTest, ThePositionOfAKilledAgentMayBeOlderThanItsOutput) {
  Run(kNumbers);
  const std::string position = spool_ + "/run/rank-0.out.position";
  WaitFor("output", [&] { return Output().size() > Numbers(1000).size(); });
  std::filesystem::copy_file(position, spool_ + "/old");
  WaitFor("output", [&] { return Output().size() > Numbers(6000).size(); });
  End();
  std::filesystem::copy_file(spool_ + "/old", position,
                             std::filesystem::copy_options::overwrite_existing);
  Begin();
  AwaitEnd();
  ExpectNumbers(Output(), 20000);
}

TEST_F(KubernetesLogsTest, APodThatIsDeletedKeepsWhatItHasWritten) {
  Run("trap 'echo asked to end; exit 3' TERM; i=1; "
      "while true; do echo line $i; i=$((i+1)); sleep 0.05; done");
  WaitFor("output", [&] { return Output().size() > Numbers(10).size(); });
  Delete();
  AwaitEnd();
  const std::string output = Output();
  EXPECT_THAT(output, StartsWith(Numbers(10)));
  EXPECT_THAT(output, HasSubstr("asked to end\n"));
}

TEST_F(KubernetesLogsTest, APodThatIsTakenAwayWhileItWritesLeavesALineThatSaysSo) {
  Run("i=1; while true; do echo line $i; i=$((i+1)); sleep 0.05; done");
  WaitFor("output", [&] { return Output().size() > Numbers(10).size(); });
  const std::string node = relay_.pods()[0].node;
  cluster_.Kill(node);
  cluster_.Admin("DELETE", Path() + "/pod?gracePeriodSeconds=0&propagationPolicy=Background");
  WaitFor("the pod's deletion",
          [&] { return cluster_.Admin("GET", Path() + "/pod").status == 404; });
  is_deleted_ = true;
  AwaitEnd();
  EXPECT_THAT(Output(), StartsWith(Numbers(10)));
  EXPECT_THAT(Output(), HasSubstr("muster: the rest of the output of main is missing: "));
  EXPECT_THAT(Output(), HasSubstr("not found\n"));
}

TEST_F(KubernetesLogsTest, WhatTheNodeHasRotatedAwayLeavesALineThatSaysSo) {
  // The lines are more than the 10 MiB after which the node begins a new file, with what it adds to
  // each.
  Run("seq -f 'line %.0f' 1000; until [ -e /gate/more ]; do sleep 0.1; done; "
      "seq -f 'line %.0f' 1001 300000; until [ -e /gate/end ]; do sleep 0.1; done; echo after");
  WaitFor("output", [&] { return Output() == Numbers(1000); });
  End();
  Open("more");
  WaitFor("the log's rotation", [&] { return IsRotated(); });
  Open("end");
  Begin();
  AwaitEnd();
  const std::string output = Output();
  EXPECT_THAT(output.substr(0, 20000), StartsWith(Numbers(1000) + kRotatedLine));
  EXPECT_TRUE(output.ends_with("after\n")) << output.size();
}

TestCluster& ClusterThatSplits() {
  TestCluster::Options options;
  options.nodes = 1;
  options.more = {"-arg", "kube-apiserver=--feature-gates=PodLogsQuerySplitStreams=true"};
  static std::unique_ptr<TestCluster> cluster = std::make_unique<TestCluster>(options);
  return *cluster;
}

class KubernetesSplitLogsTest : public KubernetesLogsTest {
 protected:
  KubernetesSplitLogsTest() : KubernetesLogsTest(&ClusterThatSplits()) {}
};

TEST_F(KubernetesSplitLogsTest, WhatIsWrittenToStderrIsApartThroughAnAgentsEnd) {
  Run("i=1; while [ $i -le 5000 ]; do echo line $i; echo line $i >&2; "
      "[ $((i % 500)) = 0 ] && sleep 0.2; i=$((i+1)); done; "
      "head -c 100000 /dev/zero | tr '\\0' x & head -c 100000 /dev/zero | tr '\\0' y >&2; wait");
  WaitFor("output", [&] { return Output().size() > Numbers(1000).size(); });
  End();
  Begin();
  AwaitEnd();
  EXPECT_EQ(Output("rank-0.out"), Numbers(5000) + std::string(100000, 'x'));
  EXPECT_EQ(Output("rank-0.err"), Numbers(5000) + std::string(100000, 'y'));
}

}  // namespace
}  // namespace muster::kubernetes
