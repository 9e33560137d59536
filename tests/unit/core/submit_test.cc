#include "broker/core/fingerprint.h"
#include "contract/errors.h"
#include "contract/task_array.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SubmitTest : public CoreTest {};

SubmitItem Item(const v1::JobSpec& spec, const std::string& request_id = "") {
  return {std::make_shared<v1::JobSpec>(spec), request_id, RequestFingerprintOf(spec)};
}

TEST_F(SubmitTest, AJobIsAcceptedWhileNoClusterIsKnown) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Job(id).user(), "alice");
  EXPECT_THAT(Explain(id).message(), HasSubstr("no cluster has connected"));
}

TEST_F(SubmitTest, TheFirstTransitionSaysWhoSubmitted) {
  const uint64_t id = MustSubmit(Spec());
  const auto history = History(id);
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].kind(), v1::TRANSITION_KIND_SUBMITTED);
  EXPECT_EQ(history[0].job_state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(history[0].evidence().source(), v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(history[0].evidence().detail(), "submitted by alice");
  EXPECT_EQ(history[0].run(), 0u);
}

TEST_F(SubmitTest, IdsAreNeverUsedAgain) {
  EXPECT_EQ(MustSubmit(Spec()), 1u);
  EXPECT_TRUE(Cancel({1}).ok());
  Restart();
  EXPECT_EQ(MustSubmit(Spec()), 2u);
}

TEST_F(SubmitTest, ARepeatedRequestGetsTheSameJob) {
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  Submitted reply = Submit({Item(Spec(), "r")});
  ASSERT_TRUE(reply.result.ok());
  EXPECT_EQ(reply.result->responses(0).job_id(), 1u);
  EXPECT_TRUE(reply.result->responses(0).repeated_request());
  EXPECT_THAT(last_.changes, IsEmpty());
}

TEST_F(SubmitTest, ARepeatedRequestGetsTheSameJobAfterARestart) {
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  Restart();
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
}

TEST_F(SubmitTest, TheSameRequestIdInAnotherProjectIsAnotherRequest) {
  v1::JobSpec other = Spec();
  other.set_project("vision");
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  EXPECT_EQ(*SubmitOne(other, "r"), 2u);
}

TEST_F(SubmitTest, ARequestIdWithAnotherSpecIsRefused) {
  EXPECT_TRUE(SubmitOne(Spec(), "r").ok());
  v1::JobSpec other = Spec();
  (*other.mutable_env())["A"] = "1";
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = SubmitOne(other, "r").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(ReasonOf(status), "REQUEST_ID_REUSED");
    Restart();
  }
}

TEST_F(SubmitTest, TheOrderOfMapEntriesDoesNotMakeAnotherSpec) {
  v1::JobSpec forward = Spec(), backward = Spec();
  for (int i = 0; i < 50; ++i) (*forward.mutable_env())["A" + std::to_string(i)] = "x";
  for (int i = 49; i >= 0; --i) (*backward.mutable_env())["A" + std::to_string(i)] = "x";
  EXPECT_EQ(*SubmitOne(forward, "r"), 1u);
  EXPECT_EQ(*SubmitOne(backward, "r"), 1u);
}

TEST_F(SubmitTest, ARequestIsForgottenADayAfterItsJobsEnd) {
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  now_ += absl::Hours(48);
  Tick();
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  EXPECT_TRUE(Cancel({1}).ok());
  now_ += absl::Hours(24);
  Tick();
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  now_ += absl::Seconds(1);
  Tick();
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 2u);
}

TEST_F(SubmitTest, ABatchIsAcceptedInItsOrder) {
  Submitted reply = Submit({Item(Spec()), Item(Spec(), "r"), Item(Spec(), "r")});
  ASSERT_TRUE(reply.result.ok());
  EXPECT_EQ(reply.result->responses(0).job_id(), 1u);
  EXPECT_EQ(reply.result->responses(1).job_id(), 2u);
  EXPECT_EQ(reply.result->responses(2).job_id(), 2u);
  EXPECT_FALSE(reply.result->responses(1).repeated_request());
  EXPECT_TRUE(reply.result->responses(2).repeated_request());
}

