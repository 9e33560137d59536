#include "contract/admission.h"

#include "contract/task_array.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kGibibytesOfMemory = uint64_t{1} << 30;

v1::NodeProfile* AddNodes(v1::AdmissionFacts* facts, const std::string& example, uint32_t count) {
  v1::NodeProfile* profile = facts->mutable_kubernetes()->mutable_nodes()->add_profiles();
  profile->set_count(count);
  profile->set_example(example);
  profile->set_cpu_millis(8000);
  profile->set_memory_bytes(16 * kGibibytesOfMemory);
  profile->set_pods(110);
  (*profile->mutable_gpus())["nvidia.com/gpu"] = 4;
  return profile;
}

v1::AdmissionFacts Facts() {
  v1::AdmissionFacts facts;
  facts.set_max_archive_bytes(8 << 20);
  v1::KubernetesFacts& own = *facts.mutable_kubernetes();
  own.set_default_memory_bytes(kGibibytesOfMemory);
  own.set_default_cpu_millis(1000);
  own.add_gpu_resources("nvidia.com/gpu");
  own.set_gpu_type_label("product");
  v1::NamespaceFacts* space = own.add_namespaces();
  space->set_name("lab");
  return facts;
}

v1::JobSpec OnKubernetes() {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.set_image("busybox:1");
  spec.mutable_kubernetes();
  return spec;
}

Admission Judged(const v1::JobSpec& spec, const v1::AdmissionFacts& facts) {
  const std::optional<AdmissionNeeds> needs = AdmissionNeedsOf(spec);
  return needs.has_value() ? JudgeAdmission(*needs, facts, "k8s") : Admission();
}

// Returns the fields that speak against the job.
std::vector<std::string> FieldsOf(const Admission& admission) {
  std::vector<std::string> fields;
  for (const v1::Shortage& refusal : admission.refusals) fields.push_back(refusal.resource());
  return fields;
}

TEST(AdmissionTest, AJobThatCapacityAloneJudgesNeedsNothing) {
  v1::JobSpec spec;
  spec.set_nodes(4);
  spec.set_image("busybox:1");
  spec.mutable_resources()->add_gpus()->set_type("h100");
  EXPECT_FALSE(AdmissionNeedsOf(spec).has_value());
  (*spec.mutable_env())["DATA"] = "s3://bucket/x";
  EXPECT_FALSE(AdmissionNeedsOf(spec).has_value()) << "the program's business";
  (*spec.mutable_env())["DATA"] = "lustre:///data/x";
  EXPECT_TRUE(AdmissionNeedsOf(spec).has_value());
}

TEST(AdmissionTest, WhatTheFactsDoNotTellSpeaksAgainstNothing) {
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_kubernetes()->set_priority_class("high");
  spec.mutable_kubernetes()->set_service_account("trainer");
  spec.mutable_kubernetes()->set_queue("team");
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  EXPECT_THAT(Judged(spec, Facts()).refusals, IsEmpty());
  EXPECT_THAT(Judged(spec, v1::AdmissionFacts()).refusals, IsEmpty());
}

TEST(AdmissionTest, NamesThatAreNotThereAreRefusedAllAtOnceWithThoseThatAre) {
  v1::AdmissionFacts facts = Facts();
  v1::KubernetesFacts& own = *facts.mutable_kubernetes();
  own.mutable_priority_classes()->add_names("low");
  own.mutable_runtime_classes();
  own.mutable_namespaces(0)->mutable_service_accounts()->add_names("default");
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_kubernetes()->set_priority_class("high");
  spec.mutable_kubernetes()->set_runtime_class("fast");
  spec.mutable_kubernetes()->set_service_account("trainer");
  const Admission admission = Judged(spec, facts);
  EXPECT_THAT(FieldsOf(admission),
              ElementsAre("kubernetes.priority_class", "kubernetes.runtime_class",
                          "kubernetes.service_account"));
  const std::string text = RefusalText(admission.refusals);
  EXPECT_THAT(text, HasSubstr("kubernetes.priority_class \"high\": there is none; it has \"low\""));
  EXPECT_THAT(text, HasSubstr("kubernetes.runtime_class \"fast\": there is none; it has none"));
  EXPECT_THAT(text, HasSubstr("\"trainer\": there is none in namespace lab; it has \"default\""));
  own.mutable_priority_classes()->add_names("high");
  own.mutable_runtime_classes()->add_names("fast");
  spec.mutable_kubernetes()->set_service_account("default");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

TEST(AdmissionTest, QueuesAndGangsAreThoseOfTheCluster) {
  v1::AdmissionFacts facts = Facts();
  v1::NameList& groups = *facts.mutable_kubernetes()->mutable_scheduler_groups();
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_kubernetes()->set_queue("team");
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals),
              HasSubstr("kubernetes.queue is \"team\", and this cluster has no Kueue"));
  groups.add_names("kueue.x-k8s.io");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "its queues are not known";
  facts.mutable_kubernetes()->mutable_namespaces(0)->mutable_queues()->add_names("night");
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals),
              HasSubstr("namespace lab has no such queue of Kueue's (LocalQueue); it has night:"));
  spec.mutable_kubernetes()->set_queue("night");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  spec.mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_VOLCANO);
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals),
              HasSubstr("kubernetes.gang is volcano, and this cluster has no Volcano"));
}

