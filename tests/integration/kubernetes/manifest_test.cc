// Tests the objects of a run, which a real API server takes and runs.
#include "agents/kubernetes/manifest/manifest.h"

#include <filesystem>
#include <fstream>
#include <future>
#include <utility>

#include "agents/kubernetes/objects/objects.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;

// Collects all that a call brings, because logs are no JSON.
class Collector : public HttpSink {
 public:
  static std::pair<std::unique_ptr<HttpSink>, std::future<std::string>> Make() {
    auto sink = std::make_unique<Collector>();
    std::future<std::string> text = sink->promise_.get_future();
    return {std::move(sink), std::move(text)};
  }

  void OnStatus(int /*status*/, const std::map<std::string, std::string>& /*headers*/) override {}
  bool OnBytes(std::string_view bytes) override {
    text_ += bytes;
    return true;
  }
  void OnEnd(const absl::Status& /*status*/) override { promise_.set_value(text_); }

 private:
  std::string text_;
  std::promise<std::string> promise_;
};

class ManifestOnClusterTest : public testing::Test {
 protected:
  ManifestOnClusterTest() {
    char name[] = "/tmp/muster-manifest-XXXXXX";
    directory_ = mkdtemp(name);
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    config_.cluster = "lab";
    config_.storage_roots["data"] = {.claim = "", .host_path = directory_, .mount = "/lustre"};
    assignment_.set_run_key("k7m2-42-1");
    assignment_.set_job_id(42);
    assignment_.set_run(1);
    assignment_.set_user("ann@lab");
    v1::JobSpec& spec = *assignment_.mutable_spec();
    spec.set_name("a name, with: anything");
    spec.set_project("vision");
    spec.set_nodes(1);
    spec.set_image("debian:12");
    // A pod's own is a second at least.
    spec.mutable_kubernetes()->mutable_termination_grace()->set_seconds(1);
  }
  ~ManifestOnClusterTest() override { std::filesystem::remove_all(directory_); }

  v1::JobSpec& spec() { return *assignment_.mutable_spec(); }
  std::string Jobs() const { return "/apis/batch/v1/namespaces/" + name_space_ + "/jobs"; }
  std::string Core(const std::string& what) const {
    return "/api/v1/namespaces/" + name_space_ + "/" + what;
  }

  // Launches the run as the backend does.
  void Launch() {
    const absl::StatusOr<RunObjects> objects = MakeObjects(assignment_, config_, name_space_);
    ASSERT_TRUE(objects.ok()) << objects.status();
    const Json job = cluster_.MustDo("POST", Jobs(), objects->job);
    uid_ = TextAt(job, "metadata/uid");
    cluster_.MustDo("POST", Core("secrets"), OwnedBy(objects->secret, objects->name, uid_));
    if (objects->service.has_value())
      cluster_.MustDo("POST", Core("services"), OwnedBy(*objects->service, objects->name, uid_));
    cluster_.MustDo("PATCH", Jobs() + "/" + objects->name, LaunchPatch(uid_, assignment_));
  }

  // Returns the condition that it ended with: "Complete" or "Failed".
  std::string AwaitEnd() {
    std::string end;
    WaitFor("the Job to end", [&] {
      const JobObject job = ParseJob(cluster_.MustDo("GET", Jobs() + "/k7m2-42-1"));
      for (const char* type : {"Complete", "Failed"}) {
        if (job.Find(type) != nullptr) end = type;
      }
      return !end.empty();
    });
    return end;
  }

  // Returns the log of the pod of that index.
  std::string LogOf(uint32_t index, const std::string& container = kMainContainer) {
    const Json pods = cluster_.MustDo("GET", Core("pods"));
    for (const Json& item : pods.at("items")) {
      const PodObject pod = ParsePod(item);
      if (pod.index != index) continue;
      auto [sink, text] = Collector::Make();
      const auto call =
          cluster_.api().Stream(Core("pods/" + pod.name.name + "/log?container=" + container),
                                kPatience, std::move(sink));
      EXPECT_TRUE(call.ok()) << call.status();
      return text.get();
    }
    return "no such pod";
  }

  TestCluster& cluster_ = SharedCluster();
  const std::string name_space_ = cluster_.MakeNamespace();
  KubernetesConfig config_;
  agent::v1::Assignment assignment_;
  std::string directory_;
  std::string uid_;
};

TEST_F(ManifestOnClusterTest, SetupAndCommandRunWithTheirWordsAndDirectory) {
  spec().set_setup("echo setup in $PWD; echo made >made");
  spec().mutable_command()->set_script(
      "cat made; echo \"$GREETING|$1|$MUSTER_RUN_KEY|$NODE_RANK\"");
  spec().mutable_command()->add_script_arguments("$(HOME) $$ 'x'");
  (*spec().mutable_env())["GREETING"] = "$(PATH) \"hi\"";
  Launch();
  ASSERT_EQ(AwaitEnd(), "Complete");
  EXPECT_EQ(LogOf(0),
            "setup in /muster/work\nmade\n"
            "$(PATH) \"hi\"|$(HOME) $$ 'x'|k7m2-42-1|0\n");
}

