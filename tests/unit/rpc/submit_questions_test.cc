// Tests the questions to agents before a job is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/errors.h"
#include "contract/sentences.h"
#include "rpc/status.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void BeKubernetes(agent::v1::AgentHello& hello) { hello.set_kind(v1::CLUSTER_KIND_KUBERNETES); }

// A job about which capacity alone says too little.
v1::SubmitJobRequest OnKubernetes(const std::string& request_id = "") {
  v1::SubmitJobRequest request = SubmitTrue(request_id);
  request.mutable_spec()->set_image("busybox:1");
  (*request.mutable_spec()->mutable_kubernetes()->mutable_node_selector())["disk"] = "ssd";
  return request;
}

// A submit that goes on beside the test.
struct Submitting {
  explicit Submitting(TestBroker& broker, v1::SubmitJobRequest request = OnKubernetes())
      : status(std::async(std::launch::async, [&broker, request = std::move(request), this] {
          return broker.jobs().SubmitJob(Call().get(), request, &response);
        })) {}
  v1::SubmitJobResponse response;
  std::future<grpc::Status> status;
};

// A plan with what speaks against the job, or nothing.
agent::v1::ConnectRequest PlanFor(uint64_t question, const std::string& against) {
  agent::v1::ConnectRequest answer;
  answer.mutable_answer()->set_id(question);
  v1::ClusterCheck* check = answer.mutable_answer()->mutable_plan()->add_checks();
  check->set_subject("the job");
  check->set_result(against.empty() ? v1::CHECK_RESULT_OK : v1::CHECK_RESULT_FAIL);
  check->set_seen(against);
  return answer;
}

// Reads the agent's next question; nobody has answered it.
agent::v1::AgentQuestion NextQuestion(FakeAgent& agent) {
  while (auto message = agent.Read()) {
    if (message->has_question()) return message->question();
  }
  ADD_FAILURE() << "the stream ended: " << agent.Finish().error_message();
  return {};
}

// Answers the agent's next question with a plan: what speaks against the job, or nothing.
void Answer(FakeAgent& agent, const std::string& against) {
  ASSERT_TRUE(agent.Write(PlanFor(NextQuestion(agent).id(), against)));
}

// Refuses all that the agent is asked until its stream ends; how many questions there were.
std::future<int> RefuseAll(FakeAgent& agent) {
  return std::async(std::launch::async, [&agent] {
    int count = 0;
    while (auto message = agent.Read()) {
      if (!message->has_question()) continue;
      ++count;
      agent.Write(PlanFor(message->question().id(), "no"));
    }
    return count;
  });
}

using Rule = std::function<std::string(const agent::v1::PlanQuestion&)>;

// Answers all that the agent is asked until its stream ends: what speaks against the job. Returns
// the questions.
std::future<std::vector<agent::v1::PlanQuestion>> JudgeAll(FakeAgent& agent, Rule rule) {
  return std::async(std::launch::async, [&agent, rule = std::move(rule)] {
    std::vector<agent::v1::PlanQuestion> questions;
    while (auto message = agent.Read()) {
      if (!message->has_question()) continue;
      questions.push_back(message->question().plan());
      agent.Write(PlanFor(message->question().id(), rule(questions.back())));
    }
    return questions;
  });
}

// Alike but for what it runs, unless the disk is another.
v1::SubmitJobRequest Running(const std::string& argument, const std::string& disk = "ssd") {
  v1::SubmitJobRequest request = OnKubernetes();
  request.mutable_spec()->mutable_command()->mutable_argv()->add_args(argument);
  (*request.mutable_spec()->mutable_kubernetes()->mutable_node_selector())["disk"] = disk;
  return request;
}

std::string ArgumentOf(const agent::v1::PlanQuestion& question) {
  const auto& args = question.spec().command().argv().args();
  return args.empty() ? "" : args.Get(args.size() - 1);
}

Rule Against(const std::string& argument) {
  return [argument](const agent::v1::PlanQuestion& question) {
    return ArgumentOf(question) == argument ? "no storage for " + argument : std::string();
  };
}

