// Tests the view of a real cluster: its nodes, what is used of them, what fits, and what a
// preflight finds.
#include <cstdlib>
#include <map>

#include "agents/kubernetes/checks/preflight.h"
#include "agents/kubernetes/cluster/cluster_identity.h"
#include "agents/kubernetes/cluster/cluster_view.h"
#include "agents/kubernetes/cluster/pull_secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/least_rights.h"
#include "tests/integration/kubernetes/test_cluster.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<std::string> MessagesOf(const v1::Inventory& inventory) {
  std::vector<std::string> messages;
  for (const v1::ClusterIssue& issue : inventory.issues()) messages.push_back(issue.message());
  return messages;
}

constexpr char kType[] = "NVIDIA-H100-80GB-HBM3";

v1::JobSpec Spec(uint64_t gpus, uint32_t nodes = 1, const std::string& type = "") {
  v1::JobSpec spec;
  spec.set_nodes(nodes);
  v1::GpuRequest* request = spec.mutable_resources()->add_gpus();
  request->set_count_millis(gpus * 1000);
  request->set_type(type);
  return spec;
}

std::shared_ptr<const agent::v1::Assignment> RunOf(const v1::JobSpec& spec) {
  auto run = std::make_shared<agent::v1::Assignment>();
  *run->mutable_spec() = spec;
  return run;
}

std::optional<std::string> Refusal(ClusterView& view, const v1::JobSpec& spec) {
  return view.Refusal(*RunOf(spec));
}

// Returns the reason of its wait, once those before it have taken their room.
std::optional<std::string> WaitsFor(ClusterView& view, const v1::JobSpec& spec,
                                    const std::vector<v1::JobSpec>& before = {}) {
  const std::unique_ptr<RoomLeft> room = view.TakeSnapshot({});
  for (const v1::JobSpec& other : before) room->Leave({RunOf(other)});
  std::optional<Misfit> misfit = room->WaitsFor(*RunOf(spec));
  if (!misfit.has_value()) return std::nullopt;
  return std::move(misfit->words);
}

bool FitsNow(ClusterView& view, const v1::JobSpec& spec,
             const std::vector<v1::JobSpec>& before = {}) {
  return !WaitsFor(view, spec, before).has_value();
}

// Gives a view of the shared cluster in a namespace of its own, as the administrator or with a
// kubeconfig.
class View {
 public:
  explicit View(const std::string& kubeconfig = "", const std::string& name_space = "")
      : name_space_(name_space.empty() ? cluster_.MakeNamespace() : name_space) {
    config_.name_space = name_space_;
    Endpoint endpoint = cluster_.endpoint();
    if (!kubeconfig.empty()) {
      const auto read = ReadKubeconfig({kubeconfig}, "");
      EXPECT_TRUE(read.ok()) << read.status();
      endpoint = *read;
    }
    api_ = std::make_unique<Api>(endpoint, &host_);
    std::string directory = cluster_.directory() + "/view-XXXXXX";
    state_dir_ = mkdtemp(directory.data());
    Restart();
  }
  // Restarts the view as a new agent would.
  void Restart() {
    view_.reset();
    view_ = std::make_unique<ClusterView>(config_, api_.get(), state_dir_);
  }

  TestCluster& cluster() { return cluster_; }
  Api* api() { return api_.get(); }
  KubernetesConfig& config() { return config_; }
  const std::string& name_space() const { return name_space_; }
  const std::string& state_dir() const { return state_dir_; }
  ClusterView* operator->() { return view_.get(); }
  ClusterView& operator*() { return *view_; }
  v1::Inventory MustInventory() {
    absl::StatusOr<v1::Inventory> inventory = view_->Inventory();
    EXPECT_TRUE(inventory.ok()) << inventory.status();
    return inventory.ok() ? *std::move(inventory) : v1::Inventory();
  }

  std::string Path(const std::string& collection) const {
    return "/api/v1/namespaces/" + name_space_ + "/" + collection;
  }
  // Makes a pod that stays until it is deleted.
  void MakePod(const std::string& name, const std::string& node, int gpus) {
    const Json resources = {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}};
    const Json container = {{"name", "main"},
                            {"image", "debian:12"},
                            {"command", {"/bin/sleep", "3600"}},
                            {"resources", resources}};
    cluster_.MustDo("POST", Path("pods"),
                    {{"metadata", {{"name", name}}},
                     {"spec",
                      {{"nodeSelector", {{"kubernetes.io/hostname", node}}},
                       {"terminationGracePeriodSeconds", 0},
                       {"containers", Json::array({container})}}}});
  }
  void DeletePod(const std::string& name) { cluster_.MustDo("DELETE", Path("pods/" + name)); }

 private:
  TestCluster& cluster_ = SharedCluster();
  const std::string name_space_;
  hosts::LocalHost host_;
  KubernetesConfig config_;
  std::unique_ptr<Api> api_;
  std::string state_dir_;
  std::unique_ptr<ClusterView> view_;
};

