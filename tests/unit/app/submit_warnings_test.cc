// Tests the warnings that answers to new jobs have, made of published facts from the clusters as
// shown.
#include "broker/app/submit_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const core::ClusterView> Kubernetes(const std::string& name) {
  auto saved = std::make_shared<core::PutCluster>();
  saved->name = name;
  saved->kind = v1::CLUSTER_KIND_KUBERNETES;
  saved->max_active_runs = 10;
  v1::Inventory& inventory = saved->inventory;
  inventory.set_images(v1::IMAGE_SUPPORT_REQUIRED);
  v1::Pool* pool = inventory.add_pools();
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  v1::NodeGroup* nodes = pool->add_node_groups();
  nodes->set_count(2);
  nodes->set_usable_count(2);
  nodes->set_cpus(64);
  nodes->set_memory_bytes(uint64_t{256} << 30);
  v1::AdmissionFacts& facts = *inventory.mutable_admission();
  facts.set_max_archive_bytes(8 << 20);
  v1::NamespaceFacts* space = facts.mutable_kubernetes()->add_namespaces();
  space->set_name("default");
  space->mutable_claims();
  auto view = std::make_shared<core::ClusterView>();
  view->saved = std::move(saved);
  view->is_connected = true;
  return view;
}

core::SubmitItem Job(const std::string& claim) {
  v1::JobSpec spec;
  spec.set_image("busybox:1");
  spec.mutable_command()->mutable_argv()->add_args("true");
  if (!claim.empty()) {
    v1::KubernetesVolume* volume = spec.mutable_kubernetes()->add_volumes();
    volume->set_mount_path("/data");
    volume->set_claim(claim);
  }
  core::SubmitItem item;
  item.spec = std::make_shared<const v1::JobSpec>(std::move(spec));
  return item;
}

v1::SubmitJobsResponse Answer(const core::Submit& submit, const core::ClusterViews& clusters,
                              int repeated = -1) {
  v1::SubmitJobsResponse response;
  for (size_t i = 0; i < submit.items.size(); ++i)
    response.add_responses()->set_repeated_request(static_cast<int>(i) == repeated);
  AddWarnings(JobsToJudge(submit), clusters, {}, &response);
  return response;
}

TEST(SubmitWarningsOfFacts, ComeWithTheAnswersOfNewJobsThatNeedWhatIsNotThere) {
  core::Submit submit;
  submit.items = {Job("nosuch"), Job("nosuch"), Job(""), Job("nosuch")};
  const v1::SubmitJobsResponse response = Answer(submit, {Kubernetes("k8s")}, /*repeated=*/3);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(response.responses(i).warnings_size(), 1);
    const v1::SubmitWarning& warning = response.responses(i).warnings(0);
    EXPECT_EQ(warning.code(), v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
    EXPECT_EQ(warning.cluster(), "k8s");
    EXPECT_EQ(warning.subject(), "kubernetes.volumes[0].claim");
    EXPECT_THAT(warning.message(), HasSubstr("on cluster k8s: "));
    EXPECT_THAT(warning.remedy(), HasSubstr("the run waits for it and fails then"));
  }
  EXPECT_EQ(response.responses(2).warnings_size(), 0);
  EXPECT_EQ(response.responses(3).warnings_size(), 0) << "the first answer had them";
}

TEST(SubmitWarningsOfFacts, AreFewOfEachJob) {
  core::ClusterViews clusters;
  for (int i = 0; i < 6; ++i) clusters.push_back(Kubernetes("k" + std::to_string(i)));
  core::Submit submit;
  submit.items = {Job("nosuch")};
  EXPECT_EQ(Answer(submit, clusters).responses(0).warnings_size(), kMaxWarnings);
}

TEST(SubmitWarningsOfFacts, AreNotOfClustersThatCannotTakeTheJob) {
  core::Submit submit;
  submit.items = {Job("nosuch")};
  core::ClusterViews clusters = {Kubernetes("k8s")};
  core::PutCluster slurm = *clusters[0]->saved;
  slurm.kind = v1::CLUSTER_KIND_SLURM;
  auto view = std::make_shared<core::ClusterView>();
  view->saved = std::make_shared<const core::PutCluster>(std::move(slurm));
  EXPECT_EQ(Answer(submit, {view}).responses(0).warnings_size(), 0);
}

TEST(SubmitWarningsOfFacts, CostNothingForJobsThatNameNothing) {
  core::Submit submit;
  submit.items = {Job("")};
  v1::JobSpec plain;
  plain.mutable_command()->mutable_argv()->add_args("true");
  submit.items[0].spec = std::make_shared<const v1::JobSpec>(plain);
  EXPECT_TRUE(JobsToJudge(submit).empty());
}

}  // namespace
}  // namespace muster::broker
