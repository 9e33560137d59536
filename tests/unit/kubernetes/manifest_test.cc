#include "agents/kubernetes/manifest/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

v1::Assignment MakeAssignment(uint32_t nodes = 1) {
  v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  assignment.set_job_id(42);
  assignment.set_run(1);
  assignment.set_user("ann@lab");
  v1::JobSpec* spec = assignment.mutable_spec();
  spec->set_name("train it");
  spec->set_project("vision");
  spec->set_nodes(nodes);
  spec->set_image("nvcr.io/nvidia/tao:5.0");
  spec->mutable_command()->mutable_argv()->add_args("true");
  return assignment;
}

KubernetesConfig MakeConfig() {
  KubernetesConfig config;
  config.cluster = "lab";
  config.storage_roots["data"] = {.claim = "data-claim", .host_path = "", .mount = "/lustre"};
  config.storage_roots["home"] = {.claim = "", .host_path = "/srv/home", .mount = "/home"};
  return config;
}

KubernetesConfig WithoutRoots() {
  KubernetesConfig config;
  config.cluster = "lab";
  return config;
}

RunObjects Make(const v1::Assignment& assignment, const KubernetesConfig& config = MakeConfig()) {
  absl::StatusOr<RunObjects> objects = MakeObjects(assignment, config, "runs");
  EXPECT_TRUE(objects.ok()) << objects.status();
  return objects.ok() ? *std::move(objects) : RunObjects{};
}

Json PodOf(const RunObjects& objects) { return At(objects.job, "spec/template/spec"); }
Json MainOf(const RunObjects& objects) { return PodOf(objects).at("containers").at(0); }

// "FIELD: why" of the error.
std::string RefusalOf(const v1::Assignment& assignment,
                      const KubernetesConfig& config = MakeConfig()) {
  const absl::Status status = MakeObjects(assignment, config, "runs").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto bad = contract::GetBadRequest(status);
  if (!bad.has_value()) return std::string(ToStd(status.message()));
  return bad->field_violations(0).field() + ": " + bad->field_violations(0).description();
}

std::string FileOf(const RunObjects& objects, const std::string& name) {
  std::string content;
  EXPECT_TRUE(absl::Base64Unescape(TextAt(objects.secret.at("data"), name.c_str()), &content));
  return content;
}

Json FindByName(const Json& list, const std::string& key, const std::string& value) {
  for (const Json& item : list) {
    if (item.value(key, "") == value) return item;
  }
  return nullptr;
}

TEST(ManifestTest, AJobIsMadeSuspendedAndNeverStartsAPodAgain) {
  const RunObjects objects = Make(MakeAssignment());
  EXPECT_EQ(objects.name, "k7m2-42-1");
  EXPECT_EQ(objects.name_space, "runs");
  const Json& spec = objects.job.at("spec");
  EXPECT_EQ(spec.at("suspend"), true);
  EXPECT_EQ(spec.at("backoffLimit"), 0);
  EXPECT_EQ(spec.at("completionMode"), "NonIndexed");
  EXPECT_EQ(spec.at("podReplacementPolicy"), "Failed");
  EXPECT_EQ(spec.at("ttlSecondsAfterFinished"), 604800);
  EXPECT_EQ(spec.at("podFailurePolicy").at("rules").size(), 2u);
  EXPECT_EQ(PodOf(objects).at("restartPolicy"), "Never");
  EXPECT_EQ(PodOf(objects).at("automountServiceAccountToken"), false);
  EXPECT_EQ(PodOf(objects).at("enableServiceLinks"), false);
  EXPECT_FALSE(objects.service.has_value());
  EXPECT_FALSE(objects.pod_group.has_value());
}

