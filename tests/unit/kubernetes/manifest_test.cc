#include "agents/kubernetes/manifest/manifest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/made_objects.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

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
  agent::v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->mutable_command()->mutable_argv()->add_args("s3cret $(X) $$");
  (*assignment.mutable_spec()->mutable_env())["TOKEN"] = "hush $(Y)";
  const RunObjects objects = Make(assignment);
  EXPECT_THAT(objects.job.dump(), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(objects.job.dump(), testing::Not(HasSubstr("hush")));
  ASSERT_EQ(MainOf(objects).at("env").size(), 1u);
  EXPECT_EQ(TextAt(MainOf(objects).at("env")[0], "valueFrom/fieldRef/fieldPath"),
            "metadata.labels['batch.kubernetes.io/controller-uid']");
  EXPECT_EQ(MainOf(objects).at("command"), Json::array({"/bin/sh", "/muster/run/start"}));
  EXPECT_EQ(FileOf(objects, "command.words"), "set -- '/muster/work' 'true' 's3cret $(X) $$'\n");
  EXPECT_THAT(FileOf(objects, "environment"), HasSubstr("export TOKEN='hush $(Y)'\n"));
}

TEST(ManifestTest, CpuAndMemoryAreAlwaysAskedFor) {
  agent::v1::Assignment assignment = MakeAssignment();
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
  agent::v1::Assignment assignment = MakeAssignment();
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
  agent::v1::Assignment assignment = MakeAssignment();
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
  agent::v1::Assignment assignment = MakeAssignment(1);
  assignment.mutable_spec()->mutable_resources()->clear_gpus();
  EXPECT_FALSE(PodOf(Make(assignment)).contains("tolerations"));
  assignment.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(1000);
  EXPECT_EQ(PodOf(Make(assignment)).at("tolerations"),
            Json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}}));
}

TEST(ManifestTest, EverythingOfTheKubernetesSectionReachesThePod) {
  agent::v1::Assignment assignment = MakeAssignment(2);
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
  agent::v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->mutable_placement()->set_pool("pool");
  EXPECT_EQ(Make(assignment).name_space, "pool");
  assignment.mutable_spec()->mutable_kubernetes()->set_namespace_("own");
  EXPECT_EQ(Make(assignment).name_space, "own");
}

// An admission that takes no Job without a queue takes it, and Kueue puts it into none.
TEST(ManifestTest, AJobNamesItsQueueFromTheStartAndAHeldOneAQueueThatNobodyMakes) {
  agent::v1::Assignment assignment = MakeAssignment();
  EXPECT_FALSE(Make(assignment).job.at("metadata").at("labels").contains(kQueueLabel));
  assignment.mutable_spec()->mutable_kubernetes()->set_queue("team");
  EXPECT_EQ(Make(assignment).job.at("metadata").at("labels").at(kQueueLabel), "team");
  assignment.set_held(true);
  EXPECT_EQ(Make(assignment).job.at("metadata").at("labels").at(kQueueLabel), "muster-held");
}

TEST(ManifestTest, AGangIsVolcanosOrAPodGroup) {
  agent::v1::Assignment assignment = MakeAssignment(2);
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
  agent::v1::Assignment assignment = MakeAssignment(2);
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

TEST(ManifestTest, WhatTheOperatorDoesNotAllowIsRefusedByName) {
  agent::v1::Assignment assignment = MakeAssignment();
  v1::KubernetesVolume* volume = assignment.mutable_spec()->mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/x");
  volume->set_host_path("/etc");
  EXPECT_THAT(RefusalOf(assignment),
              testing::AllOf(HasSubstr("kubernetes.volumes[0].host_path: \"/etc\""),
                             HasSubstr("kubernetes.allow_host_path")));
  agent::v1::Assignment network = MakeAssignment();
  network.mutable_spec()->mutable_kubernetes()->set_host_network(true);
  EXPECT_THAT(RefusalOf(network), HasSubstr("kubernetes.allow_host_network"));
  agent::v1::Assignment privileged = MakeAssignment();
  privileged.mutable_spec()->mutable_kubernetes()->mutable_security_context()->set_privileged(true);
  EXPECT_THAT(RefusalOf(privileged), HasSubstr("kubernetes.allow_privileged"));
  KubernetesConfig config = MakeConfig();
  config.allow_host_path = config.allow_host_network = config.allow_privileged = true;
  EXPECT_EQ(PodOf(Make(network, config)).at("dnsPolicy"), "ClusterFirstWithHostNet");
  EXPECT_EQ(MainOf(Make(privileged, config)).at("securityContext").at("privileged"), true);
  EXPECT_THAT(PodOf(Make(assignment, config)).dump(), HasSubstr(R"("hostPath":{"path":"/etc"})"));
}

TEST(ManifestTest, AJobWithoutAnImageGetsTheOperatorsOrIsRefused) {
  agent::v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->clear_image();
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("image: "));
  KubernetesConfig config = MakeConfig();
  config.default_image = "debian:12";
  EXPECT_EQ(MainOf(Make(assignment, config)).at("image"), "docker.io/library/debian:12");
  assignment.mutable_spec()->set_image("/images/x.sqsh");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("image: \"/images/x.sqsh\" is a file"));
}

TEST(ManifestTest, WhatASecretDoesNotHoldIsRefusedWithTheFieldThatHasTheMost) {
  agent::v1::Assignment assignment = MakeAssignment();
  // Each quote becomes five bytes.
  (*assignment.mutable_spec()->mutable_env())["X"] = std::string(300'000, '\'');
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("env: "));
}

TEST(ManifestTest, RolesAreRangesOfIndexesWithAnEnvironmentEach) {
  agent::v1::Assignment assignment = MakeAssignment(3);
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
  agent::v1::Assignment assignment = MakeAssignment(5);
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
