#include "broker/core/fit.h"

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Verdict = Fit::Verdict;

PutCluster Cluster(std::vector<v1::Pool> pools, v1::ClusterKind kind = v1::CLUSTER_KIND_SLURM) {
  PutCluster cluster;
  cluster.name = "here";
  cluster.kind = kind;
  for (v1::Pool& pool : pools) *cluster.inventory.add_pools() = std::move(pool);
  return cluster;
}

// A fit, and the sentence of what is lacking.
struct Judged {
  Verdict verdict = Verdict::kFits;
  std::string lacks;
  std::string resource;

  bool now() const { return Fit{verdict}.now(); }
  bool ever() const { return Fit{verdict}.ever(); }
};

Judged Judge(const Requirements& job, const PutCluster& cluster) {
  const Fit fit = CheckFit(job, cluster, {});
  const auto shortage = contract::ShortageOf(fit.lack);
  EXPECT_EQ(fit.lack.code == contract::LackCode::kNothing, fit.now());
  return {fit.verdict, contract::SentenceOf(fit.lack), shortage ? shortage->resource() : ""};
}

TEST(Fit, ASmallJobFitsTheDefaultPool) {
  EXPECT_TRUE(Judge(RequirementsOf(Spec()), Cluster({PoolOf("cpu")})).now());
  EXPECT_EQ(Judge(RequirementsOf(Spec()), Cluster({PoolOf("cpu")})).lacks, "");
}

TEST(Fit, TheDefaultPoolIsTheOneMarkedSoElseTheFirst) {
  const v1::Pool small = PoolOf("small", {.cpus = 1}, false);
  const v1::Pool large = PoolOf("large", {.cpus = 64}, true);
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_cpu_millis(32'000);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({small, large})).now());
  v1::Pool unmarked = large;
  unmarked.set_is_default(false);
  EXPECT_FALSE(Judge(RequirementsOf(spec), Cluster({small, unmarked})).now());
  EXPECT_EQ(Judge(RequirementsOf(spec), Cluster({})).verdict, Verdict::kNoPool);
}

TEST(Fit, AnyOfSeveralDefaultPoolsWillDoAndTheLargestIsToldOtherwise) {
  const PutCluster cluster = Cluster({PoolOf("polar", {.count = 2}), PoolOf("polar3", {.count = 3}),
                                      PoolOf("large", {.count = 9}, false)});
  v1::JobSpec spec = Spec();
  spec.set_nodes(3);
  EXPECT_TRUE(Judge(RequirementsOf(spec), cluster).now());
  spec.set_nodes(4);
  const Judged four = Judge(RequirementsOf(spec), cluster);
  EXPECT_EQ(four.verdict, Verdict::kTooLittle);
  EXPECT_THAT(four.lacks, HasSubstr("pool \"polar3\" has 3 nodes"));
  EXPECT_THAT(four.lacks, HasSubstr("ask for at most 3 (nodes)"));
  spec.mutable_slurm()->set_partition("polar3,polar");
  EXPECT_EQ(Judge(RequirementsOf(spec), cluster).lacks, four.lacks) << "likewise of a list";
  spec.set_nodes(3);
  spec.mutable_slurm()->clear_partition();
  spec.mutable_placement()->set_pool("polar3");
  EXPECT_TRUE(Judge(RequirementsOf(spec), cluster).now());
  spec.mutable_placement()->set_pool("polar");
  EXPECT_FALSE(Judge(RequirementsOf(spec), cluster).ever());
}

TEST(Fit, ADefaultPoolThatIsDownHidesNoOther) {
  v1::Pool down = PoolOf("polar");
  down.set_available(false);
  EXPECT_TRUE(Judge(RequirementsOf(Spec()), Cluster({down, PoolOf("polar3")})).now());
}

TEST(Fit, OtherClustersAreNotNamed) {
  EXPECT_EQ(Judge(RequirementsOf(SpecOn("there")), Cluster({PoolOf("cpu")})).verdict,
            Verdict::kNotNamed);
  EXPECT_TRUE(Judge(RequirementsOf(SpecOn("here")), Cluster({PoolOf("cpu")})).now());
}

TEST(Fit, ASlurmSectionNeedsSlurm) {
  v1::JobSpec spec = Spec();
  spec.mutable_slurm()->set_account("a");
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")})).now());
  const Judged fit =
      Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES));
  EXPECT_EQ(fit.verdict, Verdict::kWrongKind);
  EXPECT_THAT(fit.lacks, HasSubstr("machines"));
}