TEST_F(SubmitTest, ABadItemRefusesTheWholeBatchAndIsNamed) {
  Connect("a");
  Submitted reply = Submit({Item(Spec()), Item(SpecOn("nowhere"))});
  EXPECT_EQ(reply.result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reply.result.status().message(), SubmitOne(SpecOn("nowhere")).status().message())
      << "which of them it is about is for the details";
  EXPECT_EQ(ReasonOf(reply.result.status()), "UNKNOWN_CLUSTER");
  const auto info = contract::GetErrorInfo(reply.result.status());
  EXPECT_EQ(info->metadata().at("request"), "1");
  EXPECT_EQ(info->metadata().at("cluster"), "nowhere");
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_EQ(core_->counters().queued, 0u);
}

TEST_F(SubmitTest, AnErrorAboutASingleJobHasNoIndex) {
  Connect("a");
  const absl::Status status = SubmitOne(SpecOn("nowhere")).status();
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("field"), "spec.placement.clusters");
  EXPECT_FALSE(contract::GetErrorInfo(status)->metadata().contains("request"));
}

TEST_F(SubmitTest, AJobThatIsSubmittedHeldStartsOnlyAfterItsRelease) {
  const SessionId session = Connect("a");
  SubmitItem item = Item(Spec(), "r");
  item.held = true;
  const Submitted reply = Submit({item});
  ASSERT_TRUE(reply.result.ok()) << reply.result.status();
  const uint64_t id = reply.result->responses(0).job_id();
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_TRUE(Job(id).held());
  Restart();
  const SessionId again = Connect("a");
  EXPECT_THAT(Assigned(again), IsEmpty());
  EXPECT_EQ(*SubmitOne(Spec(), "r"), id);
  EXPECT_THAT(Assigned(again), IsEmpty());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_EQ(Assigned(again).size(), 1u);
}

TEST_F(SubmitTest, OneSpecUnderTwoRequestIdsInABatchMakesTwoJobs) {
  Submitted reply = Submit({Item(Spec(), "a"), Item(Spec(), "b")});
  ASSERT_TRUE(reply.result.ok());
  EXPECT_EQ(reply.result->responses(1).job_id(), 2u);
}

TEST_F(SubmitTest, TwoSpecsUnderOneRequestIdInABatchAreRefused) {
  v1::JobSpec other = Spec();
  other.set_priority(5);
  EXPECT_EQ(ReasonOf(Submit({Item(Spec(), "r"), Item(other, "r")}).result.status()),
            "REQUEST_ID_REUSED");
}

TEST_F(SubmitTest, ValidateOnlyChangesNothing) {
  Connect("a");
  Submitted reply = Submit({Item(Spec(), "r")}, /*validate_only=*/true);
  ASSERT_TRUE(reply.result.ok());
  EXPECT_EQ(reply.result->responses(0).job_id(), 0u);
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_EQ(*SubmitOne(Spec(), "r"), 1u);
  EXPECT_FALSE(Submit({Item(SpecWithGpus("H100", 8))}, true).result.ok());
}

TEST_F(SubmitTest, AnUnknownClusterIsRefusedWithTheKnownOnes) {
  Connect("alpha");
  Connect("beta");
  const absl::Status status = SubmitOne(SpecOn("gamma")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"gamma\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"alpha\", \"beta\""));
}

