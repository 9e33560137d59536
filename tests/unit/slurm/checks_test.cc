// Tests the judgement of a preflight's answers.
#include "agents/slurm/checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr v1::CheckResult kOk = v1::CHECK_RESULT_OK;
constexpr v1::CheckResult kWarn = v1::CHECK_RESULT_WARN;
constexpr v1::CheckResult kFail = v1::CHECK_RESULT_FAIL;
constexpr v1::CheckResult kSkipped = v1::CHECK_RESULT_SKIPPED;

std::vector<v1::CheckResult> Results(const agents::CheckList& list) {
  std::vector<v1::CheckResult> results;
  for (const v1::ClusterCheck& check : list.checks().checks()) {
    results.push_back(check.result());
    EXPECT_NE(check.code(), v1::CHECK_CODE_UNSPECIFIED) << check.DebugString();
    EXPECT_TRUE(check.result() != kFail || !check.remedy().empty())
        << "what is wrong has a remedy: " << check.subject();
  }
  return results;
}

const v1::ClusterCheck& Last(const agents::CheckList& list) {
  return list.checks().checks(list.checks().checks_size() - 1);
}

hosts::CommandResult Said(std::string out, int exit_code = 0, std::string err = "") {
  hosts::CommandResult result;
  result.exit_code = exit_code;
  result.stdout_data = std::move(out);
  result.stderr_data = std::move(err);
  return result;
}

// ---- login nodes

hosts::WayIn Way(absl::Status status) {
  return {.name = "login:22", .reached = {}, .status = std::move(status), .remedy = "mend it"};
}

TEST(JudgeLoginsTest, TheFirstHostThatIsReachedDecides) {
  const absl::Status ok;
  const absl::Status down = absl::UnavailableError("refused");
  const absl::Status changed = absl::FailedPreconditionError("the host key has changed");
  const absl::Status denied = absl::PermissionDeniedError("no");
  struct Case {
    std::vector<absl::Status> ways;
    bool usable;
    std::vector<v1::CheckResult> results;
  };
  const Case cases[] = {
      {{ok}, true, {kOk, kOk}},
      {{down, ok}, true, {kOk, kWarn, kOk}},
      {{ok, changed}, true, {kOk, kOk, kWarn}},
      {{changed, ok}, false, {kOk, kFail, kOk}},
      {{down, denied, ok}, false, {kOk, kFail, kFail, kOk}},
      {{down, down}, false, {kOk, kFail, kFail}},
  };
  for (const Case& one : cases) {
    hosts::LoginReport report{"SSH key /k", absl::OkStatus(), {}};
    for (const absl::Status& status : one.ways) report.ways.push_back(Way(status));
    agents::CheckList checks;
    EXPECT_EQ(JudgeLogins(report, &checks), one.usable);
    EXPECT_EQ(Results(checks), one.results);
  }
}

TEST(JudgeLoginsTest, AKeyThatCannotBeUsedIsALineOfItsOwn) {
  agents::CheckList checks;
  JudgeLogins({"SSH key /k", absl::FailedPreconditionError("has mode 0644"), {Way({})}}, &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kFail, kOk));
  EXPECT_THAT(checks.checks().checks(0).seen(), HasSubstr("0644"));
}

// ---- Slurm

TEST(JudgeCommandsTest, AMissingCommandFailsAndIsNamed) {
  agents::CheckList checks;
  EXPECT_TRUE(JudgeCommands("here", {{"sbatch", {}}, {"srun", {}}}, &checks));
  EXPECT_FALSE(
      JudgeCommands("here", {{"sbatch", {}}, {"srun", absl::NotFoundError("no file")}}, &checks));
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kFail));
  EXPECT_THAT(Last(checks).seen(), HasSubstr("srun: no file"));
}

TEST(JudgeControllerTest, MungeAndSlurmctldAreToldApart) {
  agents::CheckList good;
  EXPECT_TRUE(
      JudgeController(Said("Slurmctld(primary) at vm is UP\n"), "ClusterName = lab", &good));
  EXPECT_THAT(Results(good), ElementsAre(kOk, kOk));
  EXPECT_EQ(Last(good).seen(), "Slurmctld(primary) at vm is UP");
  agents::CheckList down;
  EXPECT_FALSE(JudgeController(Said("Slurmctld(primary) at vm is DOWN\n", 1),
                               absl::UnavailableError("scontrol ended with exit code 1: "
                                                      "slurm_load_ctl_conf error: Unable to "
                                                      "contact slurm controller"),
                               &down));
  EXPECT_THAT(Results(down), ElementsAre(kSkipped, kFail));
  EXPECT_THAT(Last(down).seen(), HasSubstr("is DOWN"));
  agents::CheckList munge;
  EXPECT_FALSE(JudgeController(
      Said("Slurmctld(primary) at vm is DOWN\n", 1),
      absl::UnavailableError("scontrol ended with exit code 1: error: If munged is up, restart "
                             "with --num-threads=10\nerror: Munge encode failed: Failed to access"),
      &munge));
  EXPECT_THAT(Results(munge), ElementsAre(kFail, kSkipped));
}

