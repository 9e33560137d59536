// Counts the calls that one look at the runs, or one launch of many, makes beside squeue and
// sbatch. Slurm's commands are scripts.
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

class RoundTest : public StubCommandsTest {
 protected:
  RoundTest() {
    std::filesystem::create_directories(RunPaths::EndedDirectory(root_));
    AddCommand("squeue", fmt::format("exec cat {}/queue", root_));
    AddCommand("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
    AddCommand("scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1");
    AddCommand("scancel", fmt::format("echo \"$*\" >>{}/canceled", root_));
    AddCommand("sbatch", "echo 17");
    AddCommand("sinfo", "echo n1; echo n2");
    SlurmConfig config = Config();
    config.run_dir = root_;
    // Shorter than a squeue takes to start, so that each Observe is due to ask.
    config.observe_interval = absl::Nanoseconds(1);
    config.round_patience = absl::ZeroDuration();
    backend_ = CreateSlurmBackend(config, root_);
  }

  agents::RunHandle AddRun(int job, uint64_t id) {
    agents::RunHandle run;
    run.run_key = fmt::format("k7m2-{}-1", job);
    run.external_id = std::to_string(id);
    run.launch_time = absl::Now();
    AddRow(run, id, "RUNNING");
    return run;
  }
  void AddRow(const agents::RunHandle& run, uint64_t id, const std::string& state) {
    std::ofstream(root_ + "/queue", std::ios::app) << fmt::format(
        "{}\x1fN/A\x1f{}\x1f{}\x1fNone\x1fn1\x1f{}\x1fN/A\x1fN/A\x1f"
        "0\x1fp\x1f"
        "a\x1fq\n",
        id, run.run_key, state, absl::ToUnixSeconds(run.launch_time));
  }
  // Looks at the runs with a squeue of its own.
  void Look(const std::vector<agents::RunHandle>& runs) { LookAt(runs); }
  agents::ObserveOutcome LookAt(const std::vector<agents::RunHandle>& runs) {
    const uint64_t before = backend_->SchedulerCalls()["squeue"];
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    agents::ObserveOutcome seen;
    while (backend_->SchedulerCalls()["squeue"] == before && absl::Now() < deadline) {
      seen = backend_->Observe(runs);
      EXPECT_TRUE(seen.scheduler.ok());
    }
    return seen;
  }
  std::string Canceled() {
    std::ostringstream text;
    text << std::ifstream(root_ + "/canceled").rdbuf();
    return text.str();
  }

  std::unique_ptr<agents::Backend> backend_;
};

TEST_F(RoundTest, JobsWhoseTurnHasNotComeInTimeAreAskedForAtTheNextLook) {
  std::vector<agents::RunHandle> runs;
  for (int job = 1; job <= 3; ++job) {
    runs.push_back(AddRun(job, 10 + job));
  }
  std::filesystem::remove(root_ + "/queue");
  for (int job = 1; job <= 3; ++job) AddRow(runs[job - 1], 10 + job, "FAILED");
  AddCommand("scontrol", fmt::format("echo \"$*\" >>{}/shown; exit 1", root_));
  for (uint64_t look = 1; look <= 3; ++look) {
    Look(runs);
    EXPECT_EQ(backend_->SchedulerCalls()["scontrol"], look);
  }
  std::set<std::string> shown;
  std::ifstream file(root_ + "/shown");
  for (std::string line; std::getline(file, line);) shown.insert(line);
  EXPECT_EQ(shown.size(), 3u) << "one that gets no answer does not take the others' turns";
}

TEST_F(RoundTest, ARunWhoseRecordsDirectoryIsAwayEndsByItsRecordOnceThatIsBack) {
  const agents::RunHandle run = AddRun(1, 11);
  Look({run});
  const std::string ended = RunPaths::EndedDirectory(root_);
  std::ofstream(ended + "/" + run.run_key)
      << "job=11 restart=0\nphase=command problem=none pulled=0\n"
         "code=0 signal=0 terminated=0 continued=0 rank=0\nstart=1 end=2\nnodes=n1\n"
         "cause=none about=\ncomplete\n";
  std::filesystem::rename(ended, root_ + "/away");
  std::ofstream(root_ + "/queue", std::ios::trunc).flush();
  const auto state = [&] {
    const agents::ObserveOutcome seen = LookAt({run});
    return seen.observations.empty() ? v1::RUN_STATE_UNSPECIFIED : seen.observations[0].state;
  };
  for (int look = 0; look < 3; ++look) EXPECT_EQ(state(), v1::RUN_STATE_FINISHING);
  std::filesystem::rename(root_ + "/away", ended);
  EXPECT_EQ(state(), v1::RUN_STATE_SUCCEEDED);
}

// The agent has started before the file system was mounted, and made its directories beneath.
TEST_F(RoundTest, NoRecordIsAbsentWhereTheRunsOwnFilesAreNot) {
  const agents::RunHandle run = AddRun(1, 11);
  Look({run});
  std::ofstream(root_ + "/queue", std::ios::trunc).flush();
  const agents::ObserveOutcome seen = LookAt({run});
  ASSERT_EQ(seen.observations.size(), 1u);
  EXPECT_EQ(seen.observations[0].state, v1::RUN_STATE_FINISHING);
  EXPECT_NE(seen.observations[0].reason.message().find("the run's files are not there either"),
            std::string::npos);
  std::filesystem::create_directories(
      std::filesystem::path(RunPaths(root_, run.run_key).script()).parent_path());
  std::ofstream(RunPaths(root_, run.run_key).script()).flush();
  EXPECT_TRUE(LookAt({run}).observations.empty()) << "it is absent, and the grace begins";
}

TEST_F(RoundTest, ARecordThatIsNotWholeIsNotAbsent) {
  const agents::RunHandle run = AddRun(1, 11);
  Look({run});
  std::ofstream(RunPaths::EndedDirectory(root_) + "/" + run.run_key).flush();
  std::ofstream(root_ + "/queue", std::ios::trunc).flush();
  const agents::ObserveOutcome seen = LookAt({run});
  ASSERT_EQ(seen.observations.size(), 1u);
  EXPECT_NE(seen.observations[0].reason.message().find("it is not whole"), std::string::npos);
}

TEST_F(RoundTest, StraysOfAllRunsAreCanceledInOneCallAndOnce) {
  const std::vector<agents::RunHandle> runs = {AddRun(1, 11), AddRun(2, 12)};
  AddRow(runs[0], 21, "PENDING");
  AddRow(runs[1], 22, "PENDING");
  for (int look = 0; look < 2; ++look) Look(runs);
  EXPECT_EQ(Canceled(), "21 22\n");
}

TEST_F(RoundTest, RunsThatAreCanceledTogetherAreOneCall) {
  const std::vector<agents::RunHandle> runs = {AddRun(1, 11), AddRun(2, 12), AddRun(3, 13)};
  for (const absl::Status& status : backend_->End(runs)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Canceled(), "11 12 13\n");
  EXPECT_EQ(backend_->SchedulerCalls()["squeue"], 1) << "none of them had been seen alive";
}

TEST_F(RoundTest, WhoseJobIsKnownIsCanceledBeforeTheQueueIsAskedForTheOthers) {
  const std::vector<agents::RunHandle> runs = {AddRun(1, 11), AddRun(2, 12)};
  Look({runs[0]});
  AddCommand("squeue", fmt::format("[ -e {0}/canceled ] && exec cat {0}/queue", root_));
  for (const absl::Status& status : backend_->End(runs)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Canceled(), "11\n12\n");
}

TEST_F(RoundTest, RunsInDoubtShareASqueue) {
  for (const char* command : {"squeue", "sacct"}) AddCommand(command, "");
  uint64_t lookups = 0;
  for (; lookups < 10; ++lookups) {
    agents::RunHandle run;
    run.run_key = fmt::format("k7m2-{}-1", lookups);
    run.launch_time = absl::Now();
    const agents::LookupOutcome outcome = backend_->Lookup(run);
    EXPECT_EQ(outcome.kind, agents::LookupOutcome::Kind::kAbsent);
    EXPECT_NE(outcome.evidence.detail().find("neither squeue nor sacct has"), std::string::npos);
  }
  EXPECT_LT(backend_->SchedulerCalls()["squeue"], lookups);
}

TEST_F(RoundTest, WithoutAccountingSacctIsNotSaidToHaveNoJob) {
  AddCommand("squeue", "");
  agents::RunHandle run;
  run.run_key = "k7m2-1-1";
  run.launch_time = absl::Now();
  const agents::LookupOutcome outcome = backend_->Lookup(run);
  EXPECT_EQ(outcome.kind, agents::LookupOutcome::Kind::kAbsent);
  EXPECT_NE(outcome.evidence.detail().find("there is no sacct to ask"), std::string::npos)
      << outcome.evidence.detail();
}

TEST_F(RoundTest, WhichNodesThereAreIsAskedOnceForAllThatAreLaunchedTogether) {
  std::vector<std::shared_ptr<const agent::v1::Assignment>> assignments;
  for (int job = 1; job <= 3; ++job) {
    auto assignment = std::make_shared<agent::v1::Assignment>();
    assignment->set_run_key(fmt::format("k7m2-{}-2", job));
    assignment->mutable_spec()->mutable_command()->set_script("true");
    assignment->add_excluded_nodes(fmt::format("n{}", job));
    assignments.push_back(std::move(assignment));
  }
  for (const agents::LaunchOutcome& outcome : backend_->Launch(assignments))
    EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kLaunched) << outcome.evidence.detail();
  EXPECT_EQ(backend_->SchedulerCalls()["sinfo"], 1);
}

}  // namespace
}  // namespace muster::slurm