// Several in one call that goes on beside the test.
struct SubmittingAll {
  SubmittingAll(TestBroker& broker, const std::vector<v1::SubmitJobRequest>& requests) {
    for (const v1::SubmitJobRequest& one : requests) *request.add_requests() = one;
    status = std::async(std::launch::async, [&broker, this] {
      return broker.jobs().SubmitJobs(Call().get(), request, &response);
    });
  }
  v1::SubmitJobsRequest request;
  v1::SubmitJobsResponse response;
  std::future<grpc::Status> status;
};

std::string Reason(const grpc::Status& status) {
  const auto info = contract::GetErrorInfo(rpc::FromGrpc(status));
  return info ? info->reason() : "";
}

TEST(SubmitQuestions, AJobThatTheOnlyClusterRefusesIsRefusedInItsWords) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting submit(broker);
  Answer(agent, "no node has disk=ssd");
  const grpc::Status status = submit.status.get();
  EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED");
  EXPECT_THAT(status.error_message(), HasSubstr("cluster \"gpu\": no node has disk=ssd"));
}

void TakeUploads(agent::v1::AgentHello& hello) {
  BeKubernetes(hello);
  hello.mutable_inventory()->set_takes_uploads(true);
}

// It does not matter to the agent whether the files are at the broker.
v1::SubmitJobRequest TrialWithFiles() {
  v1::SubmitJobRequest request = SubmitTrue();
  request.set_validate_only(true);
  request.mutable_spec()->set_image("busybox:1");
  request.mutable_spec()->add_uploads()->set_tree_sha256(std::string(64, 'a'));
  return request;
}

TEST(SubmitQuestions, AJobThatBringsMoreAlongThanTheOnlyClusterTakesIsRefused) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(TakeUploads));
  Submitting submit(broker, TrialWithFiles());
  Answer(agent, "uploads: they make an archive of 20Mi");
  const grpc::Status status = submit.status.get();
  EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED");
  EXPECT_THAT(status.error_message(), HasSubstr("an archive of 20Mi"));
}

TEST(SubmitQuestions, WhatWasSaidBeforeTheFilesCameIsAskedAgain) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(TakeUploads));
  Submitting before(broker, TrialWithFiles());
  Answer(agent, "");
  ASSERT_TRUE(before.status.get().ok());
  Submitting after(broker, TrialWithFiles());
  Answer(agent, "uploads: they make an archive of 20Mi");
  EXPECT_EQ(Reason(after.status.get()), "CANNOT_BE_PLACED");
}

// Returns the warnings of a submit whose question the agent has answered with a warning.
std::vector<v1::SubmitWarning> WarningsOfSubmit(TestBroker& broker, FakeAgent& agent,
                                                const std::string& words, bool refuses,
                                                v1::SubmitWarningCode code = {}) {
  v1::SubmitJobResponse response;
  auto status = std::async(std::launch::async, [&] {
    return broker.jobs().SubmitJob(Call().get(), OnKubernetes(), &response);
  });
  agent::v1::ConnectRequest answer = PlanFor(NextQuestion(agent).id(), refuses ? "no" : "");
  v1::JobPlan* plan = answer.mutable_answer()->mutable_plan();
  v1::ClusterCheck* check = plan->add_checks();
  check->set_subject("kubernetes.volumes[0].claim");
  check->set_result(v1::CHECK_RESULT_WARN);
  check->set_seen(words);
  check->set_remedy("Make it.");
  if (code != v1::SUBMIT_WARNING_CODE_UNSPECIFIED)
    *plan->add_warnings() = contract::MakeWarning(code, *check);
  EXPECT_TRUE(agent.Write(answer));
  EXPECT_EQ(status.get().ok(), !refuses);
  return {response.warnings().begin(), response.warnings().end()};
}