TEST(ManifestTest, EveryObjectSaysWhoseRunItIs) {
  const RunObjects objects = Make(MakeAssignment(2));
  for (const Json* object :
       {&objects.job, &objects.secret, &*objects.service, &objects.job.at("spec").at("template")}) {
    const Json& labels = object->at("metadata").at("labels");
    EXPECT_EQ(labels.at(kManagedByLabel), kManagedByMuster);
    EXPECT_EQ(labels.at(kRunLabel), "k7m2-42-1");
    EXPECT_EQ(labels.at(kInstanceLabel), "k7m2");
    EXPECT_EQ(labels.at(kJobLabel), "42");
    EXPECT_EQ(labels.at(kRunNumberLabel), "1");
    EXPECT_EQ(labels.at(kProjectLabel), "vision");
  }
  const Json& annotations = objects.job.at("metadata").at("annotations");
  EXPECT_EQ(annotations.at(kUserAnnotation), "ann@lab");
  EXPECT_EQ(annotations.at(kNameAnnotation), "train it");
}

TEST(ManifestTest, PodsOfSeveralNodesFindEachOtherByName) {
  const RunObjects objects = Make(MakeAssignment(3));
  EXPECT_EQ(objects.job.at("spec").at("completionMode"), "Indexed");
  EXPECT_EQ(objects.job.at("spec").at("completions"), 3);
  EXPECT_EQ(objects.job.at("spec").at("parallelism"), 3);
  EXPECT_EQ(PodOf(objects).at("subdomain"), "k7m2-42-1");
  const Json& service = objects.service->at("spec");
  EXPECT_EQ(service.at("clusterIP"), "None");
  EXPECT_EQ(service.at("publishNotReadyAddresses"), true);
  EXPECT_EQ(service.at("selector").at(kRunLabel), "k7m2-42-1");
  const std::string environment = FileOf(objects, "environment");
  EXPECT_THAT(environment, HasSubstr("export MASTER_ADDR='k7m2-42-1-0.k7m2-42-1'\n"));
  EXPECT_THAT(environment, HasSubstr("export NNODES='3'\n"));
  EXPECT_THAT(environment, HasSubstr("export SKYPILOT_NODE_IPS='k7m2-42-1-0.k7m2-42-1\n"
                                     "k7m2-42-1-1.k7m2-42-1\nk7m2-42-1-2.k7m2-42-1'\n"));
}

TEST(ManifestTest, AListOfHostsThatNoProgramCouldBeGivenIsLeftOut) {
  EXPECT_THAT(FileOf(Make(MakeAssignment(10000)), "environment"),
              testing::Not(HasSubstr("SKYPILOT_NODE_IPS")));
}