TEST(AdmissionTest, WhatTheOperatorDoesNotAllowIsRefused) {
  v1::AdmissionFacts facts = Facts();
  facts.mutable_kubernetes()->add_operator_secrets("registry");
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_kubernetes()->set_host_network(true);
  v1::KubernetesVolume* host = spec.mutable_kubernetes()->add_volumes();
  host->set_mount_path("/scratch");
  host->set_host_path("/mnt/scratch");
  v1::KubernetesVolume* secret = spec.mutable_kubernetes()->add_volumes();
  secret->set_mount_path("/muster/run");
  secret->set_secret("registry");
  v1::Mount* mount = spec.add_mounts();
  mount->set_source("/elsewhere");
  mount->set_target("/data");
  EXPECT_THAT(
      FieldsOf(Judged(spec, facts)),
      ElementsAre("kubernetes.host_network", "mounts[0].source", "kubernetes.volumes[0].host_path",
                  "kubernetes.volumes[1].mount_path", "kubernetes.volumes[1].secret"));
  facts.mutable_kubernetes()->set_allows_host_network(true);
  facts.mutable_kubernetes()->set_allows_host_path(true);
  facts.mutable_kubernetes()->clear_operator_secrets();
  secret->set_mount_path("/secret");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  spec.mutable_kubernetes()->mutable_security_context()->set_privileged(true);
  EXPECT_THAT(FieldsOf(Judged(spec, facts)), ElementsAre("kubernetes.security_context.privileged"));
}

TEST(AdmissionTest, DataIsInAStorageRoot) {
  v1::AdmissionFacts facts = Facts();
  v1::JobSpec spec = OnKubernetes();
  spec.add_inputs()->set_uri("lustre:///data/train");
  spec.set_results_directory("slurm://home/out");
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals), HasSubstr("kubernetes.storage_roots"));
  (*facts.mutable_kubernetes()->mutable_storage_roots())["data"] = "/data";
  EXPECT_THAT(FieldsOf(Judged(spec, facts)), ElementsAre("results_directory"));
  (*facts.mutable_kubernetes()->mutable_storage_roots())["home"] = "/home/ann";
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  (*spec.mutable_env())["MODEL"] = "lustre:///models/7";
  EXPECT_THAT(FieldsOf(Judged(spec, facts)), ElementsAre("env[\"MODEL\"]"));
}

TEST(AdmissionTest, JobsWithDataBelowTheSameDirectoriesAreAlikeAndRefusedWhereNoRootMayBe) {
  v1::AdmissionFacts facts = Facts();
  auto& roots = *facts.mutable_kubernetes()->mutable_storage_roots();
  const auto refusable = [](const std::string& uri) {
    v1::JobSpec spec;
    spec.set_nodes(1);
    spec.add_inputs()->set_uri(uri);
    return *RefusableOf(*AdmissionNeedsOf(spec));
  };
  const AdmissionNeeds cats = refusable("lustre:///data/sets/cats/7/part");
  EXPECT_EQ(BytesOf(cats), BytesOf(refusable("lustre:///data/sets/cats/8")));
  EXPECT_NE(BytesOf(cats), BytesOf(refusable("lustre:///data/sets/dogs/8")));
  roots["deep"] = "/data/sets/cats/7/part";
  EXPECT_THAT(JudgeAdmission(cats, facts, "k8s").refusals, IsEmpty());
  roots["deep"] = "/data/sets";
  EXPECT_THAT(JudgeAdmission(cats, facts, "k8s").refusals, IsEmpty());
  roots["deep"] = "/data/models";
  EXPECT_EQ(JudgeAdmission(cats, facts, "k8s").refusals.size(), 1u);
}