TEST(SubmitQuestions, WhatAnAgentWarnsOfIsToldWithEachAcceptedJob) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  // Twice: who has made the claim wants to be believed, and who has not to be told again.
  for (int i = 0; i < 2; ++i) {
    const auto warnings = WarningsOfSubmit(broker, agent, "\"dätä\": there is none", false);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].code(), v1::SUBMIT_WARNING_CODE_CHECK);
    EXPECT_EQ(warnings[0].message(),
              "on cluster gpu: kubernetes.volumes[0].claim \"dätä\": there is none");
    EXPECT_EQ(warnings[0].remedy(), "Make it.");
    EXPECT_EQ(warnings[0].subject(), "kubernetes.volumes[0].claim");
  }
  EXPECT_THAT(WarningsOfSubmit(broker, agent, "x", true), IsEmpty());
  const auto cut = WarningsOfSubmit(broker, agent, std::string(10'000, 'x'), false);
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].message().size(), 1024u);
  const auto named =
      WarningsOfSubmit(broker, agent, "y", false, v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
  ASSERT_EQ(named.size(), 1u) << "the agent knows best what its checks warn of";
  EXPECT_EQ(named[0].code(), v1::SUBMIT_WARNING_CODE_NOT_THERE_YET);
}

TEST(SubmitQuestions, WhatNobodyRefusedIsNotAskedAgainForJobsThatAreAlike) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting first(broker);
  Answer(agent, "");
  ASSERT_TRUE(first.status.get().ok());
  v1::SubmitJobRequest alike = OnKubernetes();
  alike.mutable_spec()->mutable_command()->mutable_argv()->add_args("other");
  auto questions = RefuseAll(agent);
  Submitting second(broker, alike);
  const grpc::Status status = second.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(second.response.job_id(), first.response.job_id());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AJobThatCapacityAloneJudgesAsksNobody) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  v1::SubmitJobRequest plain = SubmitTrue();
  plain.mutable_spec()->set_image("busybox:1");
  auto questions = RefuseAll(agent);
  Submitting submit(broker, plain);
  EXPECT_TRUE(submit.status.get().ok());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AJobThatNamesADirectoryIsAskedAboutForOfImagesBrokersKnowNothing) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  v1::SubmitJobRequest named = SubmitTrue();
  named.mutable_spec()->set_image("busybox:1");
  named.mutable_spec()->set_working_directory("/data");
  Submitting submit(broker, named);
  Answer(agent, "");
  EXPECT_TRUE(submit.status.get().ok());
}

TEST(SubmitQuestions, AClusterWhosePoolTakesNoJobsNowIsNotAsked) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect([](agent::v1::AgentHello& hello) {
    BeKubernetes(hello);
    hello.mutable_inventory()->mutable_pools(0)->set_available(false);
  }));
  auto questions = RefuseAll(agent);
  Submitting submit(broker);
  EXPECT_TRUE(submit.status.get().ok());
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AClusterThatRefusesIsLeftOut) {
  TestBroker broker;
  FakeAgent refuses(broker, "a-refuses");
  ASSERT_TRUE(refuses.Connect(BeKubernetes));
  FakeAgent takes(broker, "b-takes");
  ASSERT_TRUE(takes.Connect([](agent::v1::AgentHello& hello) {
    BeKubernetes(hello);
    hello.set_journal_id("journal-2");
  }));
  Submitting submit(broker);
  Answer(refuses, "no node has disk=ssd");
  Answer(takes, "");
  const grpc::Status status = submit.status.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(takes.ReadAssignments(1).size(), 1u);
}

TEST(SubmitQuestions, ARepeatOfAnAcceptedRequestIsAcceptedWhateverAgentsSayNow) {
  TestBroker broker;
  const uint64_t id = broker.Submit(OnKubernetes("once"));
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  auto questions = RefuseAll(agent);
  Submitting again(broker, OnKubernetes("once"));
  const grpc::Status status = again.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(again.response.job_id(), id);
  agent.Drop();
  EXPECT_EQ(questions.get(), 0);
}