TEST(KubernetesCapacityOnClusterTest, TheInventoryHasTheNodesAndWhoTheClusterIs) {
  View view;
  const v1::Inventory inventory = view.MustInventory();
  EXPECT_EQ(inventory.scheduler_version().rfind("kubernetes 1.", 0), 0u);
  const Json system = view.cluster().MustDo("GET", "/api/v1/namespaces/kube-system");
  EXPECT_EQ(inventory.identity(), TextAt(system, "metadata/uid"));
  EXPECT_EQ(inventory.images(), v1::IMAGE_SUPPORT_REQUIRED);
  EXPECT_EQ(inventory.issues_size(), 0) << inventory.DebugString();
  ASSERT_EQ(inventory.pools_size(), 1);
  EXPECT_EQ(inventory.pools(0).name(), view.name_space());
  ASSERT_EQ(inventory.pools(0).node_groups_size(), 1) << inventory.DebugString();
  EXPECT_EQ(inventory.pools(0).node_groups(0).count(), 2u);
  EXPECT_EQ(inventory.pools(0).node_groups(0).gpus().at(kType), 8u);
}

TEST(KubernetesCapacityOnClusterTest, AnotherClusterThanTheOneBeforeIsAnError) {
  View view;
  const v1::Inventory inventory = view.MustInventory();
  view.Restart();
  EXPECT_EQ(view.MustInventory().identity(), inventory.identity());
  hosts::LocalHost host;
  ASSERT_TRUE(host.WriteFile(view.state_dir() + "/kubernetes-identity", "an-old-uid", {}).ok());
  view.Restart();
  const absl::Status other = view->Inventory().status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("an-old-uid"));
  EXPECT_THAT(std::string(other.message()), HasSubstr(inventory.identity()));
}

TEST(KubernetesCapacityOnClusterTest,
     AClusterThatNeverToldWhichItIsIsAnErrorAndLaterSilenceIsNone) {
  TestCluster& cluster = SharedCluster();
  Endpoint nobody = cluster.endpoint();
  nobody.identity = {};
  hosts::LocalHost host;
  Api anonymous(nobody, &host);
  View view;
  ClusterIdentity identity(view.state_dir() + "/other");
  const absl::Status never = identity.Learn(&anonymous).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kPermissionDenied) << never;
  EXPECT_THAT(std::string(never.message()), HasSubstr("give the agent's account the right"));
  const absl::StatusOr<std::string> learnt = identity.Learn(&cluster.api());
  ASSERT_TRUE(learnt.ok()) << learnt.status();
  const absl::StatusOr<std::string> silent = identity.Learn(&anonymous);
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_EQ(*silent, *learnt);
}

TEST(KubernetesCapacityOnClusterTest, WhatPodsUseIsNotFreeUntilTheyEnd) {
  View view;
  view.MustInventory();
  WaitFor("both nodes to be in service", [&] { return FitsNow(*view, Spec(8, 2)); });
  view.MakePod("user", "node-1", 6);
  WaitFor("the pod to count", [&] { return !FitsNow(*view, Spec(8, 2)); });
  EXPECT_EQ(WaitsFor(*view, Spec(8, 2)), "there is room for 1 pod of the run now, 2 are needed");
  EXPECT_EQ(Refusal(*view, Spec(8, 2)), std::nullopt);
  // A second run of eight would have to wait for the first.
  EXPECT_TRUE(FitsNow(*view, Spec(8)));
  EXPECT_FALSE(FitsNow(*view, Spec(8), {Spec(8)}));
  const auto details = view->Describe();
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_EQ(details->pools(0).gpus().at(kType), 16u);
  EXPECT_EQ(details->pools(0).free_gpus().at(kType), 10u);
  ASSERT_EQ(details->nodes_size(), 2);
  EXPECT_EQ(details->nodes(0).name(), "node-1");
  EXPECT_EQ(details->nodes(0).used_gpus().at(kType), 6u);
  view.DeletePod("user");
  WaitFor("the pod to be gone", [&] { return FitsNow(*view, Spec(8, 2)); });
}