TEST(AdmissionTest, SharedMemoryCountsAsMemory) {
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_kubernetes()->set_shm_bytes(2 * kGibibytesOfMemory);
  EXPECT_THAT(FieldsOf(Judged(spec, Facts())), ElementsAre("kubernetes.shm_bytes"));
  spec.mutable_resources()->set_memory_bytes(4 * kGibibytesOfMemory);
  EXPECT_THAT(Judged(spec, Facts()).refusals, IsEmpty());
}

TEST(AdmissionTest, AnArchiveThatIsTooLargeIsRefusedOnceItsSizeIsKnown) {
  v1::JobSpec spec = OnKubernetes();
  spec.add_uploads()->set_tree_sha256("a");
  AdmissionNeeds needs = *AdmissionNeedsOf(spec);
  EXPECT_THAT(JudgeAdmission(needs, Facts(), "k8s").refusals, IsEmpty());
  needs.archive_bytes = 9 << 20;
  const Admission admission = JudgeAdmission(needs, Facts(), "k8s");
  EXPECT_THAT(FieldsOf(admission), ElementsAre("uploads"));
  EXPECT_THAT(RefusalText(admission.refusals), HasSubstr("an archive of 9Mi"));
}

// ---- nodes

TEST(AdmissionTest, NodesThatDoNotMatchAreCountedAndTheNearestIsNamed) {
  v1::AdmissionFacts facts = Facts();
  (*AddNodes(&facts, "node-1", 2)->mutable_labels())["disk"] = "hdd";
  v1::NodeProfile* other = AddNodes(&facts, "node-3", 1);
  v1::NodeTaint* taint = other->add_taints();
  taint->set_key("team");
  taint->set_value("vision");
  taint->set_effect("NoSchedule");
  v1::JobSpec spec = OnKubernetes();
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  EXPECT_EQ(RefusalText(Judged(spec, facts).refusals),
            "none of the 3 nodes matches; node-1 comes nearest: it has label disk=hdd, not ssd "
            "(kubernetes.node_selector)");
  (*other->mutable_labels())["disk"] = "ssd";
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals), HasSubstr("none of the 3 nodes matches"));
  spec.mutable_kubernetes()->add_tolerations()->set_key("team");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

TEST(AdmissionTest, LabelsThatAreNotToldAreNotJudged) {
  v1::AdmissionFacts facts = Facts();
  AddNodes(&facts, "node-1", 100);
  v1::JobSpec spec = OnKubernetes();
  (*spec.mutable_kubernetes()->mutable_node_selector())["kubernetes.io/hostname"] = "node-7";
  v1::KubernetesNodeRequirement* required = spec.mutable_kubernetes()->add_required_nodes();
  required->set_key("serial");
  required->set_operator_("Exists");
  EXPECT_EQ(Judged(spec, facts).refusals.size(), 1u);
  facts.mutable_kubernetes()->mutable_nodes()->add_untold_labels("kubernetes.io/hostname");
  facts.mutable_kubernetes()->mutable_nodes()->add_untold_labels("serial");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

TEST(AdmissionTest, NodesThatMatchHaveRoomForAllPodsTogether) {
  v1::AdmissionFacts facts = Facts();
  (*AddNodes(&facts, "node-1", 2)->mutable_labels())["disk"] = "ssd";
  AddNodes(&facts, "node-3", 50);
  v1::JobSpec spec = OnKubernetes();
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_count_millis(2000);
  spec.set_nodes(4);
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "two pods on each";
  spec.mutable_kubernetes()->set_spread(v1::KUBERNETES_SPREAD_REQUIRED);
  const Admission apart = Judged(spec, facts);
  ASSERT_EQ(apart.refusals.size(), 1u);
  EXPECT_EQ(apart.refusals[0].requested(), 4u);
  EXPECT_EQ(apart.refusals[0].available(), 2u);
  EXPECT_THAT(apart.refusals[0].message(), HasSubstr("each on a node of its own"));
  spec.set_nodes(1);
  gpus->set_count_millis(5000);
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals),
              HasSubstr("node-1 has the most nvidia.com/gpu: 4, 5 are needed"));
}

