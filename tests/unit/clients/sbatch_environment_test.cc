#include "clients/cpp/slurm/sbatch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clients/cpp/slurm/sbatch_script.h"

namespace muster::client::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

// A login node has these: what a user has set, what a module system has, and what should stay.
const std::map<std::string, std::string> kLoginShell = {
    {"BASH_FUNC_module%%", "() {  echo 1\n}"},
    {"HF_TOKEN", "hf_1"},
    {"HOME", "/home/ann"},
    {"LR", "0.1"},
    {"PATH", "/opt/bin:/bin"},
    {"SLURM_CPU_BIND", "none"},
    {"SSH_AUTH_SOCK", "/tmp/agent"},
};

struct ReadShell {
  TakenEnvironment taken;
  std::string remark;
  std::string problem;
};

ReadShell TakeWith(const std::vector<std::string>& words, SubmitEnvironment from = {kLoginShell}) {
  std::vector<std::string> line = words;
  line.emplace_back("run.sh");
  const auto submission = ReadSbatch(line, from.variables, "#!/bin/sh\ntrue\n");
  EXPECT_TRUE(submission.ok()) << submission.status();
  if (!submission.ok()) return {};
  contract::FieldErrors errors;
  ReadShell read;
  read.taken = TakeEnvironment(submission->options, from, &errors);
  read.remark = StaysBehind(read.taken, submission->options);
  if (!errors.empty()) read.problem = std::string(errors.ToStatus().message());
  return read;
}

TEST(SbatchEnvironmentTest, WithoutAnOptionAllGoesThatIsNoCredential) {
  const ReadShell read = TakeWith({});
  EXPECT_THAT(read.taken.variables, UnorderedElementsAre(Key("BASH_FUNC_module%%"), Key("LR"),
                                                         Key("PATH"), Key("SLURM_CPU_BIND")));
  EXPECT_THAT(read.taken.named, IsEmpty());
  EXPECT_EQ(read.taken.login_seconds, 0);
  EXPECT_EQ(read.remark,
            "these variables stay here, because they look like credentials or "
            "sbatch.leave_behind lists them: HF_TOKEN, SSH_AUTH_SOCK; to take them along, name "
            "them: --export=ALL,HF_TOKEN,SSH_AUTH_SOCK");
}

TEST(SbatchEnvironmentTest, TheHintToTakeThemAlongHasNoValueOfAnother) {
  EXPECT_THAT(TakeWith({"--export=ALL,API_TOKEN=s3cr3t"}).remark,
              EndsWith("name them: --export=ALL,API_TOKEN,HF_TOKEN,SSH_AUTH_SOCK"));
}

TEST(SbatchEnvironmentTest, AllIsTheSame) {
  for (const char* all : {"ALL", "all"}) {
    const ReadShell read = TakeWith({"--export="s + all});
    EXPECT_EQ(read.taken.variables, TakeWith({}).taken.variables);
    EXPECT_EQ(read.taken.login_seconds, 0);
  }
}

TEST(SbatchEnvironmentTest, NoneMakesALoginEnvironmentAndNilDoesNot) {
  const ReadShell none = TakeWith({"--export=NONE"});
  EXPECT_THAT(none.taken.variables,
              UnorderedElementsAre(Pair("SLURM_CPU_BIND", "none"), Pair("SLURM_EXPORT_ENV", "NONE"),
                                   Pair("SLURM_GET_USER_ENV", "1")));
  EXPECT_EQ(none.taken.login_seconds, kLoginSeconds);
  EXPECT_EQ(none.remark, "");
  const ReadShell nil = TakeWith({"--export=NIL", "--get-user-env"});
  EXPECT_THAT(nil.taken.variables,
              UnorderedElementsAre(Key("SLURM_CPU_BIND"), Pair("SLURM_EXPORT_ENV", "NIL")));
  EXPECT_EQ(nil.taken.login_seconds, 0);
}

TEST(SbatchEnvironmentTest, AListTakesWhatItNamesAlsoCredentials) {
  const ReadShell read = TakeWith({"--export=LR,HF_TOKEN,A=x=y,B='1,2','C=3,4',NOSUCH"});
  EXPECT_EQ(read.problem, "");
  EXPECT_THAT(read.taken.variables,
              UnorderedElementsAre(Pair("LR", "0.1"), Pair("HF_TOKEN", "hf_1"), Pair("A", "x=y"),
                                   Pair("B", "'1,2'"), Pair("C", "3,4"), Key("SLURM_CPU_BIND"),
                                   Key("SLURM_EXPORT_ENV"), Key("SLURM_GET_USER_ENV")));
  EXPECT_THAT(read.taken.named, ElementsAre("A", "B", "C", "HF_TOKEN", "LR"));
  EXPECT_EQ(read.taken.login_seconds, kLoginSeconds);
  EXPECT_EQ(read.remark, "");
}