TEST(JudgeClockTest, OnlyWhatTheTimeOfAskingDoesNotExplainIsSkew) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const AskedBetween asked{now, now + absl::Seconds(10)};
  const std::pair<absl::Duration, v1::CheckResult> cases[] = {
      {absl::Seconds(0), kOk},     {absl::Seconds(-1), kOk},   {absl::Seconds(14), kOk},
      {absl::Seconds(-4), kOk},    {absl::Seconds(15), kWarn}, {absl::Seconds(-10), kWarn},
      {absl::Seconds(400), kFail}, {absl::Minutes(-6), kFail}};
  for (const auto& [offset, result] : cases) {
    agents::CheckList checks;
    JudgeClock("clock", now + offset, asked, &checks);
    EXPECT_THAT(Results(checks), ElementsAre(result)) << offset;
  }
  agents::CheckList unknown;
  JudgeClock("clock", std::nullopt, asked, &unknown);
  EXPECT_THAT(Results(unknown), ElementsAre(kWarn));
}

TEST(ControllerTimeTest, IsAtTheHeadOfItsConfiguration) {
  EXPECT_EQ(ControllerTime("Configuration data as of 1795250430\nX = 1\n"),
            absl::FromUnixSeconds(1795250430));
  EXPECT_EQ(ControllerTime("X = 1\n"), std::nullopt);
}

// ---- accounting

TEST(JudgeAccountingTest, WithoutSlurmdbdJobsRunAndLessIsTold) {
  const absl::Status down = absl::UnavailableError("Connection refused");
  agents::CheckList checks;
  EXPECT_TRUE(JudgeAccounting({}, {}, &checks));
  EXPECT_FALSE(JudgeAccounting(down, down, &checks));
  EXPECT_FALSE(JudgeAccounting(absl::FailedPreconditionError("none is kept"), down, &checks));
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kWarn, kWarn));
  EXPECT_THAT(Last(checks).seen(), HasSubstr("none is kept"));
}

TEST(JudgeAssociationsTest, AUserWithoutAccountFailsWhereOneIsNeeded) {
  ClusterSettings settings;
  settings.name = "lab";
  settings.version = "22.05.8";
  EXPECT_EQ(AssociationArguments(settings, "ada").back().find("lineage"), std::string::npos);
  settings.version = "24.11.5";
  EXPECT_NE(AssociationArguments(settings, "ada").back().find("lineage"), std::string::npos);
  const auto child = ParseAssociations("child||normal|test||/root/test/child/0-ada/\n");
  EXPECT_THAT(child.at(0).line, testing::ElementsAre("child", "root", "test"));
  EXPECT_THAT(AccountsInLineage(""), testing::IsEmpty());
  EXPECT_THAT(AccountsInLineage("/test/0-ada/gpu/"), testing::Contains("test"));
  const auto rows = ParseAssociations("test||normal,one|test|normal\nother|gpu||test|\n||||\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].account, "test");
  EXPECT_THAT(rows[0].qos, ElementsAre("normal", "one"));
  EXPECT_EQ(rows[1].partition, "gpu");
  EXPECT_TRUE(rows[0].is_default);
  EXPECT_EQ(rows[0].default_qos, "normal");
  EXPECT_FALSE(rows[1].is_default);
  agents::CheckList checks;
  JudgeAssociations("ada", rows, true, &checks);
  EXPECT_THAT(Last(checks).remedy(), HasSubstr("slurm.account")) << "there is a choice";
  JudgeAssociations("ada", {}, true, &checks);
  JudgeAssociations("ada", {}, false, &checks);
  JudgeAssociations("ada", {}, std::nullopt, &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kFail, kOk, kWarn));
  EXPECT_TRUE(NeedsAssociation("AccountingStorageEnforce = associations,limits,qos\n"));
  EXPECT_FALSE(NeedsAssociation("AccountingStorageEnforce = none\n"));
}

// ---- partitions

Partition MakePartition(std::vector<std::string> limits, bool is_up = true) {
  Partition partition;
  partition.pool.set_name("p");
  partition.pool.set_available(is_up);
  partition.pool.set_state(is_up ? "up" : "down");
  partition.limits = std::move(limits);
  return partition;
}

std::vector<v1::Node> OneNode(const char* state) {
  v1::Node node;
  node.set_name("n1");
  node.set_state(state);
  node.add_pools("p");
  (*node.mutable_gpus())["h100"] = 4;
  return {node};
}