TEST(Fit, OnKubernetesTheGpusOfAResourceAreThoseOfAnyLabel) {
  v1::Pool pool = PoolOf("lab", {.gpus = {{"NVIDIA-H100-80GB-HBM3", 4}}});
  for (const char* type : {"nvidia.com/gpu", "gpu", "GPU"}) {
    const v1::JobSpec spec = SpecWithGpus(type, 4);
    EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool}, v1::CLUSTER_KIND_KUBERNETES)).now())
        << type;
    EXPECT_FALSE(Judge(RequirementsOf(spec), Cluster({pool})).ever()) << type;
  }
  pool = PoolOf("lab", {.gpus = {{"nvidia.com/mig-1g.5gb", 4}}});
  EXPECT_FALSE(
      Judge(RequirementsOf(SpecWithGpus("gpu", 1)), Cluster({pool}, v1::CLUSTER_KIND_KUBERNETES))
          .ever());
}

TEST(Fit, AnUnknownGpuTypeIsToldWithThoseThatThereAre) {
  const v1::Pool pool = PoolOf("lab", {.gpus = {{"NVIDIA-H100-80GB-HBM3", 4}, {"a100", 2}}});
  EXPECT_EQ(
      Judge(RequirementsOf(SpecWithGpus("H100", 1)), Cluster({pool})).lacks,
      "pool \"lab\" has no GPUs of type H100 (it has NVIDIA-H100-80GB-HBM3, a100); ask for one "
      "of these by its whole name: NVIDIA-H100-80GB-HBM3:1 (resources.gpus, --gpus or a SkyPilot "
      "task's accelerators; with sbatch --gres=gpu:NVIDIA-H100-80GB-HBM3:1)");
  EXPECT_EQ(Judge(RequirementsOf(SpecWithGpus("H100", 1)), Cluster({PoolOf("cpu")})).lacks,
            "pool \"cpu\" has no GPUs of type H100; choose another pool or cluster, or leave "
            "out the GPUs (resources.gpus)");
}

TEST(Fit, OnKubernetesAPartOfALabelWillDoThatNoOtherHas) {
  v1::Pool pool =
      PoolOf("lab", {.gpus = {{"NVIDIA-H100-80GB-HBM3", 4}, {"nvidia.com/mig-h100", 2}}});
  const auto fit = [&](uint32_t count) {
    return Judge(RequirementsOf(SpecWithGpus("h100", count)),
                 Cluster({pool}, v1::CLUSTER_KIND_KUBERNETES));
  };
  EXPECT_TRUE(fit(4).now());
  EXPECT_THAT(fit(5).lacks, HasSubstr("has at most 4 GPUs of type NVIDIA-H100-80GB-HBM3"));
  EXPECT_FALSE(Judge(RequirementsOf(SpecWithGpus("h100", 1)), Cluster({pool})).ever())
      << "not of Slurm's";
  *pool.add_node_groups() = PoolOf("", {.gpus = {{"NVIDIA-H100-PCIe", 8}}}).node_groups(0);
  EXPECT_FALSE(fit(1).ever());
  EXPECT_THAT(fit(1).lacks, HasSubstr("pool \"lab\": GPUs of type \"h100\" may be "
                                      "NVIDIA-H100-80GB-HBM3 or NVIDIA-H100-PCIe; ask for"));
}