TEST(SbatchEnvironmentTest, AListWithAllTakesBothAndTheLaterOneWins) {
  const ReadShell read = TakeWith({"--export=ALL,LR=2,HF_TOKEN"});
  EXPECT_EQ(read.taken.variables.at("LR"), "2");
  EXPECT_EQ(read.taken.variables.at("HF_TOKEN"), "hf_1");
  EXPECT_EQ(read.taken.variables.at("PATH"), "/opt/bin:/bin");
  EXPECT_THAT(read.remark, HasSubstr(": SSH_AUTH_SOCK; "));
  EXPECT_THAT(read.remark, HasSubstr("--export=ALL,LR=2,HF_TOKEN,SSH_AUTH_SOCK"));
  EXPECT_EQ(TakeWith({"--export=LR=2,ALL"}).taken.variables.at("LR"), "0.1");
}

TEST(SbatchEnvironmentTest, TheCommandLineWinsOverTheVariableAndThatOverTheScript) {
  const auto export_of = [](const std::vector<std::string>& words,
                            const std::map<std::string, std::string>& shell) {
    const auto submission = ReadSbatch(words, shell, "#!/bin/sh\n#SBATCH --export=C\ntrue\n");
    EXPECT_TRUE(submission.ok()) << submission.status();
    return submission->options.Find("export")->value;
  };
  EXPECT_EQ(export_of({"run.sh"}, {}), "C");
  EXPECT_EQ(export_of({"run.sh"}, {{"SBATCH_EXPORT", "B"}}), "B");
  EXPECT_EQ(export_of({"--export=A", "run.sh"}, {{"SBATCH_EXPORT", "B"}}), "A");
}

TEST(SbatchEnvironmentTest, AFileTakesThePlaceOfTheShell) {
  SubmitEnvironment from = {kLoginShell};
  from.file = ReadExportFile("A=1\0API_KEY=2"s).value();
  const ReadShell read = TakeWith({"--export-file=x"}, from);
  EXPECT_THAT(read.taken.variables, UnorderedElementsAre(Pair("A", "1"), Pair("API_KEY", "2")));
  EXPECT_THAT(read.taken.named, ElementsAre("A", "API_KEY"));
  EXPECT_EQ(read.remark, "");
  EXPECT_THAT(TakeWith({"--export-file=x", "--export=LR,B=2"}, from).taken.variables,
              UnorderedElementsAre(Key("A"), Key("API_KEY"), Key("B"), Key("SLURM_GET_USER_ENV")));
  EXPECT_THAT(TakeWith({"--export-file=x", "--export=NONE"}, from).taken.variables,
              UnorderedElementsAre(Key("SLURM_GET_USER_ENV")));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadExportFile("A=1\nB\0C"s).status()));
}

TEST(SbatchEnvironmentTest, ALoginEnvironmentIsMadeOnRequest) {
  EXPECT_EQ(TakeWith({"--get-user-env"}).taken.login_seconds, kLoginSeconds);
  EXPECT_EQ(TakeWith({"--get-user-env=10"}).taken.login_seconds, 10);
  EXPECT_EQ(TakeWith({"--get-user-env=10L"}).taken.login_seconds, 10);
  EXPECT_EQ(TakeWith({"--get-user-env=L"}).taken.login_seconds, kLoginSeconds);
  EXPECT_EQ(TakeWith({"--get-user-env=L"}).taken.variables.size(), 5u) << "and all of the shell";
  for (const char* bad : {"S", "10S", "0", "x", "3601"})
    EXPECT_THAT(TakeWith({"--get-user-env="s + bad}).problem, HasSubstr("--get-user-env")) << bad;
}

TEST(SbatchEnvironmentTest, TheListOfWhatStaysIsTheUsersOwn) {
  const ReadShell read = TakeWith({}, {kLoginShell, {}, {"LR", "PA*"}});
  EXPECT_THAT(read.taken.stay, ElementsAre("HF_TOKEN", "LR", "PATH", "SSH_AUTH_SOCK"))
      << "a credential stays, whatever the list is";
}

