// Tests which parts of storage, volumes and Secrets reach the pods of a run.
#include "agents/kubernetes/manifest/storage_places.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/made_objects.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

TEST(ManifestTest, TheCredentialsForImagesAreNoVolume) {
  agent::v1::Assignment assignment = MakeAssignment(1);
  v1::KubernetesVolume* volume = assignment.mutable_spec()->mutable_kubernetes()->add_volumes();
  volume->set_mount_path("/secret");
  volume->set_secret("registry");
  KubernetesConfig config = MakeConfig();
  Make(assignment, config);
  config.image_pull_secrets = {"other", "registry"};
  EXPECT_THAT(RefusalOf(assignment, config),
              HasSubstr("kubernetes.volumes[0].secret: \"registry\" holds the credentials"));
}

TEST(ManifestTest, DataIsMountedFromTheRootThatHasItAndLookedForBefore) {
  agent::v1::Assignment assignment = MakeAssignment();
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
  EXPECT_EQ(look.at("env"), MainOf(objects).at("env")) << "the seal of its records";
  EXPECT_FALSE(look.contains("terminationMessagePolicy")) << "its output is no record";
  EXPECT_EQ(FindByName(look.at("volumeMounts"), "mountPath", "/muster/roots/data").at("name"),
            data.at("name"));
  EXPECT_EQ(FileOf(objects, "storage.words"),
            "muster_need inputs[0].uri '/lustre/sets/cats' '/muster/roots/data/sets/cats'\n"
            "muster_make results_directory '/lustre/out/7' '/muster/roots/data/out/7'\n");
  EXPECT_THAT(FileOf(objects, "environment"),
              HasSubstr("export MUSTER_RESULTS_DIR='/lustre/out/7'\n"));
}

TEST(ManifestTest, ARootThatAVariableLeadsIntoIsShownWhole) {
  agent::v1::Assignment assignment = MakeAssignment();
  (*assignment.mutable_spec()->mutable_env())["OUT"] = "slurm://home/ann";
  const RunObjects objects = Make(assignment);
  const Json mount = FindByName(MainOf(objects).at("volumeMounts"), "mountPath", "/home");
  EXPECT_EQ(FindByName(PodOf(objects).at("volumes"), "name", mount.at("name")).at("hostPath"),
            Json({{"path", "/srv/home"}, {"type", "Directory"}}));
  EXPECT_THAT(FileOf(objects, "environment"), HasSubstr("export OUT='/home/ann'\n"));
}

TEST(ManifestTest, DataThatNoRootHasIsRefusedWithTheRemedy) {
  agent::v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->add_inputs()->set_uri("lustre:///scratch/x");
  EXPECT_THAT(RefusalOf(assignment), HasSubstr("inputs[0].uri: "));
  EXPECT_THAT(RefusalOf(assignment, WithoutRoots()),
              testing::AllOf(HasSubstr("inputs[0].uri: "), HasSubstr("/scratch/x"),
                             HasSubstr("kubernetes.storage_roots")));
  agent::v1::Assignment variable = MakeAssignment();
  (*variable.mutable_spec()->mutable_env())["IN"] = "lustre:///scratch/x";
  EXPECT_THAT(RefusalOf(variable, WithoutRoots()), HasSubstr("kubernetes.storage_roots"));
}

TEST(ManifestTest, VolumesAreMountedWhereTheyAreWantedAndOnceEach) {
  agent::v1::Assignment assignment = MakeAssignment();
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

TEST(ManifestTest, StatusJsonIsTakenWhereTheAgentSeesTheResults) {
  agent::v1::Assignment assignment = MakeAssignment();
  assignment.mutable_spec()->set_status_json(true);
  assignment.mutable_spec()->set_results_directory("slurm://data/out/7");
  KubernetesConfig config = MakeConfig();
  EXPECT_THAT(RefusalOf(assignment, config),
              HasSubstr("status_json: is read by the agent, and that of cluster lab does not see "
                        "the results in \"/lustre/out/7\""));
  config.agent_roots["data"] = "/mnt/data";
  Make(assignment, config);
  assignment.mutable_spec()->clear_results_directory();
  EXPECT_THAT(RefusalOf(assignment, config), HasSubstr("status_json: is looked for in"));
  config.results_root = "slurm://data/results";
  Make(assignment, config);
}

TEST(StoragePlacesTest, TheDeepestRootThatHasAPathTellsWhereTheAgentSeesIt) {
  KubernetesConfig config = MakeConfig();
  config.storage_roots["deep"] = {.claim = "deep", .host_path = "", .mount = "/lustre/deep"};
  config.agent_roots = {{"data", "/mnt/data"}};
  const auto place = FindReadable(config, "/lustre/out/7/");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->root, "/mnt/data");
  EXPECT_EQ(place->below, "out/7");
  EXPECT_EQ(FindReadable(config, "/lustre")->below, "");
  EXPECT_FALSE(FindReadable(config, "/lustre/deep/7").has_value());
  EXPECT_FALSE(FindReadable(config, "/lustrer/7").has_value());
  EXPECT_FALSE(FindReadable(config, "/home/7").has_value());
}

}  // namespace
}  // namespace muster::kubernetes
