// batch.sh, run by bash as Slurm would run it on one node.
#ifndef MUSTER_TESTS_UNIT_SLURM_BATCH_FIXTURE_H_
#define MUSTER_TESTS_UNIT_SLURM_BATCH_FIXTURE_H_

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "agents/slurm/exit_record.h"
#include "agents/slurm/run_files.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::slurm {

inline std::string ReadWhole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class BatchScriptTest : public ::testing::Test {
 protected:
  BatchScriptTest() {
    paths_.emplace(root_, "k7m2-42-1");
    std::filesystem::create_directories(RunPaths::EndedDirectory(root_));
    MakeDirectories();
  }

  void MakeDirectories() {
    for (const std::string& path : paths_->Directories()) std::filesystem::create_directories(path);
  }
  void Prepare(const std::string& script) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script(script);
    Prepare(spec);
  }
  void Prepare(const v1::JobSpec& spec, const contract::ShellVariables& shell = {}) {
    agent::v1::Assignment assignment;
    assignment.set_run_key(paths_->run_key());
    assignment.set_job_id(42);
    *assignment.mutable_spec() = spec;
    const auto files = MakeRunFiles(assignment, "lab", *paths_, kMaxTimeoutRequeues, shell);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const RunFile& file : *files) {
      std::ofstream(file.path) << file.content;
      std::filesystem::permissions(file.path, std::filesystem::perms(file.mode));
    }
  }
  // Runs it as a Slurm job, in a process group of its own: what is sent to "0" comes to all of its
  // processes, as what Slurm sends does. `before`: shell text that comes first.
  void Start(int job_id = 17, const std::string& before = "") {
    const std::string command = fmt::format(
        "({0} SLURM_JOB_ID={1} SLURM_JOB_NUM_NODES=1 SLURM_JOB_NODELIST=n1 SLURM_JOB_USER=u "
        "PATH={4}/bin:$PATH exec setsid /bin/bash {2}/sbatch/batch.sh {2} 2>&1) | cat >>{3}",
        before, job_id, paths_->directory(), paths_->slurm_output(), root_);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  // Runs it as task 1 of array 30, whose run this is.
  void StartAsTask(const std::string& name) {
    const std::string list = root_ + "/arrays/" + name;
    std::filesystem::create_directories(list + ".out");
    std::ofstream(list) << "5 k7m2-41-1\n8 " << paths_->run_key() << "\n";
    const std::string command = fmt::format(
        "(export SLURM_JOB_ID=32 SLURM_ARRAY_JOB_ID=30 SLURM_ARRAY_TASK_ID=8 SLURM_JOB_NAME={0} "
        "SLURM_JOB_NUM_NODES=1 SLURM_JOB_USER=u; exec /bin/bash {1} {2} array 5,8-9 2>&1) "
        ">>{2}.out/8",
        name, paths_->script(), list);
    std::system(command.c_str());
  }
  ExitRecord EndOf(const std::string& script) {
    Prepare(script);
    return End();
  }
  ExitRecord EndOf(const v1::JobSpec& spec) {
    Prepare(spec);
    return End();
  }
  // Adds a command in Slurm's place: a shell script, found before the real one.
  void AddCommand(const std::string& name, const std::string& script) {
    const std::string path = root_ + "/bin/" + name;
    std::filesystem::create_directories(root_ + "/bin");
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms(0700));
  }
  // Writes a file in the command's working directory.
  void Write(const std::string& name, const std::string& text, std::filesystem::perms mode) {
    std::ofstream(paths_->work() + "/" + name) << text;
    std::filesystem::permissions(paths_->work() + "/" + name, mode);
  }

  const hosts::TempDir temp_;
  const std::string& root_ = temp_.path();
  std::optional<RunPaths> paths_;

 private:
  ExitRecord End() {
    Start();
    std::optional<ExitRecord> record = ParseExitRecord(ReadWhole(paths_->exit_record()));
    EXPECT_TRUE(record.has_value()) << ReadWhole(paths_->slurm_output());
    std::filesystem::remove(paths_->exit_record());
    std::filesystem::remove(paths_->claim());
    return record.value_or(ExitRecord{});
  }
};

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_UNIT_SLURM_BATCH_FIXTURE_H_