TEST_F(ManifestOnClusterTest, PodsOfARunFindTheFirstOneByName) {
  spec().set_nodes(3);
  spec().mutable_command()->set_script(
      "until getent hosts $MASTER_ADDR >/dev/null; do sleep 0.1; done; echo rank $NODE_RANK of "
      "$NNODES");
  Launch();
  ASSERT_EQ(AwaitEnd(), "Complete");
  for (uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(LogOf(rank), "rank " + std::to_string(rank) + " of 3\n");
}

TEST_F(ManifestOnClusterTest, TermReachesAProgramBelowAScriptWhichMayFinish) {
  // The shell of the script dies of it at once; what it runs does not.
  spec().mutable_command()->set_script(
      "python3 -c 'import signal, sys, time\n"
      "def stop(*_):\n"
      "    time.sleep(0.5)\n"
      "    open(\"/lustre/saved\", \"w\").close()\n"
      "    sys.exit(0)\n"
      "signal.signal(signal.SIGTERM, stop)\n"
      "open(\"/lustre/ready\", \"w\").close()\n"
      "time.sleep(600)'; true");
  (*spec().mutable_env())["SHOWN"] = "lustre:///lustre";
  spec().mutable_kubernetes()->mutable_termination_grace()->set_seconds(60);
  Launch();
  WaitFor("the program", [&] { return std::filesystem::exists(directory_ + "/ready"); });
  cluster_.MustDo("DELETE", Jobs() + "/k7m2-42-1", Json{{"propagationPolicy", "Foreground"}});
  WaitFor("the checkpoint", [&] { return std::filesystem::exists(directory_ + "/saved"); });
}

TEST_F(ManifestOnClusterTest, DataIsShownAndResultsAreMade) {
  std::filesystem::create_directories(directory_ + "/sets/cats");
  std::ofstream(directory_ + "/sets/cats/one") << "meow\n";
  v1::Input* input = spec().add_inputs();
  input->set_uri("lustre:///lustre/sets/cats");
  input->set_path("/data/cats");
  spec().set_results_directory("slurm://data/out/42");
  spec().mutable_command()->set_script(
      "cat /data/cats/one; (echo x >/data/cats/two) 2>/dev/null || echo refused; "
      "echo done >$MUSTER_RESULTS_DIR/result");
  Launch();
  ASSERT_EQ(AwaitEnd(), "Complete");
  EXPECT_EQ(LogOf(0), "meow\nrefused\n");
  EXPECT_EQ(ReadWhole(directory_ + "/out/42/result"), "done\n");
}

TEST_F(ManifestOnClusterTest, DataThatIsNotThereEndsTheRunBeforeItsProgramAndIsNotMade) {
  spec().add_inputs()->set_uri("lustre:///lustre/none");
  spec().mutable_command()->set_script("echo started");
  Launch();
  ASSERT_EQ(AwaitEnd(), "Failed");
  EXPECT_THAT(LogOf(0, kStorageContainer),
              HasSubstr("inputs[0].uri \"/lustre/none\" is not there"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/none"));
}

TEST_F(ManifestOnClusterTest, WhatThePodsMayAskForIsTakenByTheServer) {
  v1::KubernetesOptions* options = spec().mutable_kubernetes();
  (*options->mutable_node_selector())["kubernetes.io/os"] = "linux";
  options->add_tolerations()->set_key("gpu");
  v1::KubernetesNodeRequirement* required = options->add_required_nodes();
  required->set_key("cores");
  required->set_operator_("Gt");
  required->add_values("5");
  options->add_preferred_nodes()->mutable_requirement()->set_key("fast");
  options->mutable_preferred_nodes(0)->mutable_requirement()->set_operator_("Exists");
  options->set_spread(v1::KUBERNETES_SPREAD_REQUIRED);
  (*options->mutable_labels())["example.com/team"] = "vision";
  options->add_image_pull_secrets("pull");
  v1::KubernetesVolume* volume = options->add_volumes();
  volume->set_mount_path("/claim");
  volume->set_claim("data");
  volume = options->add_volumes();
  volume->set_mount_path("/fast");
  volume->mutable_empty_directory()->set_in_memory(true);
  options->mutable_security_context()->set_run_as_user(1000);
  options->mutable_security_context()->set_fs_group(1000);
  options->mutable_security_context()->set_run_as_non_root(true);
  options->mutable_security_context()->set_allow_privilege_escalation(false);
  options->mutable_security_context()->add_drop_capabilities("ALL");
  options->mutable_security_context()->set_seccomp_runtime_default(true);
  spec().mutable_resources()->add_gpus()->set_count_millis(2000);
  spec().mutable_resources()->mutable_gpus(0)->set_type("H100");
  spec().mutable_time_limit()->set_seconds(60);
  spec().set_nodes(2);
  spec().mutable_command()->set_script("true");
  for (int i = 0; i < 64; ++i) assignment_.add_excluded_nodes("node-" + std::to_string(100 + i));
  const absl::StatusOr<RunObjects> objects = MakeObjects(assignment_, config_, name_space_);
  ASSERT_TRUE(objects.ok()) << objects.status();
  cluster_.MustDo("POST", Jobs() + "?dryRun=All&fieldValidation=Strict", objects->job);
  cluster_.MustDo("POST", Core("secrets?dryRun=All&fieldValidation=Strict"), objects->secret);
  cluster_.MustDo("POST", Core("services?dryRun=All&fieldValidation=Strict"), *objects->service);
}

TEST_F(ManifestOnClusterTest, APatchForAnotherJobOfTheNameIsRefused) {
  spec().mutable_command()->set_script("true");
  const absl::StatusOr<RunObjects> objects = MakeObjects(assignment_, config_, name_space_);
  ASSERT_TRUE(objects.ok()) << objects.status();
  cluster_.MustDo("POST", Jobs(), objects->job);
  const ApiAnswer answer = cluster_.Admin("PATCH", Jobs() + "/k7m2-42-1", CompletePatch("other"));
  EXPECT_EQ(answer.status, 422);
  EXPECT_THAT(answer.message, HasSubstr("metadata.uid: Invalid value: \"other\""));
}

}  // namespace
}  // namespace muster::kubernetes