TEST(SubmitQuestions, AnAgentThatGoesAwayRefusesNothing) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting submit(broker);
  while (auto message = agent.Read()) {
    if (message->has_question()) break;
  }
  agent.Drop();
  const grpc::Status status = submit.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// ---- refusals are not shared

TEST(SubmitQuestions, ARefusalIsNotToldOfAnotherJobThatWaitedForTheSameAnswer) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting bad(broker, Running("bad"));
  const agent::v1::AgentQuestion about_bad = NextQuestion(agent);
  // One that waits for that answer, with one that shows when it does.
  SubmittingAll good(broker, {Running("good"), Running("good", "tape")});
  const agent::v1::AgentQuestion about_tape = NextQuestion(agent);
  EXPECT_EQ(about_tape.plan().spec().kubernetes().node_selector().at("disk"), "tape");
  auto rest = JudgeAll(agent, Against("bad"));
  ASSERT_TRUE(agent.Write(PlanFor(about_tape.id(), "")));
  ASSERT_TRUE(agent.Write(PlanFor(about_bad.id(), "no storage for bad")));
  EXPECT_EQ(Reason(bad.status.get()), "CANNOT_BE_PLACED");
  const grpc::Status status = good.status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  agent.Drop();
  const std::vector<agent::v1::PlanQuestion> questions = rest.get();
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_EQ(ArgumentOf(questions[0]), "good");
}

TEST(SubmitQuestions, OfABatchEachKindIsAskedAboutAndARefusedJobAlone) {
  TestBroker broker;
  FakeAgent picky(broker, "a-picky");
  ASSERT_TRUE(picky.Connect(BeKubernetes));
  FakeAgent takes(broker, "b-takes");
  ASSERT_TRUE(takes.Connect([](agent::v1::AgentHello& hello) {
    BeKubernetes(hello);
    hello.set_journal_id("journal-2");
  }));
  auto asked = JudgeAll(picky, Against("bad"));
  auto all = JudgeAll(takes, Against("none"));
  SubmittingAll batch(broker, {Running("bad"), Running("bad"), Running("good"), Running("better"),
                               Running("other", "tape")});
  const grpc::Status status = batch.status.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  picky.Drop();
  takes.Drop();
  std::vector<std::string> arguments;
  for (const agent::v1::PlanQuestion& question : asked.get()) {
    arguments.push_back(ArgumentOf(question));
    EXPECT_EQ(question.user(), "") << "the cluster is not to be tried";
  }
  EXPECT_THAT(arguments, UnorderedElementsAre("bad", "good", "other"));
  EXPECT_EQ(all.get().size(), 3u);
}

TEST(SubmitQuestions, ABatchOfWhichOneCanGoNowhereIsRefusedWithoutMoreQuestions) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  auto questions = RefuseAll(agent);
  std::vector<v1::SubmitJobRequest> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(Running(std::to_string(i)));
  SubmittingAll batch(broker, requests);
  const grpc::Status status = batch.status.get();
  EXPECT_EQ(Reason(status), "CANNOT_BE_PLACED");
  EXPECT_THAT(status.error_message(), HasSubstr("requests[0]"));
  agent.Drop();
  EXPECT_EQ(questions.get(), 1);
}

// ---- bounds

TEST(SubmitQuestions, AfterAnAgentWasSilentNothingIsAskedForAWhile) {
  for (const bool rests : {true, false}) {
    TestBroker broker([rests](BrokerOptions& options) {
      options.submit.patience = absl::Milliseconds(50);
      if (!rests) options.submit.rest_after_silence = absl::ZeroDuration();
    });
    FakeAgent agent(broker);
    ASSERT_TRUE(agent.Connect(BeKubernetes));
    Submitting first(broker);
    NextQuestion(agent);
    const grpc::Status status = first.status.get();
    EXPECT_TRUE(status.ok()) << status.error_message();
    auto questions = RefuseAll(agent);
    Submitting second(broker, Running("x", "tape"));
    EXPECT_EQ(second.status.get().ok(), rests);
    agent.Drop();
    EXPECT_EQ(questions.get(), rests ? 0 : 1);
  }
}

