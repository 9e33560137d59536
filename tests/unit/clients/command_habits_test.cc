// The muster binary against a fake broker: words that people bring from other programs, and
// completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HabitsTest : public CommandTest {
 protected:
  HabitsTest() {
    broker_.list_jobs =
        [this](const v1::ListJobsRequest& request) -> absl::StatusOr<v1::ListJobsResponse> {
      filters_.push_back(request.filter());
      v1::ListJobsResponse page;
      for (uint64_t id : {421, 42, 7}) {
        v1::Job job = client::JobInState(id, v1::JOB_STATE_RUNNING);
        job.set_name("train:" + std::to_string(id));
        *page.add_jobs() = job;
      }
      return page;
    };
    broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
      v1::ListClustersResponse response;
      for (const char* name : {"lab", "large"}) {
        v1::Cluster* cluster = response.add_clusters();
        cluster->set_name(name);
        cluster->set_kind(v1::CLUSTER_KIND_SLURM);
      }
      return response;
    };
  }

  std::string Complete(std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  std::vector<std::string> filters_;
};

TEST_F(HabitsTest, SynonymsAreTheVerbsThemselves) {
  EXPECT_EQ(Run({"ls", "--state", "failed"}).out, Run({"list", "--state", "failed"}).out);
  EXPECT_EQ(filters_, std::vector<std::string>(2, "(state = \"FAILED\")"));
  EXPECT_EQ(Run({"describe", "42"}).out, Run({"show", "42"}).out);
  EXPECT_THAT(Run({"describe", "42"}).out, HasSubstr("Job 42"));
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("list, ls "));
}

TEST_F(HabitsTest, PsListsWhatHasNotEnded) {
  EXPECT_EQ(Run({"ps"}).code, 0);
  EXPECT_EQ(filters_.back(),
            "(state = \"QUEUED\" OR state = \"PENDING\" OR state = \"RUNNING\" OR state = "
            "\"SUSPENDED\")");
  Run({"ps", "--all"});
  EXPECT_EQ(filters_.back(), "");
  Run({"ps", "--state", "failed"});
  EXPECT_EQ(filters_.back(), "(state = \"FAILED\")");
}

TEST_F(HabitsTest, NoSynonymEndsAJob) {
  for (const char* word : {"rm", "delete", "kill", "stop"}) {
    const Outcome outcome = Run({word, "42"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("is not a verb of muster"));
    EXPECT_THAT(outcome.err, HasSubstr("use: muster cancel 42"));
  }
}

TEST_F(HabitsTest, ASlipIsAnsweredWithTheNearestWord) {
  EXPECT_THAT(Run({"lst"}).err, HasSubstr("\"lst\" is not a verb; did you mean list? Else"));
  EXPECT_THAT(Run({"token", "lst"}).err,
              HasSubstr("\"lst\" is not a verb of muster token; did you mean list? Else"));
  EXPECT_THAT(Run({"list", "--stat", "failed"}).err, HasSubstr("did you mean --state?"));
  EXPECT_THAT(Run({"list", "--state", "runnink"}).err, HasSubstr("did you mean RUNNING? Else"));
}

TEST_F(HabitsTest, TwoDashesEndTheFlagsOfAVerbThatTakesNames) {
  const std::string path = WriteFile("run: a\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"submit", "--", "-no.yaml"},
                                             {"submit", "--env", "A=1", "--", "-no.yaml"},
                                             {"submit", path, "--", "-no.yaml"},
                                             {"-qo", "json", "submit", "--", "-no.yaml"}}) {
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("-no.yaml: No such file"));
  }
  EXPECT_THAT(submitted_, IsEmpty()) << "all or none";
  EXPECT_EQ(Run({"submit", "--wait", "--", path}).code, 0);
  EXPECT_THAT(Run({"submit", "--", path, "--wait"}).err, HasSubstr("--wait: No such file"));
  EXPECT_EQ(Run({"show", "--", "42"}).code, 0);
  EXPECT_EQ(Run({"-qo", "json", "run", "--", "submit", "--"}).code, 0);
  EXPECT_THAT(submitted_.back().spec().command().argv().args(), ElementsAre("submit", "--"))
      << "what a command has is its own";
}