TEST(ManifestTest, TheUsersWordsAreInTheSecretAloneAndNoVariableInTheManifest) {
  v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->mutable_command()->mutable_argv()->add_args("s3cret $(X) $$");
  (*assignment.mutable_spec()->mutable_env())["TOKEN"] = "hush $(Y)";
  const RunObjects objects = Make(assignment);
  EXPECT_THAT(objects.job.dump(), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(objects.job.dump(), testing::Not(HasSubstr("hush")));
  EXPECT_FALSE(MainOf(objects).contains("env"));
  EXPECT_EQ(MainOf(objects).at("command"), Json::array({"/bin/sh", "/muster/run/start"}));
  EXPECT_EQ(FileOf(objects, "command.words"), "set -- '/muster/work' 'true' 's3cret $(X) $$'\n");
  EXPECT_THAT(FileOf(objects, "environment"), HasSubstr("export TOKEN='hush $(Y)'\n"));
}

TEST(ManifestTest, CpuAndMemoryAreAlwaysAskedFor) {
  v1::Assignment assignment = MakeAssignment();
  Json resources = MainOf(Make(assignment)).at("resources");
  EXPECT_EQ(resources.at("requests").at("cpu"), "1000m");
  EXPECT_EQ(resources.at("requests").at("memory"), "1073741824");
  EXPECT_EQ(resources.at("limits"), Json({{"memory", "1073741824"}}));
  assignment.mutable_spec()->mutable_resources()->set_cpu_millis(2500);
  assignment.mutable_spec()->mutable_resources()->set_memory_bytes(uint64_t{64} << 30);
  const RunObjects objects = Make(assignment);
  resources = MainOf(objects).at("resources");
  EXPECT_EQ(resources.at("requests").at("cpu"), "2500m");
  EXPECT_EQ(resources.at("limits").at("memory"), "68719476736");
  // Half of it, but no more than 16 GiB.
  EXPECT_EQ(FindByName(PodOf(objects).at("volumes"), "name", "muster-shm").at("emptyDir"),
            Json({{"medium", "Memory"}, {"sizeLimit", "17179869184"}}));
}

TEST(ManifestTest, AGpuTypeIsAResourceOrANodesLabel) {
  KubernetesConfig config = MakeConfig();
  config.gpu_resources = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb"};
  v1::Assignment assignment = MakeAssignment();
  v1::GpuRequest* gpus = assignment.mutable_spec()->mutable_resources()->add_gpus();
  gpus->set_count_millis(2000);
  EXPECT_EQ(MainOf(Make(assignment, config)).at("resources").at("limits").at("nvidia.com/gpu"),
            "2");
  EXPECT_FALSE(PodOf(Make(assignment, config)).contains("affinity"));
  for (const char* type : {"nvidia.com/mig-1g.5gb", "mig-1g.5gb", "MIG-1g.5GB"}) {
    gpus->set_type(type);
    const RunObjects objects = Make(assignment, config);
    EXPECT_EQ(MainOf(objects).at("resources").at("limits").at("nvidia.com/mig-1g.5gb"), "2");
    EXPECT_FALSE(PodOf(objects).contains("affinity"));
  }
  gpus->set_type("NVIDIA-H100-80GB-HBM3");
  const RunObjects objects = Make(assignment, config);
  EXPECT_EQ(MainOf(objects).at("resources").at("limits").at("nvidia.com/gpu"), "2");
  EXPECT_EQ(PodOf(objects)
                .at("affinity")
                .at("nodeAffinity")
                .at("requiredDuringSchedulingIgnoredDuringExecution")
                .at("nodeSelectorTerms")
                .at(0)
                .at("matchExpressions")
                .at(0),
            Json({{"key", "nvidia.com/gpu.product"},
                  {"operator", "In"},
                  {"values", Json::array({"NVIDIA-H100-80GB-HBM3"})}}));
}

TEST(ManifestTest, NodesWhereEarlierRunsFailedAreAvoidedByName) {
  v1::Assignment assignment = MakeAssignment();
  assignment.add_excluded_nodes("node-1");
  assignment.add_excluded_nodes("node-2");
  const Json fields = PodOf(Make(assignment))
                          .at("affinity")
                          .at("nodeAffinity")
                          .at("requiredDuringSchedulingIgnoredDuringExecution")
                          .at("nodeSelectorTerms")
                          .at(0)
                          .at("matchFields");
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(
      fields.at(1),
      Json({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({"node-2"})}}));
}

TEST(ManifestTest, OnlyAPodThatAsksForGpusToleratesTheirTaint) {
  v1::Assignment assignment = MakeAssignment(1);
  assignment.mutable_spec()->mutable_resources()->clear_gpus();
  EXPECT_FALSE(PodOf(Make(assignment)).contains("tolerations"));
  assignment.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(1000);
  EXPECT_EQ(PodOf(Make(assignment)).at("tolerations"),
            Json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}}));
}

TEST(ManifestTest, TheCredentialsForImagesAreNoVolume) {
  v1::Assignment assignment = MakeAssignment(1);
  v1::KubernetesVolume* volume = assignment.mutable_spec()->mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/secret");
  volume->set_secret("registry");
  KubernetesConfig config = MakeConfig();
  Make(assignment, config);
  config.image_pull_secrets = {"other", "registry"};
  EXPECT_THAT(RefusalOf(assignment, config),
              HasSubstr("kubernetes.volumes[0].secret: \"registry\" holds the credentials"));
}