TEST(JudgePartitionsTest, TellsWhichTheUserCanUse) {
  const Asker ada{{"users"}, {{"vision", {"vision", "research"}}}, {"normal"}};
  struct Case {
    Partition partition;
    const char* state;
    std::vector<v1::CheckResult> results;
  };
  const Case cases[] = {
      {MakePartition({}), "idle", {kOk}},
      {MakePartition({"AllowAccounts=nlp,vision"}), "idle", {kOk}},
      {MakePartition({"AllowAccounts=nlp"}), "idle", {kWarn, kFail}},
      {MakePartition({"AllowAccounts=research"}), "idle", {kOk}},
      {MakePartition({"DenyAccounts=research"}), "idle", {kWarn, kFail}},
      {MakePartition({"AllowGroups=staff"}), "idle", {kWarn, kFail}},
      {MakePartition({"AllowQos=high"}), "idle", {kWarn, kFail}},
      {MakePartition({"DenyAccounts=vision"}), "idle", {kWarn, kFail}},
      {MakePartition({"DenyQos=low"}), "idle", {kOk}},
      {MakePartition({"RootOnly=YES"}), "idle", {kWarn, kFail}},
      {MakePartition({}, false), "idle", {kWarn, kFail}},
      {MakePartition({}), "down*", {kWarn, kFail}},
  };
  for (const Case& one : cases) {
    agents::CheckList checks;
    JudgePartitions({one.partition}, OneNode(one.state), ada, "", &checks);
    EXPECT_EQ(Results(checks), one.results) << checks.checks().DebugString();
  }
}

TEST(JudgePartitionsTest, RootAndSlurmUserAreKeptOutByAccountsAlone) {
  const Asker root = {
      .groups = {"root"}, .accounts = {{"a", {"a"}}}, .qos = {}, .is_privileged = true};
  EXPECT_EQ(KeepsOut(MakePartition({"RootOnly=YES", "AllowGroups=staff"}), root), "");
  EXPECT_EQ(KeepsOut(MakePartition({"AllowAccounts=nlp"}), root), "AllowAccounts=nlp");
}

TEST(JudgePartitionsTest, WhatIsNotKnownOfTheUserKeepsNobodyOut) {
  agents::CheckList checks;
  JudgePartitions({MakePartition({"AllowAccounts=nlp"})}, OneNode("idle"), {}, "", &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kOk));
  EXPECT_THAT(Last(checks).seen(), HasSubstr("1 of 1 nodes take work, 4 GPUs h100"));
}

TEST(JudgePartitionsTest, AConversionPartitionThatIsNotThereFails) {
  agents::CheckList checks;
  JudgePartitions({MakePartition({})}, OneNode("idle"), {}, "cpu", &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kFail));
  EXPECT_THAT(Last(checks).remedy(), HasSubstr("slurm.conversion_partition"));
}

TEST(JudgePartitionsTest, ManyPartitionsAreNotManyLines) {
  agents::CheckList checks;
  JudgePartitions(std::vector<Partition>(100, MakePartition({})), OneNode("idle"), {}, "", &checks);
  EXPECT_EQ(checks.checks().checks_size(), 65);
  EXPECT_THAT(Last(checks).seen(), HasSubstr("36 more"));
}

// ---- files and containers

TEST(JudgeDirectoryTest, AnUnwritableOneFailsAndNamesItsSetting) {
  agents::CheckList checks;
  JudgeDirectory("run_dir", "/r", absl::OkStatus(), &checks);
  EXPECT_THAT(Last(checks).seen(), HasSubstr("shown only by a job"));
  JudgeDirectory("run_dir", "/r", absl::PermissionDeniedError("Permission denied"), &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kFail));
  EXPECT_THAT(Last(checks).remedy(), HasSubstr("slurm.run_dir"));
}

TEST(JudgePyxisTest, WithoutItJobsWithImagesCannotRun) {
  agents::CheckList checks;
  EXPECT_TRUE(JudgePyxis(Said("      --container-image=[USER@][REGISTRY#]IMAGE\n"), &checks));
  EXPECT_FALSE(JudgePyxis(Said("      --container  Path to OCI container bundle\n"), &checks));
  EXPECT_FALSE(JudgePyxis(absl::UnavailableError("no"), &checks));
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kWarn, kWarn));
}

TEST(JudgeCredentialsTest, OthersMustNotReadThem) {
  hosts::FileInfo good;
  good.mode = 0600;
  hosts::FileInfo bad;
  bad.mode = 0644;
  agents::CheckList checks;
  JudgeCredentials("/h/.credentials", good, &checks);
  JudgeCredentials("/h/.credentials", bad, &checks);
  EXPECT_THAT(Last(checks).remedy(), HasSubstr("chmod 600 /h/.credentials"));
  JudgeCredentials("/h/.credentials", absl::NotFoundError("no file"), &checks);
  JudgeCredentials("/h/.credentials", absl::UnavailableError("no answer"), &checks);
  EXPECT_THAT(Results(checks), ElementsAre(kOk, kFail, kOk, kWarn));
}

}  // namespace
}  // namespace muster::slurm