TEST(SubmitQuestions, AnAnswerIsForgottenInTime) {
  TestBroker broker(
      [](BrokerOptions& options) { options.submit.answer_age = absl::ZeroDuration(); });
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  Submitting first(broker);
  Answer(agent, "");
  ASSERT_TRUE(first.status.get().ok());
  Submitting second(broker);
  Answer(agent, "no node has disk=ssd any more");
  EXPECT_EQ(Reason(second.status.get()), "CANNOT_BE_PLACED");
}

// Returns whether a further submit passes, without a question, while one waits for its answer.
bool PassesWhileOneWaits(const std::function<void(SubmitBounds&)>& adjust,
                         const v1::SubmitJobRequest& further) {
  TestBroker broker([&](BrokerOptions& options) { adjust(options.submit); });
  FakeAgent agent(broker);
  EXPECT_TRUE(agent.Connect(BeKubernetes));
  Submitting waits(broker);
  const agent::v1::AgentQuestion question = NextQuestion(agent);
  auto questions = RefuseAll(agent);
  Submitting second(broker, further);
  const bool passes = second.status.get().ok();
  agent.Write(PlanFor(question.id(), "no"));
  EXPECT_EQ(Reason(waits.status.get()), "CANNOT_BE_PLACED");
  agent.Drop();
  EXPECT_EQ(questions.get(), passes ? 0 : 1);
  return passes;
}

TEST(SubmitQuestions, WhatIsTooMuchToWaitForIsAcceptedUnasked) {
  const v1::SubmitJobRequest other = Running("x", "tape");
  EXPECT_FALSE(PassesWhileOneWaits([](SubmitBounds&) {}, other));
  EXPECT_TRUE(PassesWhileOneWaits([](SubmitBounds& bounds) { bounds.max_asked = 1; }, other));
  EXPECT_TRUE(PassesWhileOneWaits([](SubmitBounds& bounds) { bounds.max_waiting = 1; }, other));
  v1::SubmitJobRequest large = other;
  (*large.mutable_spec()->mutable_env())["LARGE"] = std::string(10'000, 'x');
  const auto few_bytes = [](SubmitBounds& bounds) { bounds.max_waiting_bytes = 10'000; };
  EXPECT_FALSE(PassesWhileOneWaits(few_bytes, other));
  EXPECT_TRUE(PassesWhileOneWaits(few_bytes, large));
}

TEST(SubmitQuestions, WhoHasItsAnswerMakesRoomForOthersToWait) {
  TestBroker broker([](BrokerOptions& options) { options.submit.max_waiting = 1; });
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect(BeKubernetes));
  auto questions = RefuseAll(agent);
  v1::SubmitJobRequest nowhere = OnKubernetes();
  nowhere.mutable_spec()->mutable_placement()->add_clusters("nosuch");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Reason(Submitting(broker, nowhere).status.get()), "UNKNOWN_CLUSTER");
    EXPECT_EQ(Reason(Submitting(broker).status.get()), "CANNOT_BE_PLACED");
  }
  agent.Drop();
  EXPECT_EQ(questions.get(), 3);
}

TEST(SubmitQuestions, AtMostTenClustersAreAskedAboutAJob) {
  constexpr int kClusters = 11;
  TestBroker broker;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  std::vector<std::future<int>> questions;
  for (int i = 0; i < kClusters; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(broker, "c" + std::to_string(i)));
    ASSERT_TRUE(agents.back()->Connect([i](agent::v1::AgentHello& hello) {
      BeKubernetes(hello);
      hello.set_journal_id("journal-" + std::to_string(i));
    }));
    questions.push_back(RefuseAll(*agents.back()));
  }
  const grpc::Status status = Submitting(broker).status.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  int count = 0;
  for (int i = 0; i < kClusters; ++i) {
    agents[i]->Drop();
    count += questions[i].get();
  }
  EXPECT_EQ(count, 10);
}

}  // namespace
}  // namespace muster::broker