TEST_F(HabitsTest, AVerbWithWordsOfItsOwnMayHaveEveryFlagOfTheCommandBeforeIt) {
  for (const std::vector<std::string>& flag :
       std::vector<std::vector<std::string>>{{"--broker", broker_.address()},
                                             {"--ca-file", "/no/such"},
                                             {"--token-file", "/no/such"}}) {
    std::vector<std::string> words = flag;
    words.insert(words.end(), {"squeue", "-h", "-o", "%i"});
    EXPECT_THAT(Run(words).err, Not(HasSubstr("is not a flag"))) << flag[0];
  }
}

TEST_F(HabitsTest, AStateMayBeWrittenAsJsonHasIt) {
  Run({"list", "--state", "JOB_STATE_FAILED,held"});
  EXPECT_EQ(filters_.back(), "(state = \"FAILED\" OR held = true)");
}

TEST_F(HabitsTest, CompletesVerbsAndFlags) {
  EXPECT_EQ(Complete({"lis"}), "list\tList jobs, the newest first\n:none\n");
  EXPECT_THAT(Complete({""}), HasSubstr("submit\t"));
  EXPECT_THAT(Complete({""}), Not(HasSubstr("__complete")));
  EXPECT_EQ(Complete({"token", "re"}),
            "revoke\tEnd a token, and those that were made with it, at once\n:none\n");
  EXPECT_THAT(Complete({"list", "--sta"}), StartsWith("--state\t"));
  EXPECT_THAT(Complete({"list", "--brok"}), StartsWith("--broker\t")) << "those of all verbs, too";
  EXPECT_EQ(Complete({"run", "--", "--na"}), ":none\n") << "the command is not ours";
}

TEST_F(HabitsTest, CompletesValuesOfFlags) {
  EXPECT_EQ(Complete({"list", "--state", "ru"}), "running\n:none\n");
  EXPECT_EQ(Complete({"list", "--state=failed,ru"}), "--state=failed,running\n:none\n");
  EXPECT_EQ(Complete({"list", "-o", "js"}), "json\njsonl\njsonpath=\n:none\n");
  EXPECT_EQ(Complete({"run", "--cluster", "la"}), "lab\tslurm\nlarge\tslurm\n:none\n");
  EXPECT_EQ(Complete({"run", "--workdir", ""}), ":directories\n");
  EXPECT_EQ(Complete({"submit", ""}), ":files\n");
  EXPECT_EQ(Complete({"submit", "--", "-"}), ":files\n") << "no flags behind --";
}

TEST_F(HabitsTest, CompletesJobsWithTheirNames) {
  EXPECT_EQ(Complete({"cp", "--", "7:", ""}), ":files\n");
  EXPECT_EQ(Complete({"cancel", "42"}), "421\ttrain:421, RUNNING\n42\ttrain:42, RUNNING\n:none\n");
  EXPECT_THAT(filters_.back(), HasSubstr("state = QUEUED OR"));
  EXPECT_EQ(Complete({"cp", "7"}), "7:\ttrain:7, RUNNING\n:none\n");
  EXPECT_EQ(Complete({"cp", "7:", ""}), ":files\n");
  EXPECT_EQ(Complete({"--line", "muster cancel  '4"}),
            "421\ttrain:421, RUNNING\n42\ttrain:42, RUNNING\n:none\n");
}

TEST_F(HabitsTest, CompletionIsSilentWithoutABroker) {
  const Outcome outcome = RunCommand("unix:/nonexistent/socket", {"__complete", "cancel", ""});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, ":none\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(HabitsTest, TheScriptIsThatOfTheShell) {
  EXPECT_THAT(Run({"completion", "zsh"}).out, StartsWith("#compdef muster\n"));
  const Outcome other = Run({"completion", "csh"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("\"csh\" is not bash, zsh or fish"));
}

TEST_F(HabitsTest, AManualPageHasTheFlagsOfItsVerb) {
  const std::string page = Run({"help", "--man", "list"}).out;
  EXPECT_THAT(page, StartsWith(".TH MUSTER\\-LIST 1 "));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-\\-state\\fR \\fISTATE[,STATE...]\\fR\n"));
  EXPECT_THAT(Run({"help", "--man", "token", "create"}).out,
              StartsWith(".TH MUSTER\\-TOKEN\\-CREATE"));
  EXPECT_EQ(Run({"help", "--man", "lst"}).code, 2);
}

}  // namespace
}  // namespace muster::cli