TEST(Fit, AJobOverItsNamespacesWholeQuotaNeverFits) {
  PutCluster cluster = Cluster({PoolOf("lab")}, v1::CLUSTER_KIND_KUBERNETES);
  v1::KubernetesFacts& facts = *cluster.inventory.mutable_admission()->mutable_kubernetes();
  facts.set_default_cpu_millis(1000);
  v1::NamespaceFacts& space = *facts.add_namespaces();
  space.set_name("lab");
  v1::NamespaceLimit& limit = *space.add_limits();
  limit.set_kind(v1::NAMESPACE_LIMIT_KIND_QUOTA);
  limit.set_name("budget");
  limit.set_resource("requests.cpu");
  limit.set_text("2");
  limit.set_amount_millis(2000);
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_cpu_millis(2000);
  EXPECT_TRUE(Judge(RequirementsOf(spec), cluster).now());
  spec.mutable_resources()->set_cpu_millis(3000);
  const Judged fit = Judge(RequirementsOf(spec), cluster);
  EXPECT_EQ(fit.verdict, Verdict::kRefused);
  EXPECT_EQ(fit.lacks,
            "quota budget of namespace lab allows 2 requests.cpu in all, the run needs 3");
  EXPECT_EQ(fit.resource, "cpus");
  spec.mutable_resources()->clear_cpu_millis();
  EXPECT_TRUE(Judge(RequirementsOf(spec), cluster).now()) << "one core by default";
  space.set_name("other");
  spec.mutable_resources()->set_cpu_millis(3000);
  spec.mutable_placement()->set_pool("lab");
  EXPECT_TRUE(Judge(RequirementsOf(spec), cluster).now()) << "another namespace's";
}

TEST(Fit, AnUnknownNamespaceIsToldByItsField) {
  v1::JobSpec spec = Spec();
  spec.mutable_kubernetes()->set_namespace_("team-a");
  const Judged fit =
      Judge(RequirementsOf(spec), Cluster({PoolOf("jobs")}, v1::CLUSTER_KIND_KUBERNETES));
  EXPECT_EQ(fit.verdict, Verdict::kNoPool);
  EXPECT_THAT(fit.lacks, HasSubstr("kubernetes.namespace"));
  EXPECT_THAT(fit.lacks, HasSubstr("no namespace \"team-a\" (it has \"jobs\")"));
}

TEST(Fit, AGpuTypeMayBeAResourceByItsWholeNameOrWithoutItsDomain) {
  v1::Pool pool = PoolOf("lab");
  (*pool.mutable_node_groups(0)->mutable_gpus())["nvidia.com/mig-1g.5gb"] = 7;
  for (const char* type : {"nvidia.com/mig-1g.5gb", "MIG-1g.5gb"}) {
    v1::JobSpec spec = Spec();
    v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
    gpus->set_type(type);
    gpus->set_count_millis(7000);
    EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool})).now()) << type;
    gpus->set_type("1g.5gb");
    EXPECT_FALSE(Judge(RequirementsOf(spec), Cluster({pool})).now());
  }
}

TEST(Fit, NodesThatAnAgentOnKubernetesMayNotSeeAreNotTakenForNone) {
  v1::Pool pool = PoolOf("lab");
  pool.clear_node_groups();
  v1::JobSpec spec = Spec();
  spec.set_nodes(4);
  spec.mutable_resources()->add_gpus()->set_count_millis(8000);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool}, v1::CLUSTER_KIND_KUBERNETES)).now());
  EXPECT_EQ(Judge(RequirementsOf(spec), Cluster({pool})).verdict, Verdict::kTooLittle);
  // One that is known to have none takes no jobs until it has some.
  pool.set_available(false);
  const Judged fit = Judge(RequirementsOf(spec), Cluster({pool}, v1::CLUSTER_KIND_KUBERNETES));
  EXPECT_EQ(fit.verdict, Verdict::kNotNow);
  EXPECT_TRUE(fit.ever());
}