TEST_F(SubmitTest, AnUnknownClusterIsRefusedEvenIfAnotherNamedOneFits) {
  Connect("alpha");
  v1::JobSpec spec = SpecOn("alpha");
  EXPECT_TRUE(SubmitOne(spec).ok());
  spec.mutable_placement()->add_clusters("gamma");
  EXPECT_EQ(SubmitOne(spec).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SubmitTest, AJobThatNoClusterCanEverRunIsRefusedWithWhatEachLacks) {
  agent::v1::AgentHello small = Hello("small");
  agent::v1::AgentHello near = Hello("near");
  *near.mutable_inventory()->mutable_pools(0) =
      PoolOf("default", {.count = 1, .gpus = {{"h100", 8}}});
  Connect(small);
  Connect(near);
  const absl::Status status = SubmitOne(SpecWithGpus("H100", 8, 4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "CANNOT_BE_PLACED");
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("cluster \"near\": pool \"default\" has 1 node with what each "
                                 "needs (resources), 4 are needed; "
                                 "ask for at most 1 (nodes)"));
  EXPECT_THAT(message, HasSubstr("cluster \"small\": pool \"default\" has no GPUs of type H100"));
  const auto facts = contract::GetStateReason(status);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
  ASSERT_EQ(facts->clusters_size(), 2);
  EXPECT_EQ(facts->clusters(0).cluster(), "near");
  EXPECT_EQ(facts->clusters(0).shortages_size(), 1);
  EXPECT_EQ(facts->clusters(1).cluster(), "small");
}

TEST_F(SubmitTest, OneRefusedJobOfSeveralIsRefusedWithTheSameFacts) {
  Connect(Hello("small"));
  const Submitted reply = Submit({Item(Spec()), Item(SpecWithGpus("H100", 8, 4))});
  const absl::Status status = reply.result.status();
  EXPECT_EQ(ReasonOf(status), "CANNOT_BE_PLACED");
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("request"), "1");
  const auto facts = contract::GetStateReason(status);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
}

TEST_F(SubmitTest, AJobForSlurmAloneIsRefusedElsewhereWithWhatToLeaveOut) {
  for (const char* name : {"k8s", "team"}) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    Connect(hello);
  }
  v1::JobSpec spec = Spec();
  spec.mutable_slurm()->set_account("a1");
  spec.mutable_slurm()->set_requeue(true);
  const absl::Status status = SubmitOne(spec).status();
  EXPECT_EQ(ReasonOf(status), "CANNOT_BE_PLACED");
  const std::string why =
      "no cluster can ever run this job: only Slurm can take it because the job has slurm.account "
      "\"a1\", slurm.requeue";
  EXPECT_EQ(status.message(), why + ", and no cluster of kind slurm is known; do without it");
  spec.mutable_placement()->add_clusters("team");
  EXPECT_EQ(SubmitOne(spec).status().message(),
            why +
                ", and the job names no cluster of kind slurm (cluster); do without it, or name "
                "one");
  spec.clear_placement();
  // A message names what a Slurm cluster lacks, and nothing about the others.
  agent::v1::AgentHello lab = Hello("lab");
  lab.set_kind(v1::CLUSTER_KIND_SLURM);
  Connect(lab);
  spec.set_nodes(99);
  const std::string lacks(SubmitOne(spec).status().message());
  EXPECT_THAT(lacks, HasSubstr("run this job: cluster \"lab\": pool \"default\" has 2 nodes"));
  EXPECT_THAT(lacks, Not(HasSubstr("k8s")));
}

TEST_F(SubmitTest, ARefusalNamesAtMostFiveClusters) {
  for (int i = 0; i < 8; ++i) Connect("c" + std::to_string(i));
  const absl::Status status = SubmitOne(SpecWithGpus("H100", 8)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("and 3 more"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("c5")));
}

// ---- what agents publish

agent::v1::AgentHello KubernetesHello(const std::string& cluster) {
  agent::v1::AgentHello hello = Hello(cluster);
  hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
  v1::AdmissionFacts& facts = *hello.mutable_inventory()->mutable_admission();
  facts.set_max_archive_bytes(8 << 20);
  hello.mutable_inventory()->set_takes_uploads(true);
  facts.mutable_kubernetes()->add_namespaces()->set_name("default");
  v1::NodeProfile* nodes = facts.mutable_kubernetes()->mutable_nodes()->add_profiles();
  nodes->set_count(2);
  nodes->set_example("node-1");
  nodes->set_cpu_millis(64'000);
  nodes->set_memory_bytes(uint64_t{256} << 30);
  nodes->set_pods(110);
  return hello;
}

v1::KubernetesFacts* FactsOf(agent::v1::AgentHello* hello) {
  return hello->mutable_inventory()->mutable_admission()->mutable_kubernetes();
}

agent::v1::AgentHello WithSsd(agent::v1::AgentHello hello) {
  (*FactsOf(&hello)->mutable_nodes()->mutable_profiles(0)->mutable_labels())["disk"] = "ssd";
  return hello;
}

v1::JobSpec OnSsd() {
  v1::JobSpec spec = Spec();
  spec.set_image("busybox:1");
  (*spec.mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  return spec;
}

TEST_F(SubmitTest, AJobThatNoClusterCanEverTakeIsRefusedInTheWordsOfItsFacts) {
  Connect(KubernetesHello("k8s"));
  const absl::Status status = SubmitOne(OnSsd()).status();
  EXPECT_EQ(ReasonOf(status), "CANNOT_BE_PLACED");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cluster \"k8s\": none of the 2 nodes matches; node-1 comes nearest: it "
                        "has no label disk=ssd"));
}