TEST(AdmissionTest, AClusterThatHasNoNodesNowMayGetSome) {
  v1::AdmissionFacts facts = Facts();
  facts.mutable_kubernetes()->mutable_nodes();
  v1::JobSpec spec = OnKubernetes();
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

// ---- limits of the namespace

v1::NamespaceLimit* AddLimit(v1::AdmissionFacts* facts, v1::NamespaceLimitKind kind,
                             const std::string& resource, const std::string& text,
                             int64_t amount_millis) {
  v1::NamespaceLimit* limit = facts->mutable_kubernetes()->mutable_namespaces(0)->add_limits();
  limit->set_kind(kind);
  limit->set_name("budget");
  limit->set_resource(resource);
  limit->set_text(text);
  limit->set_amount_millis(amount_millis);
  return limit;
}

TEST(AdmissionTest, AJobOverItsNamespacesWholeQuotaIsRefusedWithTheQuotaAndWhatItAsksFor) {
  v1::AdmissionFacts facts = Facts();
  AddLimit(&facts, v1::NAMESPACE_LIMIT_KIND_QUOTA, "requests.nvidia.com/gpu", "4", 4000);
  v1::JobSpec spec = OnKubernetes();
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_count_millis(2000);
  spec.set_nodes(2);
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  spec.set_nodes(3);
  const Admission over = Judged(spec, facts);
  ASSERT_EQ(over.refusals.size(), 1u);
  EXPECT_EQ(over.refusals[0].message(),
            "quota budget of namespace lab allows 4 requests.nvidia.com/gpu in all, the run needs "
            "6");
  EXPECT_EQ(over.refusals[0].resource(), "gpus");
  EXPECT_EQ(over.refusals[0].requested(), 6000u);
  EXPECT_EQ(over.refusals[0].available(), 4000u);
  spec.mutable_placement()->set_pool("other");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "another namespace";
}

TEST(AdmissionTest, MemoryAndPodsOfAQuotaAreCountedOverAllPods) {
  v1::AdmissionFacts facts = Facts();
  v1::NamespaceLimit* limit = AddLimit(&facts, v1::NAMESPACE_LIMIT_KIND_QUOTA, "limits.memory",
                                       "8Gi", static_cast<int64_t>(8 * kGibibytesOfMemory * 1000));
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_resources()->set_memory_bytes(3 * kGibibytesOfMemory);
  spec.set_nodes(3);
  EXPECT_EQ(RefusalText(Judged(spec, facts).refusals),
            "quota budget of namespace lab allows 8Gi limits.memory in all, the run needs 9216Mi");
  limit->set_resource("pods");
  limit->set_text("2");
  limit->set_amount_millis(2000);
  EXPECT_EQ(FieldsOf(Judged(spec, facts)), std::vector<std::string>{"nodes"});
}

TEST(AdmissionTest, APodOverALimitRangeIsRefused) {
  v1::AdmissionFacts facts = Facts();
  AddLimit(&facts, v1::NAMESPACE_LIMIT_KIND_RANGE, "cpu", "2", 2000);
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_resources()->set_cpu_millis(2000);
  spec.set_nodes(9);
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "each pod has it";
  spec.mutable_resources()->set_cpu_millis(3000);
  EXPECT_EQ(RefusalText(Judged(spec, facts).refusals),
            "limit range budget of namespace lab: at most 2 cpu for each pod, the job asks for 3");
}

// ---- what GPUs bring along

TEST(AdmissionTest, GpusBringTheirShareOfTheSmallestNodeThatMatchesAndTheSubmitterIsTold) {
  v1::AdmissionFacts facts = Facts();
  facts.mutable_kubernetes()->set_shares_gpu_nodes(true);
  AddNodes(&facts, "node-1", 1)->set_memory_bytes(40 * kGibibytesOfMemory);
  v1::NodeProfile* small = AddNodes(&facts, "node-2", 1);
  v1::JobSpec spec = OnKubernetes();
  spec.mutable_resources()->add_gpus()->set_count_millis(2000);
  const auto warning = [&] {
    const Admission admission = Judged(spec, facts);
    EXPECT_THAT(admission.refusals, IsEmpty());
    return admission.warnings.empty() ? v1::SubmitWarning() : admission.warnings.front();
  };
  EXPECT_EQ(warning().code(), v1::SUBMIT_WARNING_CODE_DEFAULT_RESOURCES);
  EXPECT_EQ(warning().subject(), "resources.memory");
  EXPECT_THAT(warning().message(), HasSubstr("the job gets 7Gi of memory and 3 cores"));
  (*small->mutable_labels())["disk"] = "hdd";
  (*facts.mutable_kubernetes()->mutable_nodes()->mutable_profiles(0)->mutable_labels())["disk"] =
      "ssd";
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  EXPECT_THAT(warning().message(), HasSubstr("the job gets 18Gi of memory and 3 cores"));
  // It counts as what the job asks for.
  spec.mutable_kubernetes()->set_shm_bytes(16 * kGibibytesOfMemory);
  EXPECT_THAT(warning().message(), HasSubstr("18Gi"));
  spec.mutable_kubernetes()->clear_shm_bytes();
  AddLimit(&facts, v1::NAMESPACE_LIMIT_KIND_QUOTA, "requests.memory", "8Gi",
           static_cast<int64_t>(8 * kGibibytesOfMemory * 1000));
  EXPECT_THAT(warning().message(), HasSubstr("8Gi of memory and 3 cores"));
  facts.mutable_kubernetes()->set_shares_gpu_nodes(false);
  EXPECT_THAT(warning().message(), HasSubstr("1Gi of memory and 1 core on each node, the cluster"));
  spec.mutable_resources()->set_memory_bytes(kGibibytesOfMemory);
  spec.mutable_resources()->set_cpu_millis(1000);
  EXPECT_EQ(warning().code(), v1::SUBMIT_WARNING_CODE_UNSPECIFIED);
}

TEST(AdmissionTest, AJobWithGpusThatLeavesMemoryOpenIsToldSoAndRefusedByNothingMore) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_resources()->add_gpus()->set_count_millis(1000);
  ASSERT_TRUE(AdmissionNeedsOf(spec).has_value());
  EXPECT_FALSE(RefusableOf(*AdmissionNeedsOf(spec)).has_value());
}

