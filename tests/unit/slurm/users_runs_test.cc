// Runs of several users, one of whom cannot be told or cannot be served. Slurm's commands and
// muster-run-as are scripts; STUB_USER is the user as whom the latter runs them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/hosts/fd.h"
#include "agents/slurm/job_users.h"
#include "agents/slurm/slurm.h"
#include "contract/states.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Launched = agents::LaunchOutcome::Kind;
using LookedUp = agents::LookupOutcome::Kind;

// Ada and Bob are users whom every system has: daemon (1) and bin (2).
class UsersRunsTest : public StubCommandsTest {
 protected:
  UsersRunsTest() {
    // A file "refused", "stopped" or "hangs" says how its user is served.
    AddCommand("muster-run-as",
               fmt::format("verb=$1; user=$2\n"
                           "if [ -e {0}/refused.$user ]; then\n"
                           "  echo 'muster-run-as: nothing runs as this user' >&2; exit 125; fi\n"
                           "[ $verb = check ] && exit 0\n"
                           "[ -e {0}/stopped.$user ] && exit 7\n"
                           "[ -e {0}/hangs.$user ] && [ $4 = /bin/sh ] && read line <{0}/gate\n"
                           "cd \"$3\"; shift 3; STUB_USER=$user exec \"$@\"",
                           root_));
    for (const char* command : {"squeue", "sacct"}) AddCommand(command, "");
    AddCommand("sbatch", "echo 17");
    Map("ada: daemon\nbob: bin\n");
    backend_ = CreateSlurmBackend(UsersConfig(), root_);
  }

  SlurmConfig UsersConfig() const {
    SlurmConfig config = Config();
    config.run_as_user = true;
    config.run_as_helper = root_ + "/muster-run-as";
    config.run_as_map = root_ + "/map";
    config.observe_interval = absl::Nanoseconds(1);
    return config;
  }
  void Map(const std::string& text) { std::ofstream(root_ + "/map") << text; }
  void Mark(const std::string& what) { std::ofstream(root_ + "/" + what).flush(); }
  // Returns a squeue that lists the run's job, as daemon's.
  static std::string Row(const agents::RunHandle& run, const std::string& state) {
    return fmt::format(
        "for word; do case $word in --Format=*) sep=${{word#*:0}}; sep=${{sep%%,*}};; esac; done\n"
        "for field in {} N/A {} {} None n1 1 N/A N/A 0 p a q; do printf %s%s $field \"$sep\"; "
        "done\n"
        "echo 1",
        run.external_id, run.run_key, state);
  }
  std::string Text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(root_ + "/" + name).rdbuf();
    return text.str();
  }
  // Returns whom the agent has written down for the run.
  std::string Recorded(const agents::RunHandle& run) const {
    const auto user = ReadJobUser(OwnDirectoryOf(root_), run.run_key);
    return user.has_value() ? fmt::format("{} {}", user->name, user->uid) : "";
  }

  std::unique_ptr<agents::Backend> backend_;
};

agents::RunHandle RunFor(const std::string& user, int job) {
  auto assignment = std::make_shared<agent::v1::Assignment>();
  assignment->set_run_key(fmt::format("k7m2-{}-1", job));
  assignment->set_user(user);
  assignment->mutable_spec()->mutable_command()->set_script("true");
  agents::RunHandle run;
  run.run_key = assignment->run_key();
  run.external_id = std::to_string(10 + job);
  run.state = v1::RUN_STATE_RUNNING;
  run.launch_time = absl::Now();
  run.assignment = std::move(assignment);
  return run;
}

TEST_F(UsersRunsTest, ARunOfNobodyKnownGetsNoVerdictAndNoSecondLaunch) {
  const agents::RunHandle run = RunFor("eve", 1);
  ASSERT_TRUE(backend_->Adopt({run}).ok());
  const agents::LookupOutcome looked = backend_->Lookup(run);
  EXPECT_EQ(looked.kind, LookedUp::kCouldNotAsk);
  EXPECT_THAT(looked.evidence.detail(), HasSubstr("as which user"));
  EXPECT_THAT(backend_->Observe({run}).observations, IsEmpty());
  // The user is looked up again, and written down.
  Map("eve: daemon\n");
  EXPECT_THAT(backend_->Observe({run}).observations, SizeIs(1));
  EXPECT_EQ(Recorded(run), "daemon 1");
  Map("eve: bin\n");
  EXPECT_EQ(backend_->Lookup(run).kind, LookedUp::kAbsent);
  EXPECT_EQ(Recorded(run), "daemon 1");
}

TEST_F(UsersRunsTest, ARunThatIsForgottenMeanwhileIsNotWrittenDownAnew) {
  const agents::RunHandle run = RunFor("ada", 1);
  ASSERT_TRUE(backend_->Adopt({run}).ok());
  EXPECT_EQ(Recorded(run), "daemon 1");
  EXPECT_TRUE(backend_->Forget({run}).front().ok());
  EXPECT_EQ(Recorded(run), "");
  EXPECT_THAT(backend_->Observe({run}).observations, IsEmpty());
  EXPECT_EQ(Recorded(run), "");
}