TEST(Fit, AKubernetesSectionNeedsKubernetesAndItsNamespaceIsThePool) {
  v1::JobSpec spec = Spec();
  spec.mutable_placement()->set_pool("other");
  spec.mutable_kubernetes()->set_namespace_("lab");
  spec.mutable_kubernetes()->set_queue("q");
  const Requirements job = RequirementsOf(spec);
  for (const v1::ClusterKind kind : {v1::CLUSTER_KIND_MACHINES, v1::CLUSTER_KIND_SLURM}) {
    const Judged fit = Judge(job, Cluster({PoolOf("lab")}, kind));
    EXPECT_EQ(fit.verdict, Verdict::kWrongKind);
    EXPECT_THAT(fit.lacks, HasSubstr("has a kubernetes section; take the section out"));
  }
  EXPECT_TRUE(Judge(job, Cluster({PoolOf("lab")}, v1::CLUSTER_KIND_KUBERNETES)).now());
  EXPECT_EQ(Judge(job, Cluster({PoolOf("other")}, v1::CLUSTER_KIND_KUBERNETES)).verdict,
            Verdict::kNoPool);
}

TEST(Fit, RolesNeedSlurmOrOnNodesOfTheirOwnKubernetes) {
  v1::JobSpec spec = Spec();
  for (const uint32_t first : {0U, 1U}) {
    v1::Role* role = spec.add_roles();
    role->set_first_node(first);
    role->set_nodes(1);
  }
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")})).now());
  const PutCluster kubernetes = Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_KUBERNETES);
  EXPECT_TRUE(Judge(RequirementsOf(spec), kubernetes).now());
  const Judged machines =
      Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES));
  EXPECT_EQ(machines.verdict, Verdict::kWrongKind);
  EXPECT_THAT(machines.lacks, HasSubstr("has roles, which only Slurm and Kubernetes run"));
  spec.mutable_roles(1)->set_first_node(0);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")})).now());
  const Judged shared = Judge(RequirementsOf(spec), kubernetes);
  EXPECT_EQ(shared.verdict, Verdict::kWrongKind);
  EXPECT_THAT(shared.lacks, HasSubstr("roles that share nodes"));
}

TEST(Fit, ASharedGpuNeedsAClusterOfMachines) {
  const v1::Pool pool = PoolOf("gpu", {.gpus = {{"h100", 4}}});
  v1::JobSpec spec = Spec();
  v1::GpuRequest* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_type("H100");
  gpus->set_count_millis(500);
  const Requirements job = RequirementsOf(spec);
  EXPECT_TRUE(Judge(job, Cluster({pool}, v1::CLUSTER_KIND_MACHINES)).now());
  for (const v1::ClusterKind kind : {v1::CLUSTER_KIND_SLURM, v1::CLUSTER_KIND_KUBERNETES}) {
    const Judged fit = Judge(job, Cluster({pool}, kind));
    EXPECT_EQ(fit.verdict, Verdict::kWrongKind);
    EXPECT_THAT(fit.lacks, HasSubstr("the job asks for H100:0.5 (resources.gpus)"));
  }
}

TEST(Fit, AClusterSaysWhetherJobsMayOrMustHaveAnImage) {
  PutCluster cluster = Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_KUBERNETES);
  const Requirements without = RequirementsOf(Spec());
  v1::JobSpec spec = Spec();
  spec.set_image("ubuntu");
  const Requirements with = RequirementsOf(spec);
  for (const v1::ImageSupport any : {v1::IMAGE_SUPPORT_UNSPECIFIED, v1::IMAGE_SUPPORT_OPTIONAL}) {
    cluster.inventory.set_images(any);
    EXPECT_TRUE(Judge(with, cluster).now());
    EXPECT_TRUE(Judge(without, cluster).now());
  }
  cluster.inventory.set_images(v1::IMAGE_SUPPORT_REQUIRED);
  EXPECT_TRUE(Judge(with, cluster).now());
  EXPECT_EQ(Judge(without, cluster).verdict, Verdict::kWrongKind);
  EXPECT_THAT(Judge(without, cluster).lacks, HasSubstr("only jobs with an image"));
  cluster.inventory.set_images(v1::IMAGE_SUPPORT_NONE);
  EXPECT_TRUE(Judge(without, cluster).now());
  EXPECT_EQ(Judge(with, cluster).verdict, Verdict::kWrongKind);
  EXPECT_THAT(Judge(with, cluster).lacks, HasSubstr("runs no containers"));
}