TEST(ManifestTest, EverythingOfTheKubernetesSectionReachesThePod) {
  v1::Assignment assignment = MakeAssignment(2);
  v1::KubernetesOptions* options = assignment.mutable_spec()->mutable_kubernetes();
  options->set_namespace_("lab");
  options->set_scheduler_name("kai");
  options->set_priority_class("high");
  options->set_runtime_class("nvidia");
  options->set_service_account("trainer");
  (*options->mutable_node_selector())["zone"] = "a";
  options->add_tolerations()->set_key("gpu");
  v1::KubernetesNodeRequirement* required = options->add_required_nodes();
  required->set_key("rack");
  required->set_operator_("In");
  required->add_values("r1");
  options->add_preferred_nodes()->mutable_requirement()->set_key("fast");
  options->set_spread(v1::KUBERNETES_SPREAD_REQUIRED);
  (*options->mutable_labels())["team"] = "vision";
  (*options->mutable_annotations())["note"] = "hi";
  options->mutable_termination_grace()->set_seconds(90);
  options->add_image_pull_secrets("pull");
  options->set_shm_bytes(1 << 20);
  options->mutable_security_context()->set_run_as_user(1000);
  options->mutable_security_context()->set_fs_group(2000);
  options->mutable_security_context()->add_drop_capabilities("ALL");
  options->mutable_security_context()->set_seccomp_runtime_default(true);
  assignment.mutable_spec()->mutable_time_limit()->set_seconds(60);
  assignment.mutable_spec()->mutable_time_limit()->set_nanos(1);
  const RunObjects objects = Make(assignment);
  EXPECT_EQ(objects.name_space, "lab");
  const Json pod = PodOf(objects);
  EXPECT_EQ(pod.at("schedulerName"), "kai");
  EXPECT_EQ(pod.at("priorityClassName"), "high");
  EXPECT_EQ(pod.at("runtimeClassName"), "nvidia");
  EXPECT_EQ(pod.at("serviceAccountName"), "trainer");
  EXPECT_EQ(pod.at("nodeSelector"), Json({{"zone", "a"}}));
  EXPECT_EQ(pod.at("tolerations").at(0), Json({{"key", "gpu"}, {"operator", "Exists"}}));
  EXPECT_EQ(pod.at("terminationGracePeriodSeconds"), 90);
  EXPECT_EQ(pod.at("activeDeadlineSeconds"), 61);
  EXPECT_EQ(pod.at("imagePullSecrets").at(0).at("name"), "pull");
  EXPECT_EQ(pod.at("securityContext"), Json({{"fsGroup", 2000}}));
  EXPECT_TRUE(pod.at("affinity").contains("podAntiAffinity"));
  EXPECT_EQ(pod.at("affinity")
                .at("nodeAffinity")
                .at("preferredDuringSchedulingIgnoredDuringExecution")
                .at(0)
                .at("weight"),
            1);
  EXPECT_EQ(MainOf(objects).at("securityContext"),
            Json({{"runAsUser", 1000},
                  {"capabilities", {{"drop", Json::array({"ALL"})}}},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}}));
  const Json& metadata = objects.job.at("spec").at("template").at("metadata");
  EXPECT_EQ(metadata.at("labels").at("team"), "vision");
  EXPECT_EQ(metadata.at("annotations").at("note"), "hi");
}

TEST(ManifestTest, APoolIsANamespaceUnlessTheSectionNamesOne) {
  v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->mutable_placement()->set_pool("pool");
  EXPECT_EQ(Make(assignment).name_space, "pool");
  assignment.mutable_spec()->mutable_kubernetes()->set_namespace_("own");
  EXPECT_EQ(Make(assignment).name_space, "own");
}

// So that admission which takes no Job without a queue takes it, and Kueue puts it into none.
TEST(ManifestTest, AJobNamesItsQueueFromTheStartAndAHeldOneAQueueThatNobodyMakes) {
  v1::Assignment assignment = MakeAssignment();
  EXPECT_FALSE(Make(assignment).job.at("metadata").at("labels").contains(kQueueLabel));
  assignment.mutable_spec()->mutable_kubernetes()->set_queue("team");
  EXPECT_EQ(Make(assignment).job.at("metadata").at("labels").at(kQueueLabel), "team");
  assignment.set_held(true);
  EXPECT_EQ(Make(assignment).job.at("metadata").at("labels").at(kQueueLabel), "muster-held");
}