// ---- status.json

TEST(AdmissionTest, StatusJsonNeedsResultsThatTheAgentSees) {
  v1::AdmissionFacts facts = Facts();
  auto& roots = *facts.mutable_kubernetes()->mutable_storage_roots();
  roots["data"] = "/data";
  roots["home"] = "/home";
  facts.mutable_kubernetes()->add_agent_roots("data");
  v1::JobSpec spec = OnKubernetes();
  spec.set_status_json(true);
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals), HasSubstr("has no results_root"));
  facts.set_results_root("/data/results");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  facts.set_results_root("/home/results");
  EXPECT_THAT(RefusalText(Judged(spec, facts).refusals),
              HasSubstr("status_json is read by the agent, and that of cluster k8s does not see "
                        "the results in \"/home/results\" (kubernetes.agent_roots)"));
  spec.set_results_directory("slurm://data/run7");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  spec.set_results_directory("lustre:///home/run7");
  EXPECT_THAT(FieldsOf(Judged(spec, facts)), ElementsAre("status_json"));
  // The deepest root has it.
  roots["private"] = "/data/private";
  spec.set_results_directory("lustre:///data/private/run7");
  EXPECT_THAT(FieldsOf(Judged(spec, facts)), ElementsAre("status_json"));
  roots.erase("private");
  // The end of a longer path is not known of jobs that are judged together.
  spec.set_results_directory("lustre:///a/b/c/d");
  const AdmissionNeeds cut = *RefusableOf(*AdmissionNeedsOf(spec));
  roots["data"] = "/a/b/c/d";
  EXPECT_THAT(JudgeAdmission(cut, facts, "k8s").refusals, IsEmpty());
}

