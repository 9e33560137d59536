#include "agents/slurm/run_files.h"

#include <map>

#include "absl/time/clock.h"
#include "contract/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

std::map<std::string, RunFile> Make(const v1::JobSpec& spec,
                                    const contract::ShellVariables& shell = {}) {
  agent::v1::Assignment assignment;
  assignment.set_job_id(42);
  assignment.set_run_key("k7m2-42-1");
  assignment.set_run(1);
  *assignment.mutable_spec() = spec;
  const auto files =
      MakeRunFiles(assignment, "lab", RunPaths("/runs", "k7m2-42-1"), kMaxTimeoutRequeues, shell);
  EXPECT_TRUE(files.ok()) << files.status();
  std::map<std::string, RunFile> by_name;
  if (!files.ok()) return by_name;
  for (const RunFile& file : *files) by_name[file.path.substr(file.path.rfind('/') + 1)] = file;
  return by_name;
}

TEST(RunFilesTest, ArgumentsAreKeptByteForByte) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.set_working_directory("/data/a b");
  for (const char* arg : {"printf", "%s\n", "a 'b' \"c\" $(id) `id` \\", ""}) {
    spec.mutable_command()->mutable_argv()->add_args(arg);
  }
  const auto files = Make(spec);
  EXPECT_THAT(files,
              UnorderedElementsAre(Key("batch.sh"), Key("environment"), Key("command.argv")));
  EXPECT_EQ(files.at("command.argv").content,
            "/data/a b\0printf\0%s\n\0a 'b' \"c\" $(id) `id` \\\0\0"s);
}

TEST(RunFilesTest, SecretsAreInFilesOfTheirOwnAndNowhereElse) {
  agent::v1::Assignment assignment;
  assignment.set_run_key("k7m2-42-1");
  assignment.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
  for (const bool as_file : {false, true}) {
    agent::v1::RunSecret* secret = assignment.add_secrets();
    secret->set_variable(as_file ? "KUBECONFIG" : "TOKEN");
    secret->set_value("canary\nof two lines");
    secret->set_as_file(as_file);
  }
  const RunPaths paths("/runs", "k7m2-42-1");
  const auto files = MakeRunFiles(assignment, "lab", paths);
  ASSERT_TRUE(files.ok()) << files.status();
  std::map<std::string, std::string> found;
  for (const RunFile& file : *files) {
    if (file.content.find("canary") == std::string::npos) continue;
    EXPECT_EQ(file.mode, 0600u);
    found[file.path] = file.content;
  }
  EXPECT_EQ(found, (std::map<std::string, std::string>{
                       {"/runs/k7m2-42-1/env/secrets",
                        "KUBECONFIG=/runs/k7m2-42-1/env/secret.KUBECONFIG\0"
                        "TOKEN=canary\nof two lines\0"s},
                       {"/runs/k7m2-42-1/env/secret.KUBECONFIG", "canary\nof two lines"}}));
  for (const RunFile& note : MakeRunNotes(assignment, "lab", paths, {"sbatch"}, absl::Now()))
    EXPECT_THAT(note.content, Not(HasSubstr("canary")));
}

TEST(RunFilesTest, AScriptRunsByItsOwnInterpreterOrByTheShell) {
  v1::JobSpec spec;
  spec.set_nodes(1);
  spec.mutable_command()->set_script("#!/usr/bin/python3\nprint(1)\n");
  spec.set_setup("mkdir data");
  const auto files = Make(spec);
  EXPECT_EQ(files.at("command").content, "#!/usr/bin/python3\nprint(1)\n");
  EXPECT_EQ(files.at("command").mode, 0700u);
  EXPECT_EQ(files.at("command.argv").content,
            "/runs/k7m2-42-1/work\0/usr/bin/python3\0/runs/k7m2-42-1/specs/command\0"s);
  EXPECT_EQ(files.at("setup.argv").content,
            "/runs/k7m2-42-1/work\0/bin/sh\0/runs/k7m2-42-1/specs/setup\0"s);
}

TEST(RunFilesTest, TheShellsVariablesAreApartAndNobodyElseReadsThem) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  v1::ShellEnvironment& shell =
      *spec.mutable_slurm()->mutable_batch_script()->mutable_environment();
  for (const char* name : {"NNODES", "TOKEN", "SLURM_X"}) shell.add_named(name);
  const auto files = Make(spec, {{"PATH", "/opt/bin"},
                                 {"TOKEN", "secret"},
                                 {"NNODES", "mine"},
                                 {"WORLD_SIZE", "theirs"},
                                 {"SLURM_X", "1"},
                                 {"a.b", "1"},
                                 {"BASH_FUNC_f%%", "() { :\n}"}});
  EXPECT_EQ(files.at("shell").content, "BASH_FUNC_f%%=() { :\n}\0PATH=/opt/bin\0SLURM_X=1\0"s);
  EXPECT_EQ(files.at("shell").mode, 0600u);
  EXPECT_EQ(files.at("shell").path, "/runs/k7m2-42-1/env/shell");
  const std::string& environment = files.at("environment").content;
  EXPECT_GT(environment.find("NNODES=mine"), environment.find("NNODES=1"));
  EXPECT_THAT(environment, HasSubstr("TOKEN=secret"));
  EXPECT_EQ(environment.find("theirs"), std::string::npos);
  EXPECT_FALSE(files.contains("login"));
  shell.mutable_login_timeout()->set_seconds(8);
  EXPECT_EQ(Make(spec).at("login").content, "8\n");
  EXPECT_FALSE(Make(spec).contains("shell"));
}