TEST(ManifestTest, AGangIsVolcanosOrAPodGroup) {
  v1::Assignment assignment = MakeAssignment(2);
  assignment.mutable_spec()->mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_VOLCANO);
  RunObjects objects = Make(assignment);
  EXPECT_EQ(PodOf(objects).at("schedulerName"), "volcano");
  EXPECT_EQ(objects.job.at("spec")
                .at("template")
                .at("metadata")
                .at("annotations")
                .at("scheduling.k8s.io/group-name"),
            "k7m2-42-1");
  EXPECT_EQ(objects.pod_group->at("apiVersion"), "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(objects.pod_group->at("spec"), Json({{"minMember", 2}}));
  assignment.mutable_spec()->mutable_kubernetes()->set_gang(v1::KUBERNETES_GANG_POD_GROUP);
  objects = Make(assignment);
  EXPECT_EQ(objects.pod_group->at("apiVersion"), "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(objects.pod_group->at("spec").at("minMember"), 2);
  EXPECT_EQ(objects.job.at("spec")
                .at("template")
                .at("metadata")
                .at("labels")
                .at("scheduling.x-k8s.io/pod-group"),
            "k7m2-42-1");
}

// Its controllers would copy that into the group that they make, for pods that name none.
TEST(ManifestTest, AVolcanosGroupHasTheQueueThePriorityAndTheAnnotationsOfTheJob) {
  v1::Assignment assignment = MakeAssignment(2);
  v1::KubernetesOptions& options = *assignment.mutable_spec()->mutable_kubernetes();
  options.set_gang(v1::KUBERNETES_GANG_VOLCANO);
  options.set_priority_class("high");
  (*options.mutable_annotations())["scheduling.volcano.sh/queue-name"] = "team";
  (*options.mutable_annotations())["volcano.sh/sla-waiting-time"] = "1h";
  const RunObjects objects = Make(assignment);
  EXPECT_EQ(objects.pod_group->at("spec"),
            Json({{"minMember", 2}, {"queue", "team"}, {"priorityClassName", "high"}}));
  EXPECT_EQ(objects.pod_group->at("metadata").at("annotations").at("volcano.sh/sla-waiting-time"),
            "1h");
}

TEST(ManifestTest, DataIsMountedFromTheRootThatHasItAndLookedForBefore) {
  v1::Assignment assignment = MakeAssignment();
  v1::Input* input = assignment.mutable_spec()->add_inputs();
  input->set_uri("lustre:///lustre/sets/cats");
  input->set_path("/data");
  assignment.mutable_spec()->set_results_directory("slurm://data/out/7");
  const RunObjects objects = Make(assignment);
  const Json mounts = MainOf(objects).at("volumeMounts");
  const Json data = FindByName(mounts, "mountPath", "/data");
  EXPECT_EQ(data.at("subPath"), "sets/cats");
  EXPECT_EQ(data.at("readOnly"), true);
  const Json results = FindByName(mounts, "mountPath", "/lustre/out/7");
  EXPECT_EQ(results.at("subPath"), "out/7");
  EXPECT_FALSE(results.contains("readOnly"));
  // One volume, however often it is mounted.
  EXPECT_EQ(results.at("name"), data.at("name"));
  EXPECT_EQ(FindByName(PodOf(objects).at("volumes"), "name", data.at("name"))
                .at("persistentVolumeClaim")
                .at("claimName"),
            "data-claim");
  const Json look = PodOf(objects).at("initContainers").at(0);
  EXPECT_EQ(look.at("name"), kStorageContainer);
  EXPECT_EQ(look.at("terminationMessagePolicy"), "FallbackToLogsOnError");
  EXPECT_EQ(FindByName(look.at("volumeMounts"), "mountPath", "/muster/roots/data").at("name"),
            data.at("name"));
  EXPECT_EQ(FileOf(objects, "storage.words"),
            "muster_need inputs[0].uri '/lustre/sets/cats' '/muster/roots/data/sets/cats'\n"
            "muster_make results_directory '/lustre/out/7' '/muster/roots/data/out/7'\n");
  EXPECT_THAT(FileOf(objects, "environment"),
              HasSubstr("export MUSTER_RESULTS_DIR='/lustre/out/7'\n"));
}

TEST(ManifestTest, ARootThatAVariableLeadsIntoIsShownWhole) {
  v1::Assignment assignment = MakeAssignment();
  (*assignment.mutable_spec()->mutable_env())["OUT"] = "slurm://home/ann";
  const RunObjects objects = Make(assignment);
  const Json mount = FindByName(MainOf(objects).at("volumeMounts"), "mountPath", "/home");
  EXPECT_EQ(FindByName(PodOf(objects).at("volumes"), "name", mount.at("name")).at("hostPath"),
            Json({{"path", "/srv/home"}, {"type", "Directory"}}));
  EXPECT_THAT(FileOf(objects, "environment"), HasSubstr("export OUT='/home/ann'\n"));
}

TEST(ManifestTest, DataThatNoRootHasIsRefusedWithTheRemedy) {
  v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->add_inputs()->set_uri("lustre:///scratch/x");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("inputs[0].uri: "));
  EXPECT_THAT(RefusalOf(assignment, WithoutRoots()),
              testing::AllOf(HasSubstr("inputs[0].uri: "), HasSubstr("/scratch/x"),
                             HasSubstr("kubernetes.storage_roots")));
  v1::Assignment variable = MakeAssignment();
  (*variable.mutable_spec()->mutable_env())["IN"] = "lustre:///scratch/x";
  EXPECT_THAT(RefusalOf(variable, WithoutRoots()), HasSubstr("kubernetes.storage_roots"));
}