TEST(KubernetesCapacityOnClusterTest, ACordonedNodeIsWaitedForAndATaintedOneRefused) {
  View view;
  view.MustInventory();
  // The nodes of a cluster that has just started are not ready for a moment.
  WaitFor("both nodes to be in service", [&] { return FitsNow(*view, Spec(8, 2)); });
  {
    const NodeSpec cordon("node-2", {{"unschedulable", true}}, {{"unschedulable", nullptr}});
    WaitFor("the cordon to count", [&] { return !FitsNow(*view, Spec(8, 2)); });
    EXPECT_THAT(*WaitsFor(*view, Spec(8, 2)),
                HasSubstr("2 nodes match, 1 of them is out of service: node-2 (cordoned)"));
    EXPECT_EQ(Refusal(*view, Spec(8, 2)), std::nullopt);
    EXPECT_EQ(view.MustInventory().pools(0).node_groups(0).usable_count(), 1u);
  }
  WaitFor("the cordon to be gone", [&] { return FitsNow(*view, Spec(8, 2)); });
  {
    const Json taint = {{"key", "team"}, {"value", "vision"}, {"effect", "NoSchedule"}};
    const NodeSpec tainted("node-2", {{"taints", Json::array({taint})}}, {{"taints", nullptr}});
    WaitFor("the taint to count", [&] { return Refusal(*view, Spec(8, 2)).has_value(); });
    EXPECT_EQ(*Refusal(*view, Spec(8, 2)),
              "the 1 node that matches would have room for 1 pod of the run if they were empty, 2 "
              "are needed");
    v1::JobSpec tolerant = Spec(8, 2);
    tolerant.mutable_kubernetes()->add_tolerations()->set_key("team");
    EXPECT_TRUE(FitsNow(*view, tolerant));
  }
  WaitFor("the taint to be gone", [&] { return FitsNow(*view, Spec(8, 2)); });
}

TEST(KubernetesCapacityOnClusterTest, WhatCouldNeverFitIsRefusedInWordsForItsUser) {
  View view;
  view.MustInventory();
  EXPECT_EQ(Refusal(*view, Spec(16)), "node-1 has the most nvidia.com/gpu: 8, 16 are needed");
  EXPECT_THAT(Refusal(*view, Spec(1, 1, "A100")).value_or(""),
              HasSubstr("it has GPUs of type NVIDIA-H100-80GB-HBM3, not A100"));
  v1::JobSpec typed = Spec(1, 1, "nvidia-h100-80gb-hbm3");
  EXPECT_TRUE(view->SpellGpuType(&typed).ok());
  EXPECT_EQ(typed.resources().gpus(0).type(), kType);
  EXPECT_TRUE(FitsNow(*view, typed));
  EXPECT_TRUE(FitsNow(*view, Spec(8, 1, "h100")));
  EXPECT_THAT(Refusal(*view, Spec(9, 1, "h100")).value_or(""), HasSubstr("9 are needed"));
}

TEST(KubernetesCapacityOnClusterTest, AQuotaAndALimitRangeCount) {
  View view;
  view.MustInventory();
  view.cluster().MustDo(
      "POST", view.Path("resourcequotas"),
      {{"metadata", {{"name", "lab"}}}, {"spec", {{"hard", {{"requests.nvidia.com/gpu", "2"}}}}}});
  WaitFor("the quota to count", [&] { return Refusal(*view, Spec(4)).has_value(); });
  EXPECT_EQ(*Refusal(*view, Spec(4)),
            "quota lab allows 2 requests.nvidia.com/gpu in all, the run needs 4");
  view.MakePod("user", "node-1", 2);
  WaitFor("the use to count", [&] { return !FitsNow(*view, Spec(1)); });
  EXPECT_EQ(WaitsFor(*view, Spec(1)),
            "quota lab: 2 of 2 requests.nvidia.com/gpu used, the run needs 1");
  EXPECT_EQ(Refusal(*view, Spec(1)), std::nullopt);
  EXPECT_THAT(MessagesOf(view.MustInventory()),
              Contains(HasSubstr("quota lab: 2 of 2 requests.nvidia.com/gpu used")));
  EXPECT_THAT(view->Describe()->pools(0).limits(),
              Contains("quota lab: 2 of 2 requests.nvidia.com/gpu used"));
  view.DeletePod("user");

  const Json limit = {{"type", "Container"}, {"max", {{"memory", "512Mi"}}}};
  view.cluster().MustDo(
      "POST", view.Path("limitranges"),
      {{"metadata", {{"name", "small"}}}, {"spec", {{"limits", Json::array({limit})}}}});
  v1::JobSpec spec;
  WaitFor("the limit range to count", [&] { return Refusal(*view, spec).has_value(); });
  EXPECT_EQ(*Refusal(*view, spec),
            "limit range small: at most 512Mi memory for a container, the job asks for 1024Mi");
}