TEST(Fit, ABatchScriptOfOneNodeThatNeedsNothingOfSlurmRunsAnywhere) {
  v1::JobSpec spec = Spec();
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  spec.mutable_slurm()->set_tasks_per_node(1);
  spec.mutable_slurm()->mutable_batch_script()->set_output("slurm-%j.out");
  const PutCluster machines = Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES);
  EXPECT_TRUE(Judge(RequirementsOf(spec), machines).now());
  spec.mutable_command()->set_script("#!/bin/sh\nsrun true\n");
  EXPECT_EQ(Judge(RequirementsOf(spec), machines).verdict, Verdict::kWrongKind);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")})).now());
}

TEST(Fit, ATotalOfGpusMayComeFromSeveralNodesOfSlurm) {
  v1::JobSpec spec = Spec();
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  spec.mutable_slurm()->mutable_batch_script();
  spec.mutable_slurm()->add_extra_options("--gpus=12");
  spec.mutable_resources()->clear_gpus();
  spec.mutable_resources()->add_gpus()->set_count_millis(12000);
  const v1::Pool pool = PoolOf("gpu", {.gpus = {{"h100", 8}}});
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool})).now());
  const PutCluster machines = Cluster({pool}, v1::CLUSTER_KIND_MACHINES);
  EXPECT_EQ(Judge(RequirementsOf(spec), machines).verdict, Verdict::kTooLittle);
  spec.mutable_slurm()->add_extra_options("--nodes=1");
  EXPECT_EQ(Judge(RequirementsOf(spec), Cluster({pool})).verdict, Verdict::kTooLittle);
}

TEST(Fit, AnImageNeedsAClusterThatRunsContainersAndAFileNeedsSlurm) {
  v1::JobSpec spec = Spec();
  spec.set_image("nvcr.io/nvidia/tao:5.0");
  Requirements job = RequirementsOf(spec);
  EXPECT_TRUE(Judge(job, Cluster({PoolOf("cpu")})).now());
  EXPECT_TRUE(Judge(job, Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_KUBERNETES)).now());
  const Judged machines = Judge(job, Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES));
  EXPECT_EQ(machines.verdict, Verdict::kWrongKind);
  EXPECT_THAT(machines.lacks,
              AllOf(HasSubstr("runs no containers"), HasSubstr("install podman, docker, enroot")));
  PutCluster with_podman = Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES);
  with_podman.inventory.set_images(v1::IMAGE_SUPPORT_OPTIONAL);
  EXPECT_TRUE(Judge(job, with_podman).now());
  spec.set_image("/images/x.sqsh");
  job = RequirementsOf(spec);
  EXPECT_TRUE(Judge(job, Cluster({PoolOf("cpu")})).now());
  EXPECT_THAT(Judge(job, Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_KUBERNETES)).lacks,
              HasSubstr("only Slurm"));
}

TEST(Fit, AFileOfTheUsersMachineNeedsAClusterOfMachinesAndIsNamed) {
  const PutCluster slurm = Cluster({PoolOf("cpu")});
  v1::JobSpec spec = Spec();
  spec.add_inputs()->set_uri("lustre:///data");
  EXPECT_TRUE(Judge(RequirementsOf(spec), slurm).now());
  spec.add_inputs()->set_uri("file:///home/me/data");
  const Judged fit = Judge(RequirementsOf(spec), slurm);
  EXPECT_EQ(fit.verdict, Verdict::kWrongKind);
  EXPECT_THAT(fit.lacks, HasSubstr("inputs[1].uri"));
  EXPECT_THAT(fit.lacks, HasSubstr("lustre:///path"));
  EXPECT_TRUE(
      Judge(RequirementsOf(spec), Cluster({PoolOf("cpu")}, v1::CLUSTER_KIND_MACHINES)).now());
}