TEST(ManifestTest, WhatTheOperatorDoesNotAllowIsRefusedByName) {
  v1::Assignment assignment = MakeAssignment();
  v1::KubernetesVolume* volume = assignment.mutable_spec()->mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/x");
  volume->set_host_path("/etc");
  EXPECT_THAT(RefusalOf(assignment),
              testing::AllOf(HasSubstr("kubernetes.volumes[0].host_path: \"/etc\""),
                             HasSubstr("kubernetes.allow_host_path")));
  v1::Assignment network = MakeAssignment();
  network.mutable_spec()->mutable_kubernetes()->set_host_network(true);
  EXPECT_THAT(RefusalOf(network), HasSubstr("kubernetes.allow_host_network"));
  v1::Assignment privileged = MakeAssignment();
  privileged.mutable_spec()->mutable_kubernetes()->mutable_security_context()->set_privileged(true);
  EXPECT_THAT(RefusalOf(privileged), HasSubstr("kubernetes.allow_privileged"));
  KubernetesConfig config = MakeConfig();
  config.allow_host_path = config.allow_host_network = config.allow_privileged = true;
  EXPECT_EQ(PodOf(Make(network, config)).at("dnsPolicy"), "ClusterFirstWithHostNet");
  EXPECT_EQ(MainOf(Make(privileged, config)).at("securityContext").at("privileged"), true);
  EXPECT_THAT(PodOf(Make(assignment, config)).dump(), HasSubstr(R"("hostPath":{"path":"/etc"})"));
}

TEST(ManifestTest, VolumesAreMountedWhereTheyAreWantedAndOnceEach) {
  v1::Assignment assignment = MakeAssignment();
  v1::KubernetesOptions* options = assignment.mutable_spec()->mutable_kubernetes();
  v1::KubernetesVolume* claim = options->add_volumes();
  claim->set_mount_path("/a");
  claim->set_sub_path("sub");
  claim->set_claim("data-claim");
  v1::KubernetesVolume* map = options->add_volumes();
  map->set_mount_path("/b");
  map->set_config_map("map");
  v1::KubernetesVolume* shm = options->add_volumes();
  shm->set_mount_path("/dev/shm");
  shm->mutable_empty_directory()->set_in_memory(true);
  const RunObjects objects = Make(assignment);
  EXPECT_EQ(FindByName(MainOf(objects).at("volumeMounts"), "mountPath", "/a").at("subPath"), "sub");
  EXPECT_EQ(FindByName(MainOf(objects).at("volumeMounts"), "mountPath", "/b").at("readOnly"), true);
  EXPECT_TRUE(FindByName(PodOf(objects).at("volumes"), "name", "muster-shm").is_null());
  map->set_mount_path("/a");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("kubernetes.volumes[1].mount_path: \"/a\""));
  map->set_mount_path("/muster/run");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("kubernetes.volumes[1].mount_path"));
}