TEST_F(SubmitTest, AJobIsNeverPlacedWhereFactsSpeakAgainstItAndIsWhereTheyCeaseTo) {
  Gone(Connect(WithSsd(KubernetesHello("away"))));
  const SessionId refuses = Connect(KubernetesHello("refuses"));
  const uint64_t id = MustSubmit(OnSsd());
  EXPECT_THAT(Assigned(refuses), IsEmpty());
  EXPECT_THAT(Explain(id).message(), HasSubstr("cluster \"refuses\": none of the 2 nodes matches"));
  Restart();
  const SessionId again = Connect(KubernetesHello("refuses"));
  EXPECT_THAT(Assigned(again), IsEmpty()) << "made anew from the spec";
  EXPECT_THAT(Assigned(Connect(KubernetesHello("later"))), IsEmpty());
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = WithSsd(KubernetesHello("refuses")).inventory();
  Beat(again, beat);
  EXPECT_EQ(Assigned(again).size(), 1u);
}

TEST_F(SubmitTest, WhatBringsTooMuchAlongGoesToOthers) {
  const SessionId kubernetes = Connect(KubernetesHello("k8s"));
  v1::JobSpec spec = Spec();
  spec.set_image("busybox:1");
  spec.add_uploads()->set_tree_sha256(std::string(64, 'a'));
  SubmitItem item = Item(spec);
  item.archive_bytes = 9 << 20;
  const Submitted refused = Submit({item});
  EXPECT_EQ(ReasonOf(refused.result.status()), "CANNOT_BE_PLACED");
  EXPECT_THAT(std::string(refused.result.status().message()), HasSubstr("an archive of 9Mi"));
  agent::v1::AgentHello slurm = Hello("lab");
  slurm.set_kind(v1::CLUSTER_KIND_SLURM);
  slurm.mutable_inventory()->set_takes_uploads(true);
  const SessionId other = Connect(slurm);
  ASSERT_TRUE(Submit({item}).result.ok());
  EXPECT_THAT(Assigned(kubernetes), IsEmpty());
  EXPECT_EQ(Assigned(other).size(), 1u);
}

TEST_F(SubmitTest, FilesAreNeededOfNewJobsThatAreKeptAndCouldBePlaced) {
  const absl::Status missing = contract::Error(absl::StatusCode::kFailedPrecondition,
                                               "FILES_MISSING", "spec.uploads[0]: 1 is missing");
  v1::JobSpec spec = Spec();
  spec.add_uploads()->set_tree_sha256(std::string(64, 'a'));
  SubmitItem item = Item(spec, "r");
  ASSERT_TRUE(Submit({item}).result.ok());
  item.files = missing;
  const Submitted repeat = Submit({item});
  ASSERT_TRUE(repeat.result.ok()) << repeat.result.status();
  EXPECT_TRUE(repeat.result->responses(0).repeated_request());
  SubmitItem other = Item(spec);
  other.files = missing;
  EXPECT_EQ(Submit({other}).result.status(), missing);
  EXPECT_EQ(Submit({item, other}).result.status(), missing);
  EXPECT_TRUE(Submit({other}, /*validate_only=*/true).result.ok());
  Connect("takes-no-files");
  EXPECT_EQ(ReasonOf(Submit({other}).result.status()), "CANNOT_BE_PLACED")
      << "nobody uploads what no cluster would take";
}

