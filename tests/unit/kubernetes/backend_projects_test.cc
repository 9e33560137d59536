// Runs of projects that have namespaces of their own.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agents/kubernetes/manifest/projects.h"
#include "contract/text.h"
#include "gmock/gmock.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;

constexpr char kOwnRun[] = "k7m2-1-1";

class BackendProjectsTest : public ScriptedClusterTest {
 protected:
  BackendProjectsTest() {
    config_.cluster = "lab";
    config_.default_image = "debian:12";
    config_.projects = std::make_shared<const ProjectMap>(
        *ProjectMap::Parse("sound: team-s\nvision: team-v\n", "/etc/muster/projects"));
    config_ = *WithProjects(config_);
    // The Job is in one namespace alone.
    answer_first_ = [this](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
      const bool is_of_job =
          request.method == "GET" && request.target.ends_with(std::string("/jobs/") + kOwnRun);
      if (!is_of_job || request.target.find("/namespaces/" + place_ + "/") != std::string::npos)
        return std::nullopt;
      return ScriptedReply{.status = 404, .body = R"({"kind":"Status","reason":"NotFound"})"};
    };
  }

  static agents::RunHandle RunOf(const std::string& project) {
    auto assignment = std::make_shared<agent::v1::Assignment>();
    assignment->set_run_key(kOwnRun);
    assignment->mutable_spec()->set_project(project);
    assignment->mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
    agents::RunHandle run = Handle(kOwnRun);
    run.assignment = std::move(assignment);
    return run;
  }
  void PutJobInto(const std::string& name_space) {
    Set([&] {
      place_ = name_space;
      jobs_ = Json::array({MakeJob(kOwnRun)});
      jobs_[0]["metadata"]["namespace"] = name_space;
    });
  }

  std::string place_ = "nowhere";
};

TEST_F(BackendProjectsTest, AJobOfThatNameInTheNamespaceOfAnotherProjectIsNotTheRuns) {
  StartWith({});
  PutJobInto("team-s");
  EXPECT_EQ(backend_->Lookup(RunOf("vision")).kind, agents::LookupOutcome::Kind::kAbsent);
  const agents::FenceOutcome fence = backend_->Fence(RunOf("vision"));
  EXPECT_EQ(fence.kind, agents::FenceOutcome::Kind::kNeverBegins) << fence.evidence.DebugString();
  PutJobInto("team-v");
  const agents::LookupOutcome found = backend_->Lookup(RunOf("vision"));
  EXPECT_EQ(found.kind, agents::LookupOutcome::Kind::kFound);
  EXPECT_EQ(found.external_id, std::string("team-v/") + kOwnRun);
}

TEST_F(BackendProjectsTest, WithoutALineNobodyKnowsWhereARunIs) {
  StartWith({});
  EXPECT_EQ(backend_->Lookup(RunOf("text")).kind, agents::LookupOutcome::Kind::kCouldNotAsk);
  const agents::FenceOutcome fence = backend_->Fence(RunOf("text"));
  EXPECT_EQ(fence.kind, agents::FenceOutcome::Kind::kNotYet);
  EXPECT_THAT(fence.evidence.detail(), HasSubstr("has no line any more"));
}

TEST_F(BackendProjectsTest, ACancelDeletesNothingInTheNamespaceOfAnotherProject) {
  StartWith({});
  PutJobInto("team-s");
  EXPECT_TRUE(backend_->End({RunOf("vision")}).front().ok());
  EXPECT_THAT(TakeChanges(), testing::Each(testing::Not(HasSubstr("DELETE"))));
}

TEST_F(BackendProjectsTest, ARunOfAProjectWithoutALineIsRefusedAndMakesNothing) {
  StartWith({});
  const agents::RunHandle run = RunOf("text");
  const agents::LaunchOutcome outcome = backend_->Launch({run.assignment}).front();
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.detail(), HasSubstr("kubernetes.projects (/etc/muster/projects)"));
  EXPECT_THAT(TakeChanges(), testing::IsEmpty());
}

TEST_F(BackendProjectsTest, ARunThatLostItsLineIsAdoptedWithoutAPlace) {
  StartWith({RunOf("text")});
  EXPECT_TRUE(backend_->Observe({RunOf("text")}).observations.empty());
}

TEST_F(BackendProjectsTest, ARunStaysInItsNamespaceWhateverTheMapSaysLater) {
  agents::RunHandle run = RunOf("vision");
  run.external_id = std::string("team-s/") + kOwnRun;
  StartWith({run});
  PutJobInto("team-s");
  EXPECT_EQ(backend_->Lookup(run).kind, agents::LookupOutcome::Kind::kFound);
}

TEST_F(BackendProjectsTest, TheBrokerJudgesNoJobByTheNamespaceOfAnotherProject) {
  answer_first_ = [](const ScriptedRequest& request) -> std::optional<ScriptedReply> {
    if (request.target.find("/resourcequotas") == std::string::npos ||
        request.target.find("watch=1") != std::string::npos)
      return std::nullopt;
    const Json quota = {{"metadata", {{"name", "small"}}},
                        {"spec", {{"hard", {{"requests.cpu", "1"}}}}},
                        {"status", {{"hard", {{"requests.cpu", "1"}}}}}};
    return ScriptedReply{
        .body = Json{{"metadata", {{"resourceVersion", "7"}}}, {"items", {quota}}}.dump()};
  };
  StartWith({});
  const absl::StatusOr<v1::Inventory> inventory = backend_->Inventory();
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  const auto& spaces = inventory->admission().kubernetes().namespaces();
  ASSERT_EQ(spaces.size(), 2);
  EXPECT_EQ(spaces[0].name(), "team-s");
  EXPECT_EQ(spaces[0].limits_size(), 0) << "a job that names none may be in another one";
  EXPECT_GT(spaces[1].limits_size(), 0);
  ASSERT_EQ(inventory->pools_size(), 2);
  for (const v1::Pool& pool : inventory->pools()) EXPECT_TRUE(pool.is_default()) << pool.name();
}

}  // namespace
}  // namespace muster::kubernetes