TEST_F(UsersRunsTest, AMapThatCannotBeReadNowRefusesNobody) {
  const auto launch = [&](const std::string& user) {
    return LaunchOne(*backend_, *RunFor(user, 1).assignment);
  };
  Map("ada: daemon\nbo");
  EXPECT_EQ(launch("bob").kind, Launched::kDeferred) << "somebody is writing it";
  std::filesystem::remove(root_ + "/map");
  EXPECT_EQ(launch("bob").kind, Launched::kDeferred);
  Map("ada: daemon\n");
  EXPECT_EQ(launch("bob").kind, Launched::kRefused);
  Map("bob: bin\n");
  EXPECT_EQ(launch("bob").kind, Launched::kLaunched);
}

TEST_F(UsersRunsTest, AUserWhoseSbatchIsSilentHoldsUpNoOther) {
  AddCommand("sbatch", "[ $STUB_USER = daemon ] && kill -9 $$; echo 17");
  agents::Assignments assignments;
  for (const auto& [user, job] : {std::pair("ada", 1), std::pair("ada", 2), std::pair("bob", 3)})
    assignments.push_back(RunFor(user, job).assignment);
  std::vector<Launched> kinds;
  for (const agents::LaunchOutcome& outcome : backend_->Launch(assignments))
    kinds.push_back(outcome.kind);
  EXPECT_THAT(kinds, ElementsAre(Launched::kUnclear, Launched::kDeferred, Launched::kLaunched));
}

TEST_F(UsersRunsTest, AUserWhoCannotBeServedKeepsNoOthersRun) {
  const std::vector<agents::RunHandle> runs = {RunFor("ada", 1), RunFor("bob", 2)};
  ASSERT_TRUE(backend_->Adopt(runs).ok());
  Mark("stopped.daemon");
  const std::vector<absl::Status> statuses = backend_->Forget(runs);
  EXPECT_TRUE(absl::IsUnavailable(statuses[0])) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  EXPECT_EQ(Recorded(runs[0]), "daemon 1");
  EXPECT_EQ(Recorded(runs[1]), "");
}

TEST_F(UsersRunsTest, TheUsageOfOthersIsReadWithoutThatOfAUserWhoCannotBeServed) {
  const std::vector<agents::RunHandle> runs = {RunFor("ada", 1), RunFor("bob", 2)};
  ASSERT_TRUE(backend_->Adopt(runs).ok());
  Mark("stopped.daemon");
  const auto usage_of = backend_->capabilities().usage_of;
  EXPECT_TRUE(usage_of(runs).ok());
  EXPECT_TRUE(absl::IsUnavailable(usage_of({runs[0]}).status()));
}

TEST_F(UsersRunsTest, TheReadsOfAUserThatHangHoldUpNoOthers) {
  const std::vector<agents::RunHandle> runs = {RunFor("ada", 1), RunFor("bob", 2)};
  SlurmConfig config = UsersConfig();
  config.read_patience = absl::Seconds(3);
  backend_ = CreateSlurmBackend(config, root_);
  ASSERT_TRUE(backend_->Adopt(runs).ok());
  ASSERT_EQ(mkfifo((root_ + "/gate").c_str(), 0600), 0);
  Mark("hangs.daemon");
  EXPECT_EQ(backend_->Lookup(runs[0]).kind, LookedUp::kCouldNotAsk);
  std::filesystem::remove(root_ + "/hangs.daemon");
  EXPECT_EQ(backend_->Lookup(runs[0]).kind, LookedUp::kCouldNotAsk) << "the first read still hangs";
  EXPECT_EQ(backend_->Lookup(runs[1]).kind, LookedUp::kAbsent);
  const hosts::Fd gate(open((root_ + "/gate").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(write(gate.get(), "\n", 1), 1);
}

TEST_F(UsersRunsTest, TheAgentEndsJobsOfAUserAsWhomNothingRunsAnyMore) {
  const agents::RunHandle run = RunFor("ada", 1);
  ASSERT_TRUE(backend_->Adopt({run}).ok());
  AddCommand("squeue", Row(run, "RUNNING"));
  AddCommand("scancel", "echo \"$STUB_USER $*\" >>" + root_ + "/canceled");
  Mark("refused.daemon");
  const absl::Status ended = backend_->End({run}).front();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(Text("canceled"), " 11\n") << "the agent, not ada";
  AddCommand("scancel",
             "echo 'scancel: error: Kill job error on job id 11: Access/permission denied' >&2\n"
             "exit 1");
  const absl::Status denied = backend_->End({run}).front();
  EXPECT_THAT(std::string(denied.message()),
              AllOf(HasSubstr("nothing runs as this user"), HasSubstr("Access/permission denied")));
}

TEST_F(UsersRunsTest, TheHistoryOfSuchAUsersJobIsTheAgents) {
  const agents::RunHandle run = RunFor("ada", 1);
  ASSERT_TRUE(backend_->Adopt({run}).ok());
  Mark("refused.daemon");
  AddCommand("sacct", fmt::format("for field in 11 11 {} CANCELLED 0:0 n1 1 2 p a; do\n"
                                  "  printf '%s\\037' $field; done; echo q",
                                  run.run_key));
  const agents::ObserveOutcome seen = backend_->Observe({run});
  ASSERT_THAT(seen.observations, SizeIs(1));
  EXPECT_TRUE(contract::IsTerminal(seen.observations[0].state)) << seen.observations[0].state;
}

}  // namespace
}  // namespace muster::slurm