TEST(RunFilesTest, AVariableThatBashSetsIsRefusedIfItWasNamed) {
  agent::v1::Assignment assignment;
  v1::JobSpec& spec = *assignment.mutable_spec();
  spec.mutable_command()->set_script("#!/bin/sh\ntrue\n");
  const auto make = [&] {
    return MakeRunFiles(assignment, "lab", RunPaths("/runs", "k"), kMaxTimeoutRequeues,
                        {{"UID", "1"}})
        .status();
  };
  EXPECT_TRUE(make().ok());
  spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->add_named("UID");
  EXPECT_THAT(std::string(make().message()),
              HasSubstr("slurm.batch_script.environment.named[\"UID\"]"));
}

TEST(RunFilesTest, TheUsersVariablesComeLastAndNobodyElseReadsThem) {
  v1::JobSpec spec;
  spec.set_nodes(2);
  spec.mutable_resources()->add_gpus()->set_count_millis(4000);
  spec.mutable_command()->mutable_argv()->add_args("true");
  (*spec.mutable_env())["TOKEN"] = "s3cr3t\nvalue";
  (*spec.mutable_env())["NNODES"] = "mine";
  const auto files = Make(spec);
  const RunFile& environment = files.at("environment");
  EXPECT_EQ(environment.mode, 0600u);
  for (const std::string& entry :
       {"WORLD_SIZE=2\0"s, "NUM_GPU_PER_NODE=4\0"s, "NPROC_PER_NODE=4\0"s,
        "SKYPILOT_NUM_NODES=2\0"s, "MASTER_PORT=29542\0"s, "MUSTER_CLUSTER=lab\0"s,
        "MUSTER_RUN_KEY=k7m2-42-1\0"s, "TOKEN=s3cr3t\nvalue\0"s}) {
    EXPECT_THAT(environment.content, HasSubstr(entry));
  }
  EXPECT_GT(environment.content.find("NNODES=mine"), environment.content.find("NNODES=2"));
  for (const auto& [name, file] : files) {
    if (name == "environment") continue;
    EXPECT_EQ(file.content.find("s3cr3t"), std::string::npos) << name;
  }
}

TEST(RunFilesTest, AVariableThatBashOwnsIsRefusedByName) {
  agent::v1::Assignment assignment;
  (*assignment.mutable_spec()->mutable_env())["UID"] = "0";
  const auto files = MakeRunFiles(assignment, "lab", RunPaths("/runs", "k7m2-42-1"));
  const auto bad = contract::GetBadRequest(files.status());
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "env[\"UID\"]");
}

TEST(RunFilesTest, TheNotesTellOfTheRunAndNothingSecret) {
  agent::v1::Assignment assignment;
  assignment.set_job_id(42);
  assignment.set_run(1);
  assignment.set_run_key("k7m2-42-1");
  assignment.set_user("ada");
  v1::JobSpec& spec = *assignment.mutable_spec();
  spec.set_name("train");
  (*spec.mutable_env())["TOKEN"] = "hunter2";
  (*spec.add_roles()->mutable_env())["TOKEN"] = "hunter2";
  const RunPaths paths("/runs", "k7m2-42-1");
  std::map<std::string, std::string> texts;
  for (const RunFile& file : MakeRunNotes(assignment, "lab", paths, {"sbatch", "--comment=a b"},
                                          absl::FromUnixSeconds(0))) {
    texts[file.path] = file.content;
    EXPECT_EQ(file.mode, 0600u);
    EXPECT_THAT(file.content, ::testing::Not(HasSubstr("hunter2"))) << file.path;
  }
  EXPECT_THAT(texts["/runs/k7m2-42-1/specs/job.json"], HasSubstr("\"TOKEN\": \"(in env/)\""));
  for (const char* words : {"\"run_key\": \"k7m2-42-1\"", "\"job\": \"42\"", "\"user\": \"ada\"",
                            "\"cluster\": \"lab\"", "\"1970-01-01T00:00:00Z\""}) {
    EXPECT_THAT(texts["/runs/k7m2-42-1/meta/run.json"], HasSubstr(words));
  }
  EXPECT_EQ(texts["/runs/k7m2-42-1/sbatch/command"], "'sbatch' '--comment=a b'\n");
}

TEST(RunFilesTest, TheBatchScriptIsTheSameForEveryRun) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("echo unmistakable");
  EXPECT_EQ(Make(spec).at("batch.sh").content, BatchScript());
  EXPECT_TRUE(BatchScript().starts_with("#!/bin/bash\n"));
}

}  // namespace
}  // namespace muster::slurm