TEST(Fit, ANamedPoolMustExist) {
  v1::JobSpec spec = Spec();
  spec.mutable_placement()->set_pool("gpu");
  const Judged fit = Judge(RequirementsOf(spec), Cluster({PoolOf("cpu"), PoolOf("io")}));
  EXPECT_EQ(fit.verdict, Verdict::kNoPool);
  EXPECT_EQ(fit.lacks, "it has no pool \"gpu\" (it has \"cpu\", \"io\")");
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu"), PoolOf("gpu")})).now());
}

TEST(Fit, ThePartitionOverridesThePoolAndOneOfSeveralIsEnough) {
  v1::JobSpec spec = Spec();
  spec.mutable_placement()->set_pool("nowhere");
  spec.mutable_slurm()->set_partition("small,large");
  spec.mutable_resources()->set_cpu_millis(32'000);
  const v1::Pool small = PoolOf("small", {.cpus = 1});
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({small, PoolOf("large", {.cpus = 64})})).now());
  const Judged fit = Judge(RequirementsOf(spec), Cluster({small}));
  EXPECT_EQ(fit.verdict, Verdict::kTooLittle);
  EXPECT_THAT(fit.lacks, HasSubstr("at most 1 cores"));
}

TEST(Fit, PartsOfCoresAreRoundedUp) {
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_cpu_millis(8000);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu", {.cpus = 8})})).now());
  spec.mutable_resources()->set_cpu_millis(8001);
  const Judged fit = Judge(RequirementsOf(spec), Cluster({PoolOf("cpu", {.cpus = 8})}));
  EXPECT_EQ(fit.lacks,
            "pool \"cpu\" has at most 8 cores on a node, 9 are needed; ask for at most 8 "
            "(resources.cpus)");
}

TEST(Fit, MemoryMustFitIfItIsKnown) {
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_memory_bytes(2ull << 30);
  EXPECT_TRUE(
      Judge(RequirementsOf(spec), Cluster({PoolOf("cpu", {.memory_bytes = 2ull << 30})})).now());
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({PoolOf("cpu", {.memory_bytes = 0})})).now());
  EXPECT_EQ(
      Judge(RequirementsOf(spec), Cluster({PoolOf("cpu", {.memory_bytes = 1ull << 30})})).lacks,
      "pool \"cpu\" has at most 1Gi of memory on a node, 2Gi are needed; ask for at most 1Gi "
      "(resources.memory)");
}

TEST(Fit, GpuTypesAreComparedWithoutCase) {
  const auto cluster = Cluster({PoolOf("gpu", {.gpus = {{"h100", 8}}})});
  EXPECT_TRUE(Judge(RequirementsOf(SpecWithGpus("H100", 8)), cluster).now());
  EXPECT_TRUE(Judge(RequirementsOf(SpecWithGpus("", 8)), cluster).now());
  EXPECT_THAT(
      Judge(RequirementsOf(SpecWithGpus("A100", 1)), cluster).lacks,
      HasSubstr("pool \"gpu\" has no GPUs of type A100 (it has h100); ask for one of these"));
  EXPECT_EQ(
      Judge(RequirementsOf(SpecWithGpus("H100", 9)), cluster).lacks,
      "pool \"gpu\" has at most 8 GPUs of type H100 on a node, 9 are needed; ask for at most 8 "
      "on each node (resources.gpus)");
}

TEST(Fit, AnyTypeMeansOneTypeOnANode) {
  const auto cluster = Cluster({PoolOf("gpu", {.gpus = {{"a", 2}, {"b", 2}}})});
  EXPECT_TRUE(Judge(RequirementsOf(SpecWithGpus("", 2)), cluster).now());
  EXPECT_FALSE(Judge(RequirementsOf(SpecWithGpus("", 3)), cluster).now());
}