// Returns the lines of a preflight, by subject.
std::map<std::string, v1::ClusterCheck> Lines(const v1::ClusterChecks& checks) {
  std::map<std::string, v1::ClusterCheck> lines;
  for (const v1::ClusterCheck& check : checks.checks()) {
    EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
    lines[check.subject()] = check;
  }
  return lines;
}

TEST(KubernetesCapacityOnClusterTest, NodesThatMayNotBeListedAreNotKnownAndNotNone) {
  // The cluster is the test's own: nobody has given the account the optional rights there yet.
  TestCluster cluster(TestCluster::Options{.nodes = 1});
  const std::string name_space = cluster.MakeNamespace();
  const auto endpoint =
      ReadKubeconfig({LeastRightsKubeconfig(cluster, name_space, /*cluster_rights=*/false)}, "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  hosts::LocalHost host;
  Api api(*endpoint, &host);
  const KubernetesConfig config;
  ClusterView view(config, &api, cluster.directory());
  const auto inventory = view.Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_NE(inventory->identity(), "");
  EXPECT_TRUE(inventory->pools(0).available());
  EXPECT_EQ(inventory->pools(0).node_groups_size(), 0);
  EXPECT_THAT(MessagesOf(*inventory), Contains(HasSubstr("the nodes are not known")));
  EXPECT_THAT(MessagesOf(*inventory), Contains(HasSubstr("cannot list resource \"nodes\"")));
  EXPECT_THAT(MessagesOf(*inventory),
              Contains(HasSubstr("cannot see what pods of other namespaces use")));
  EXPECT_EQ(Refusal(view, Spec(999)), std::nullopt);
  EXPECT_TRUE(FitsNow(view, Spec(999)));
  const auto details = view.Describe();
  ASSERT_TRUE(details.ok()) << details.status();
  EXPECT_THAT(details->pools(0).limits(), Contains(HasSubstr("the nodes are not known")));

  // The preflight says the same, and that runs can be made.
  const v1::ClusterChecks checks = Check(config, &api);
  for (const v1::ClusterCheck& check : checks.checks())
    EXPECT_NE(check.result(), v1::CHECK_RESULT_FAIL) << check.DebugString();
  const auto lines = Lines(checks);
  EXPECT_EQ(lines.at("nodes").result(), v1::CHECK_RESULT_SKIPPED);
  EXPECT_EQ(lines.at("rights to nodes in the cluster").result(), v1::CHECK_RESULT_WARN);
}

TEST(KubernetesPreflightTest, TheAdministratorSeesEverything) {
  View view;
  view.config().storage_roots["data"] = {.claim = "none", .host_path = "", .mount = "/data"};
  view.config().image_pull_secrets = {"pull"};
  const auto installed =
      InstallPullSecret(view.config(), view.api(), {"nvcr.io", "$oauthtoken", "hidden-1"});
  ASSERT_TRUE(installed.ok()) << installed.status();
  EXPECT_THAT(*installed, HasSubstr("Secret pull in namespace " + view.name_space()));
  // A second one is put beside it.
  ASSERT_TRUE(
      InstallPullSecret(view.config(), view.api(), {"r.example.org", "me", "hidden-2"}).ok());

  const v1::ClusterChecks checks = Check(view.config(), view.api());
  EXPECT_EQ(checks.DebugString().find("hidden"), std::string::npos);
  const auto lines = Lines(checks);
  const auto expect = [&](const std::string& subject, v1::CheckResult result,
                          const std::string& seen) {
    const auto found = lines.find(subject);
    ASSERT_NE(found, lines.end()) << subject << "\n" << checks.DebugString();
    EXPECT_EQ(found->second.result(), result) << found->second.DebugString();
    EXPECT_THAT(found->second.seen(), HasSubstr(seen));
  };
  expect("version", v1::CHECK_RESULT_OK, "kubernetes 1.");
  expect("identity", v1::CHECK_RESULT_OK, "UID");
  expect("rights to jobs in namespace " + view.name_space(), v1::CHECK_RESULT_OK, "delete");
  expect("a Job in namespace " + view.name_space(), v1::CHECK_RESULT_OK, "dry run");
  expect("nodes", v1::CHECK_RESULT_OK, "2 of 2");
  expect("GPUs", v1::CHECK_RESULT_OK, "16 NVIDIA-H100-80GB-HBM3");
  expect("pull secret pull in namespace " + view.name_space(), v1::CHECK_RESULT_OK,
         "nvcr.io, r.example.org");
  expect("storage root data in namespace " + view.name_space(), v1::CHECK_RESULT_FAIL,
         "no claim none");
  expect("quotas of namespace " + view.name_space(), v1::CHECK_RESULT_OK, "none");
  expect("queues and gangs", v1::CHECK_RESULT_OK, "neither");
}

TEST(KubernetesPreflightTest, WithTheLeastRightsNothingFailsAndWhatMayNotBeReadIsToldSo) {
  TestCluster& cluster = SharedCluster();
  const std::string name_space = cluster.MakeNamespace();
  View view(LeastRightsKubeconfig(cluster, name_space), name_space);
  view.config().image_pull_secrets = {"pull"};
  const v1::ClusterChecks checks = Check(view.config(), view.api());
  for (const v1::ClusterCheck& check : checks.checks())
    EXPECT_NE(check.result(), v1::CHECK_RESULT_FAIL) << check.DebugString();
  const auto lines = Lines(checks);
  EXPECT_EQ(lines.at("pull secret pull in namespace " + view.name_space()).result(),
            v1::CHECK_RESULT_SKIPPED);
  EXPECT_EQ(lines.at("nodes").result(), v1::CHECK_RESULT_OK);
  EXPECT_EQ(lines.at("identity").result(), v1::CHECK_RESULT_OK);
  // The account may not write Secrets that are there already; the operator's must.
  const absl::Status refused =
      InstallPullSecret(view.config(), view.api(), {"nvcr.io", "$oauthtoken", "hidden"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("kubeconfig that may get, create"));
  EXPECT_EQ(refused.ToString().find("hidden"), std::string::npos);
}

TEST(KubernetesPreflightTest, AMissingNamespaceFailsWithTheWayToMakeIt) {
  View view;
  view.config().name_space = "nowhere";
  const auto lines = Lines(Check(view.config(), view.api()));
  const v1::ClusterCheck& line = lines.at("namespace nowhere");
  EXPECT_EQ(line.result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(line.seen(), HasSubstr("namespaces \"nowhere\" not found"));
  EXPECT_THAT(line.remedy(), HasSubstr("kubectl create namespace nowhere"));
}

TEST(KubernetesCapacityOnClusterTest, NamespacesThatAreMissingOrGoingAreToldEach) {
  View view;
  const std::string going = view.cluster().MakeNamespace();
  const std::string path = "/api/v1/namespaces/" + going;
  // An object that nobody finishes keeps a namespace from being gone.
  view.cluster().MustDo("POST", path + "/configmaps",
                        {{"metadata", {{"name", "stays"}, {"finalizers", {"muster.dev/test"}}}}});
  view.cluster().MustDo("DELETE", path);
  view.config().namespaces = {"nowhere", going};
  view.Restart();
  const v1::Inventory inventory = view.MustInventory();
  ASSERT_EQ(inventory.pools_size(), 3);
  EXPECT_EQ(inventory.pools(0).state(), "");
  EXPECT_EQ(inventory.pools(1).state(), "missing");
  EXPECT_EQ(inventory.pools(2).state(), "terminating");
  EXPECT_THAT(MessagesOf(inventory), Contains(HasSubstr("namespace nowhere is missing: ")));
  EXPECT_THAT(MessagesOf(inventory),
              Contains(HasSubstr("namespace " + going + " is terminating: ")));
  const auto lines = Lines(Check(view.config(), view.api()));
  EXPECT_EQ(lines.at("a Job in namespace " + going).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_EQ(lines.at("a Job in namespace " + view.name_space()).result(), v1::CHECK_RESULT_OK);
  view.cluster().MustDo("PATCH", path + "/configmaps/stays",
                        {{"metadata", {{"finalizers", nullptr}}}});
}

TEST(KubernetesPreflightTest, WithoutAServerTheRestIsSkipped) {
  hosts::LocalHost host;
  Endpoint endpoint;
  endpoint.server = "https://127.0.0.1:1";
  Api api(endpoint, &host);
  const v1::ClusterChecks checks = Check(KubernetesConfig(), &api);
  EXPECT_EQ(checks.checks(0).result(), v1::CHECK_RESULT_FAIL);
  for (int i = 1; i < checks.checks_size(); ++i)
    EXPECT_EQ(checks.checks(i).result(), v1::CHECK_RESULT_SKIPPED);
}

}  // namespace
}  // namespace muster::kubernetes