TEST(ManifestTest, AJobWithoutAnImageGetsTheOperatorsOrIsRefused) {
  v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->clear_image();
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("image: "));
  KubernetesConfig config = MakeConfig();
  config.default_image = "debian:12";
  EXPECT_EQ(MainOf(Make(assignment, config)).at("image"), "docker.io/library/debian:12");
  assignment.mutable_spec()->set_image("/images/x.sqsh");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("image: \"/images/x.sqsh\" is a file"));
}

TEST(ManifestTest, WhatASecretDoesNotHoldIsRefusedWithTheFieldThatHasTheMost) {
  v1::Assignment assignment = MakeAssignment();
  // Each quote becomes five bytes.
  (*assignment.mutable_spec()->mutable_env())["X"] = std::string(300'000, '\'');
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("env: "));
}

TEST(ManifestTest, RolesAreRangesOfIndexesWithAnEnvironmentEach) {
  v1::Assignment assignment = MakeAssignment(3);
  assignment.mutable_spec()->clear_command();
  v1::Role* first = assignment.mutable_spec()->add_roles();
  first->set_name("learner");
  first->set_nodes(1);
  first->mutable_command()->mutable_argv()->add_args("learn");
  v1::Role* second = assignment.mutable_spec()->add_roles();
  second->set_name("roll-out");
  second->set_first_node(1);
  second->set_nodes(2);
  second->mutable_command()->mutable_argv()->add_args("roll");
  const RunObjects objects = Make(assignment);
  EXPECT_EQ(objects.job.at("spec").at("completions"), 3);
  EXPECT_EQ(FileOf(objects, "roles"), "0 0\n1 1\n");
  EXPECT_EQ(FileOf(objects, "role-1.words"), "set -- '/muster/work' 'roll'\n");
  const std::string environment = FileOf(objects, "role-1.environment");
  EXPECT_THAT(environment, HasSubstr("export MUSTER_ROLE='roll-out'\n"));
  EXPECT_THAT(environment, HasSubstr("export NNODES='2'\n"));
  EXPECT_THAT(environment, HasSubstr("export MASTER_ADDR='k7m2-42-1-1.k7m2-42-1'\n"));
  EXPECT_THAT(environment, HasSubstr("export MUSTER_ROLE_LEARNER_NODES='k7m2-42-1-0.k7m2-42-1'\n"));
  second->set_first_node(0);
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("roles[1].first_node: 0"));
}

TEST(ManifestTest, TheRolesThatLeadDecideOfTheJobsSuccess) {
  v1::Assignment assignment = MakeAssignment(5);
  assignment.mutable_spec()->clear_command();
  const std::pair<const char*, uint32_t> roles[] = {
      {"controller", 1}, {"trainer", 3}, {"actor", 1}};
  uint32_t next = 0;
  for (const auto& [name, nodes] : roles) {
    v1::Role* role = assignment.mutable_spec()->add_roles();
    role->set_name(name);
    role->set_first_node(next);
    role->set_nodes(nodes);
    role->mutable_command()->mutable_argv()->add_args(name);
    next += nodes;
  }
  EXPECT_FALSE(Make(assignment).job.at("spec").contains("successPolicy"));
  assignment.mutable_spec()->mutable_roles(0)->set_leads(true);
  assignment.mutable_spec()->mutable_roles(1)->set_leads(true);
  EXPECT_EQ(Make(assignment).job.at("spec").at("successPolicy"),
            Json({{"rules", Json::array({{{"succeededIndexes", "0,1,2,3"}}})}}));
}

TEST(ManifestTest, WhatAJobOwnsGoesWithIt) {
  const RunObjects objects = Make(MakeAssignment());
  EXPECT_EQ(OwnedBy(objects.secret, objects.name, "uid-1").at("metadata").at("ownerReferences"),
            Json::array({{{"apiVersion", "batch/v1"},
                          {"kind", "Job"},
                          {"name", "k7m2-42-1"},
                          {"uid", "uid-1"},
                          {"controller", true},
                          {"blockOwnerDeletion", true}}}));
}

}  // namespace
}  // namespace muster::kubernetes