TEST(Fit, NodesOfSeveralGroupsCountTogether) {
  v1::Pool pool = PoolOf("gpu", {.count = 2, .gpus = {{"h100", 8}}});
  *pool.add_node_groups() = PoolOf("x", {.count = 1, .gpus = {{"H100", 16}}}).node_groups(0);
  *pool.add_node_groups() = PoolOf("x", {.count = 10}).node_groups(0);
  EXPECT_TRUE(Judge(RequirementsOf(SpecWithGpus("h100", 8, 3)), Cluster({pool})).now());
  EXPECT_EQ(
      Judge(RequirementsOf(SpecWithGpus("h100", 8, 4)), Cluster({pool})).lacks,
      "pool \"gpu\" has 3 nodes with what each needs (resources), 4 are needed; ask for at most "
      "3 (nodes)");
}

TEST(Fit, AllMustBeOnOneNode) {
  v1::Pool pool = PoolOf("mixed", {.cpus = 64});
  *pool.add_node_groups() = PoolOf("x", {.cpus = 4, .gpus = {{"h100", 8}}}).node_groups(0);
  v1::JobSpec spec = SpecWithGpus("h100", 8);
  spec.mutable_resources()->set_cpu_millis(32'000);
  EXPECT_EQ(Judge(RequirementsOf(spec), Cluster({pool})).lacks,
            "pool \"mixed\" has no node with all that is needed at once; ask for less of one "
            "of them (resources.cpus, resources.memory, resources.gpus)");
}

TEST(Fit, APoolLimitsTheNodesOfARun) {
  v1::Pool pool = PoolOf("cpu", {.count = 10});
  pool.set_max_nodes(2);
  v1::JobSpec spec = Spec();
  spec.set_nodes(2);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool})).now());
  spec.set_nodes(3);
  EXPECT_EQ(Judge(RequirementsOf(spec), Cluster({pool})).lacks,
            "pool \"cpu\" gives a run at most 2 nodes, 3 are needed; ask for at most 2 (nodes)");
}

TEST(Fit, TheNodesToAskForAreNeverMoreThanThePoolGivesARun) {
  v1::Pool pool = PoolOf("cpu", {.count = 10});
  pool.set_max_nodes(2);
  v1::JobSpec spec = Spec();
  spec.set_nodes(11);
  EXPECT_THAT(Judge(RequirementsOf(spec), Cluster({pool})).lacks,
              HasSubstr("has 10 nodes with what each needs (resources), 11 are needed; ask for at "
                        "most 2 (nodes)"));
}

TEST(Fit, TheTimeLimitMustBeWithinThePools) {
  v1::Pool pool = PoolOf("cpu");
  pool.mutable_max_time_limit()->set_seconds(3600);
  v1::JobSpec spec = Spec();
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool})).now());
  spec.mutable_time_limit()->set_seconds(3600);
  EXPECT_TRUE(Judge(RequirementsOf(spec), Cluster({pool})).now());
  spec.mutable_time_limit()->set_seconds(7200);
  const Judged fit = Judge(RequirementsOf(spec), Cluster({pool}));
  EXPECT_EQ(fit.verdict, Verdict::kTooShort);
  EXPECT_EQ(fit.lacks,
            "pool \"cpu\" has a time limit of 1h, 2h are needed; ask for at most 1h "
            "(time)");
}

TEST(Fit, APoolThatIsDownFitsLater) {
  v1::Pool pool = PoolOf("cpu");
  pool.set_available(false);
  const Judged fit = Judge(RequirementsOf(Spec()), Cluster({pool}));
  EXPECT_FALSE(fit.now());
  EXPECT_TRUE(fit.ever());
}

TEST(Fit, BusyOrBrokenNodesCount) {
  v1::Pool pool = PoolOf("cpu");
  pool.mutable_node_groups(0)->set_usable_count(0);
  EXPECT_TRUE(Judge(RequirementsOf(Spec()), Cluster({pool})).now());
}

}  // namespace
}  // namespace muster::core