TEST(SbatchEnvironmentTest, AVariableThatNoShellCanSetIsNamed) {
  const ReadShell read = TakeWith({}, {{{"a.b", "1"}, {"A", "1"}, {"BASH_FUNC_f()", "() { :\n}"}}});
  EXPECT_THAT(read.taken.variables, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(read.remark,
            "these variables stay here, because no shell can set them: BASH_FUNC_f(), a.b");
  EXPECT_THAT(TakeWith({"--export=a.b=1"}).problem, HasSubstr("\"a.b\" is not a variable's name"));
}

TEST(SbatchEnvironmentTest, TooMuchIsRefusedAndTheLargestAreNamed) {
  std::map<std::string, std::string> shell = {{"SMALL", "1"}};
  shell["LARGE"] = std::string(100'000, 'x');
  shell["LARGER"] = std::string(131'000, 'x');
  EXPECT_EQ(TakeWith({}, {shell}).problem, "");
  shell["LARGEST"] = std::string(131'001, 'x');
  const ReadShell read = TakeWith({}, {shell});
  EXPECT_THAT(read.problem, HasSubstr("and 262144 are the most that travel with a job"));
  EXPECT_THAT(read.problem, HasSubstr("LARGEST (131001 bytes), LARGER (131000 bytes), LARGE"));
  EXPECT_EQ(TakeWith({"--export=SMALL"}, {shell}).problem, "");
}

TEST(SbatchEnvironmentTest, AQuoteThatDoesNotCloseIsNamed) {
  EXPECT_THAT(TakeWith({"--export=A='1,B=2"}).problem, HasSubstr("close the quote"));
}

TEST(CredentialsTest, AreKnownByTheirNames) {
  for (const char* name :
       {"HF_TOKEN", "GITHUBTOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY",
        "OPENAI_APIKEY", "PGPASSWORD", "dbPassword", "SSHPASS", "SLURM_JWT", "NGC_CLI_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS", "MYSQL_PWD", "NETRC_AUTH", "my_secret", "SESSION_COOKIE"})
    EXPECT_TRUE(LooksLikeCredential(name, "x")) << name;
  for (const char* name :
       {"PATH", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MONKEY", "GIT_AUTHOR_NAME", "COMPASS",
        "BYPASS_CACHE", "AUTHORITY", "PATTERN", "OMP_NUM_THREADS"})
    EXPECT_FALSE(LooksLikeCredential(name, "x")) << name;
  EXPECT_FALSE(LooksLikeCredential("INIT_PWD", "/home/ann"));
}

TEST(CredentialsTest, AreKnownByTheirValues) {
  EXPECT_TRUE(LooksLikeCredential("http_proxy", "http://ann:pw@proxy:80"));
  EXPECT_TRUE(LooksLikeCredential("A", "x postgres://a:b@h/db"));
  EXPECT_TRUE(LooksLikeCredential("A", "-----BEGIN RSA PRIVATE KEY-----\nMII"));
  EXPECT_FALSE(LooksLikeCredential("http_proxy", "http://proxy:80/a@b"));
  EXPECT_FALSE(LooksLikeCredential("A", "ssh://git@host:22/x"));
  EXPECT_FALSE(LooksLikeCredential("A", "://"));
}

// Makes a shell with a limit of its own, and one without.
SubmitEnvironment LimitedShell() {
  SubmitEnvironment from;
  from.limits.umask = 027;
  from.limits.soft = {{"NOFILE", 500}, {"CORE", kNoLimit}};
  return from;
}

TEST(SbatchEnvironmentTest, TheUmaskAndTheLimitsGoAsSbatchHandsThemOn) {
  const auto umask = Pair("SLURM_UMASK", "0027");
  const auto exported = Key("SLURM_EXPORT_ENV");
  EXPECT_THAT(TakeWith({}, LimitedShell()).taken.variables,
              UnorderedElementsAre(umask, Pair("SLURM_RLIMIT_NOFILE", "500"),
                                   Pair("SLURM_RLIMIT_CORE", "18446744073709551615")));
  EXPECT_THAT(TakeWith({"--propagate=NONE"}, LimitedShell()).taken.variables,
              UnorderedElementsAre(umask));
  // The limits go along without the variables, too.
  for (const char* all : {"--propagate", "--propagate=ALL"}) {
    EXPECT_THAT(TakeWith({all, "--export=NONE"}, LimitedShell()).taken.variables,
                UnorderedElementsAre(umask, Pair("SLURM_RLIMIT_NOFILE", "U500"),
                                     Pair("SLURM_RLIMIT_CORE", "U18446744073709551615"), exported,
                                     Key("SLURM_GET_USER_ENV")));
  }
  EXPECT_THAT(TakeWith({"--propagate=RLIMIT_NOFILE,AS"}, LimitedShell()).taken.variables,
              UnorderedElementsAre(umask, Pair("SLURM_RLIMIT_NOFILE", "U500")));
  // Each was seen with Slurm 22.05.
  for (const char* bad : {"FOO", "nofile", "CORE,ALL", "NONE,CORE"}) {
    EXPECT_THAT(TakeWith({std::string("--propagate=") + bad}, LimitedShell()).problem,
                HasSubstr("use ALL, NONE or names of AS, CORE"))
        << bad;
  }
}

}  // namespace
}  // namespace muster::client::slurm