TEST(AdmissionTest, OnSlurmStatusJsonNeedsAPlaceForResults) {
  v1::AdmissionFacts facts;
  v1::JobSpec spec;
  spec.set_status_json(true);
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "an agent that does not tell";
  facts.set_results_root("");
  EXPECT_EQ(RefusalText(Judged(spec, facts).refusals),
            "status_json is looked for in the results directory, and cluster k8s has no "
            "results_root; set results_directory");
  spec.set_results_directory("/lustre/run7");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  spec.clear_results_directory();
  facts.set_results_root("/lustre/results");
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
}

TEST(AdmissionTest, AnArrayNeedsItsHighestIndexBelowMaxArraySize) {
  v1::AdmissionFacts facts;
  v1::JobSpec spec;
  spec.mutable_slurm()->mutable_batch_script();
  SetArrayTask({.id = 3, .count = 2, .min_id = 3, .max_id = 1000}, &spec);
  facts.mutable_slurm();
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty()) << "an agent that does not tell";
  facts.mutable_slurm()->set_max_array_size(1001);
  EXPECT_THAT(Judged(spec, facts).refusals, IsEmpty());
  facts.mutable_slurm()->set_max_array_size(1000);
  EXPECT_EQ(RefusalText(Judged(spec, facts).refusals),
            "--array: the index 1000 is too high for cluster k8s, "
            "whose slurm.conf allows 0 to 999 "
            "(MaxArraySize=1000); use lower indexes, or name another cluster");
}

// ---- warnings

TEST(AdmissionTest, AClaimThatIsNotThereYetIsWarnedOf) {
  v1::AdmissionFacts facts = Facts();
  v1::NamespaceFacts& space = *facts.mutable_kubernetes()->mutable_namespaces(0);
  space.mutable_claims()->add_names("stuck");
  space.add_stuck_claims("stuck");
  v1::JobSpec spec = OnKubernetes();
  v1::KubernetesVolume* volume = spec.mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/data");
  volume->set_claim("nosuch");
  const Admission missing = Judged(spec, facts);
  EXPECT_THAT(missing.refusals, IsEmpty());
  ASSERT_EQ(missing.warnings.size(), 1u);
  EXPECT_EQ(missing.warnings[0].code(), v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
  EXPECT_EQ(missing.warnings[0].subject(), "kubernetes.volumes[0].claim");
  EXPECT_THAT(missing.warnings[0].message(),
              HasSubstr("\"nosuch\": there is none in namespace lab; it has \"stuck\""));
  volume->set_claim("stuck");
  ASSERT_EQ(Judged(spec, facts).warnings.size(), 1u);
  space.clear_stuck_claims();
  EXPECT_THAT(Judged(spec, facts).warnings, IsEmpty());
}

TEST(AdmissionTest, ADirectoryThatNoVolumeHasIsWarnedOf) {
  v1::JobSpec spec = OnKubernetes();
  spec.set_working_directory("/data/run");
  const Admission admission = Judged(spec, Facts());
  ASSERT_EQ(admission.warnings.size(), 1u);
  EXPECT_EQ(admission.warnings[0].code(), v1::SUBMIT_WARNING_CODE_WORKING_DIRECTORY);
  v1::KubernetesVolume* volume = spec.mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/data");
  volume->mutable_empty_directory();
  EXPECT_THAT(Judged(spec, Facts()).warnings, IsEmpty());
}

// ---- what is shared

TEST(AdmissionTest, JobsThatAreJudgedAlikeHaveTheSameBytes) {
  v1::JobSpec a = OnKubernetes();
  (*a.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  v1::JobSpec b = a;
  b.set_name("other");
  b.mutable_command()->set_script("true");
  (*b.mutable_kubernetes()->mutable_annotations())["who"] = "ann";
  EXPECT_EQ(BytesOf(*AdmissionNeedsOf(a)), BytesOf(*AdmissionNeedsOf(b)));
  (*b.mutable_kubernetes()->mutable_node_selector())["disk"] = "hdd";
  EXPECT_NE(BytesOf(*AdmissionNeedsOf(a)), BytesOf(*AdmissionNeedsOf(b)));
}

}  // namespace
}  // namespace muster::contract