TEST_F(SubmitTest, AJobThatFitsOnlyADisconnectedClusterIsAccepted) {
  Gone(Connect("a"));
  const uint64_t id = MustSubmit(Spec());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(Explain(id).message(), HasSubstr("agent is not connected"));
  Restart();
  EXPECT_THAT(Explain(id).message(), HasSubstr("agent is not connected"));
}

TEST_F(SubmitTest, AFullQueueRefusesWithATimeToComeBack) {
  options_.max_queued_jobs = 3;
  Restart();
  EXPECT_TRUE(SubmitOne(Spec(), "first").ok());
  EXPECT_TRUE(SubmitOne(Spec()).ok());
  const absl::Status status = Submit({Item(Spec()), Item(Spec())}).result.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(contract::GetRetryDelay(status).has_value());
  EXPECT_TRUE(SubmitOne(Spec()).ok());
  EXPECT_FALSE(SubmitOne(Spec()).ok());
  // A repeat needs no room.
  EXPECT_EQ(*SubmitOne(Spec(), "first"), 1u);
  EXPECT_TRUE(Cancel({2}).ok());
  EXPECT_TRUE(SubmitOne(Spec()).ok());
}

TEST_F(SubmitTest, RememberedRequestsAreBounded) {
  options_.max_remembered_requests = 2;
  Restart();
  EXPECT_TRUE(SubmitOne(Spec(), "a").ok());
  EXPECT_TRUE(SubmitOne(Spec(), "b").ok());
  EXPECT_EQ(SubmitOne(Spec(), "c").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(SubmitOne(Spec()).ok());
}

TEST_F(SubmitTest, AlikeJobsAreOneGroupAlsoAcrossRestarts) {
  MustSubmit(Spec());
  v1::JobSpec alike = Spec();
  alike.set_name("other");
  (*alike.mutable_env())["A"] = "1";
  MustSubmit(alike);
  EXPECT_EQ(core_->counters().groups, 1u);
  Restart();
  MustSubmit(Spec());
  EXPECT_EQ(core_->counters().groups, 1u);
  v1::JobSpec larger = Spec();
  larger.set_nodes(2);
  MustSubmit(larger);
  EXPECT_EQ(core_->counters().groups, 2u);
}

TEST_F(SubmitTest, TheGroupsOfEndedJobsAreForgotten) {
  for (uint32_t i = 1; i <= 1500; ++i) {
    v1::JobSpec spec = Spec();
    spec.mutable_resources()->set_memory_bytes(i);
    EXPECT_TRUE(Cancel({MustSubmit(spec)}).ok());
    if (i % 500 == 0) Tick();
  }
  Tick();
  Connect("a");
  EXPECT_THAT(Assigned(Connect("b")), IsEmpty());
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_memory_bytes(7);
  EXPECT_EQ(core_->counters().groups, 0u);
  MustSubmit(spec);
  EXPECT_EQ(core_->counters().groups, 1u);
}

TEST_F(SubmitTest, ARepeatOfATaskWhoseArrayCountsNoneIsAnswered) {
  // Specs of former releases may have it.
  v1::JobSpec task = Spec();
  task.mutable_command()->set_script("true");
  task.mutable_slurm()->mutable_batch_script();
  contract::SetArrayTask({.count = 0}, &task);
  const SubmitItem known = Item(task, "r");
  const Submitted first = Submit({known});
  ASSERT_TRUE(first.result.ok()) << first.result.status();
  const Submitted repeat = Submit({known, Item(task)});
  ASSERT_TRUE(repeat.result.ok()) << repeat.result.status();
  EXPECT_EQ(repeat.result->responses(0).job_id(), first.result->responses(0).job_id());
  EXPECT_FALSE(repeat.result->responses(1).repeated_request());
}

TEST_F(SubmitTest, TheBrokerEpochRisesWithEachStartAndIsWrittenOnce) {
  Tick();
  EXPECT_EQ(CountChanges<PutBrokerEpoch>(), 1);
  Tick();
  EXPECT_EQ(CountChanges<PutBrokerEpoch>(), 0);
  const uint64_t first = Welcomed(Connect("a"))->broker_epoch();
  Restart();
  EXPECT_EQ(Welcomed(Connect("a"))->broker_epoch(), first + 1);
}

}  // namespace
}  // namespace muster::core
