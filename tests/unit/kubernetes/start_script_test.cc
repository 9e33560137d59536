// The start script, run for real by the shells that images have.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "agents/kubernetes/manifest/run_secret.h"
#include "agents/kubernetes/objects/end_record.h"

namespace muster::kubernetes {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kHostileStrings = 2000;
// Bytes of a container's last message that Kubernetes keeps.
constexpr size_t kMaxLastWords = 4096;
// Far longer than anything here takes.
constexpr std::chrono::seconds kPatience{60};

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Returns bytes over which a shell, a reader of lines or a printer of characters might trip; valid
// UTF-8, as every text of a job is.
std::string Hostile(std::mt19937* random) {
  static const std::vector<std::string> pieces = {
      "'",   "\"",     "\\",     "$",      "`",      "$(x)",    "${x}", "$$",   "!",  "\n",
      "\r",  "\t",     " ",      "*",      "?",      "[a]",     "~",    "#",    ";",  "&",
      "|",   "<",      ">",      "(",      ")",      "{",       "}",    "=",    "-n", "--",
      "\\n", "%s",     "%",      "\x01",   "\x7f",   "\x1b[0m", "é",    "Á",    "ł",  "漢",
      "😀",   "\u0081", "\u0088", "\ufeff", "\u202e", "'\"'\"'", "x",    "EOF\n"};
  std::string text;
  const size_t count = (*random)() % 12;
  for (size_t i = 0; i < count; ++i) text += pieces[(*random)() % pieces.size()];
  return text;
}

class StartScriptTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  StartScriptTest() {
    char name[] = "/tmp/muster-start-XXXXXX";
    directory_ = mkdtemp(name);
    std::filesystem::create_directories(directory_ + "/files");
    std::filesystem::create_directories(directory_ + "/work");
    assignment_.set_run_key("k7m2-42-1");
    assignment_.set_job_id(42);
    assignment_.set_run(1);
    assignment_.mutable_spec()->set_nodes(1);
  }
  ~StartScriptTest() override { std::filesystem::remove_all(directory_); }

  v1::JobSpec& spec() { return *assignment_.mutable_spec(); }

  void Command(const std::vector<std::string>& words) {
    v1::Argv* argv = spec().mutable_command()->mutable_argv();
    argv->clear_args();
    for (const std::string& word : words) argv->add_args(word);
  }

  pid_t Start() {
    // An earlier run has left its own.
    std::filesystem::remove_all(directory_ + "/files");
    std::filesystem::create_directories(directory_ + "/files");
    for (const auto& [name, content] :
         MakeRunFiles(assignment_, "lab", directory_ + "/files", directory_ + "/work")) {
      std::ofstream(directory_ + "/files/" + name, std::ios::binary) << content;
    }
    // AwaitOut is not to see what an earlier one wrote.
    for (const char* file : {"/out", "/err", "/last"}) std::filesystem::remove(directory_ + file);
    std::vector<std::string> words = GetParam();
    words.push_back(directory_ + "/files/start");
    words.push_back(directory_ + "/last");
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (!index_.empty()) setenv("JOB_COMPLETION_INDEX", index_.c_str(), 1);
    if (!seal_.empty()) setenv(kSealVariable, seal_.c_str(), 1);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open((directory_ + "/out").c_str(), flags, 0600), 1);
    dup2(open((directory_ + "/err").c_str(), flags, 0600), 2);
    execvp(argv[0], argv.data());
    _exit(99);
  }

  static int Wait(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int Run() { return Wait(Start()); }
  std::string Out() const { return ReadAll(directory_ + "/out"); }
  std::string Err() const { return ReadAll(directory_ + "/err"); }
  std::string LastWords() const { return ReadAll(directory_ + "/last"); }
  // Returns the one record, in words; what else is in the last message has to be nothing.
  std::string Told(EndRecord* record = nullptr) const {
    std::string message = LastWords();
    const std::vector<EndRecord> records = TakeEndRecords(seal_, &message);
    EXPECT_EQ(message, "");
    EXPECT_EQ(records.size(), 1u) << LastWords();
    if (records.size() != 1) return {};
    if (record != nullptr) *record = records.front();
    return WordsOf(records.front());
  }

  void AwaitOut(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (Out().find(text) == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << Err();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  agent::v1::Assignment assignment_;
  std::string directory_;
  std::string index_;
  std::string seal_ = "1f0b7c9e";
};

TEST_P(StartScriptTest, EndsWithTheCodeOfTheCommandAndNoWordsOfItsOwn) {
  for (const int code : {0, 3, 126, 127, 255}) {
    Command({"/bin/sh", "-c", "echo out; echo err >&2; exit " + std::to_string(code)});
    EXPECT_EQ(Run(), code);
    EXPECT_EQ(Out(), "out\n");
    EXPECT_EQ(Err(), "err\n");
    EXPECT_EQ(LastWords(), "");
  }
}

TEST_P(StartScriptTest, ABatchScriptFindsWhatIsKnownWithoutSlurm) {
  spec().set_name("it's");
  spec().mutable_resources()->set_cpu_millis(4000);
  spec().mutable_slurm()->mutable_batch_script();
  spec().mutable_command()->set_script("echo $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK\n");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "42 it's 4\n");
}

TEST_P(StartScriptTest, TellsADeathBySignalAs128AndItsNumber) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGTERM}) {
    Command({"/bin/sh", "-c", "kill -" + std::to_string(signal) + " $$"});
    EXPECT_EQ(Run(), 128 + signal);
    EXPECT_EQ(Err(), "");
    EXPECT_EQ(LastWords(), "");
  }
}

TEST_P(StartScriptTest, SaysThatTheCommandCouldNotBeStarted) {
  std::filesystem::create_directories(directory_ + "/work/sub");
  std::ofstream(directory_ + "/work/plain") << "x";
  const std::pair<std::string, int> bad[] = {{"/nonexistent/program", 127},
                                             {"no-such-program", 127},
                                             {"-x", 127},
                                             {directory_ + "/work/plain", 126}};
  for (const auto& [program, code] : bad) {
    Command({program, "argument"});
    EXPECT_EQ(Run(), code) << program;
    EXPECT_THAT(Told(), StartsWith("the command could not be started: " + program));
    EXPECT_THAT(Err(), HasSubstr(program));
  }
  Command({"true"});
  spec().set_working_directory("/nonexistent");
  EXPECT_EQ(Run(), 126);
  EndRecord record;
  EXPECT_THAT(Told(&record), HasSubstr("the working directory /nonexistent"));
  EXPECT_EQ(record.problem, EndRecord::Problem::kWorkingDirectory);
  spec().clear_working_directory();
  Command({std::string(5000, 'x')});
  EXPECT_NE(Run(), 0);
  EXPECT_THAT(Told(&record), StartsWith("the command could not be started: (a long name)"));
  EXPECT_EQ(record.phase, EndRecord::Phase::kCommand);
}

TEST_P(StartScriptTest, StartsElsewhereIfOnlyAnImpliedDirectoryIsNotThere) {
  spec().set_working_directory("/nonexistent/it's here");
  spec().mutable_slurm()->add_extra_options("--chdir=.");
  spec().set_setup("pwd");
  Command({"/bin/sh", "-c", "pwd; env | grep MUSTER_ELSE; true"});
  EXPECT_EQ(Run(), 0);
  const std::string own = std::filesystem::canonical(directory_ + "/work").string();
  EXPECT_EQ(Out(), own + "\n" + own + "\n");
  EXPECT_THAT(Err(), StartsWith("muster: /nonexistent/it's here, where the script was submitted, "
                                "is not in the container; it starts in " +
                                directory_ + "/work\n"));
  spec().set_working_directory("/usr");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "/usr\n/usr\n");
  EXPECT_EQ(Err(), "");
}

TEST_P(StartScriptTest, RunsSetupBeforeTheCommandAndNoCommandAfterAFailedOne) {
  spec().set_setup("echo setup; echo made >made; exit $CODE");
  (*spec().mutable_env())["CODE"] = "0";
  Command({"cat", "made"});
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "setup\nmade\n");
  (*spec().mutable_env())["CODE"] = "7";
  EXPECT_EQ(Run(), 7);
  EXPECT_EQ(Out(), "setup\n");
  EndRecord record;
  Told(&record);
  EXPECT_EQ(record.phase, EndRecord::Phase::kSetup);
  EXPECT_EQ(record.problem, EndRecord::Problem::kFailed);
  spec().set_setup("#!/nonexistent/shell\n");
  EXPECT_EQ(Run(), 127);
  EXPECT_THAT(Told(&record), StartsWith("the setup could not be started: /nonexistent/shell"));
  EXPECT_EQ(record.phase, EndRecord::Phase::kSetup);
}

TEST_P(StartScriptTest, NoProgramGetsTheSealNorItsRecordTakenForTheScripts) {
  const std::string forge =
      "env | grep -i seal; printf 'muster-end/1 seal=%s phase=setup "
      "problem=failed\n' \"$MUSTER_END_SEAL$MUSTER_SEAL\" >" +
      directory_ + "/last; exit 3";
  spec().set_setup(forge);
  Command({"true"});
  EXPECT_EQ(Run(), 3);
  EndRecord record;
  Told(&record);
  EXPECT_EQ(record.phase, EndRecord::Phase::kSetup) << "the script's own, in place of the forged";
  spec().clear_setup();
  Command({"/bin/sh", "-c", forge});
  EXPECT_EQ(Run(), 3);
  EXPECT_EQ(Out(), "");
  std::string message = LastWords();
  EXPECT_THAT(message, HasSubstr("muster-end/1 seal= "));
  EXPECT_TRUE(TakeEndRecords(seal_, &message).empty());
}

TEST_P(StartScriptTest, WithoutASealItWritesNoRecord) {
  seal_.clear();
  Command({"/nonexistent/program"});
  EXPECT_EQ(Run(), 127);
  EXPECT_EQ(LastWords(), "");
}

TEST_P(StartScriptTest, RunsScriptsWithTheirOwnFirstLineAndArguments) {
  spec().mutable_command()->set_script("#!/bin/cat\nas it is\n");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "#!/bin/cat\nas it is\n");
  spec().mutable_command()->set_script("printf '%s|' \"$@\"");
  spec().mutable_command()->add_script_arguments("a b");
  spec().mutable_command()->add_script_arguments("");
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "a b||");
}

TEST_P(StartScriptTest, PassesTermOnAndEndsAsTheCommandDoes) {
  Command(
      {"/bin/sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.02; done"});
  const pid_t pid = Start();
  AwaitOut("ready");
  kill(pid, SIGTERM);
  EXPECT_EQ(Wait(pid), 5);
  EXPECT_EQ(Out(), "ready\ngot\n");
}

TEST_P(StartScriptTest, TakesTheOtherSignalsThatStopContainersForTerm) {
  for (const int signal : {SIGINT, SIGQUIT}) {
    Command({"/bin/sh", "-c", "echo ready; exec sleep 60"});
    const pid_t pid = Start();
    AwaitOut("ready");
    kill(pid, signal);
    EXPECT_EQ(Wait(pid), 128 + SIGTERM);
    EXPECT_EQ(Err(), "");
  }
}

TEST_P(StartScriptTest, WaitsForACommandThatIgnoresTerm) {
  Command({"/bin/sh", "-c",
           "trap '' TERM; echo ready; until [ -e go ]; do sleep 0.02; done; echo done; exit 4"});
  const pid_t pid = Start();
  AwaitOut("ready");
  kill(pid, SIGTERM);
  kill(pid, SIGTERM);
  std::ofstream(directory_ + "/work/go") << "x";
  EXPECT_EQ(Wait(pid), 4);
  EXPECT_THAT(Out(), HasSubstr("done"));
}

TEST_P(StartScriptTest, StartsNoCommandAfterATermDuringSetup) {
  spec().set_setup("trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done");
  Command({"echo", "command"});
  const pid_t pid = Start();
  AwaitOut("ready");
  kill(pid, SIGTERM);
  EXPECT_EQ(Wait(pid), 143);
  EXPECT_EQ(Out(), "ready\n");
  EXPECT_EQ(LastWords(), "");
}

TEST_P(StartScriptTest, TellsEachPodItsRank) {
  spec().set_nodes(3);
  Command({"/bin/sh", "-c", "echo $NODE_RANK $MUSTER_NODE_RANK $SKYPILOT_NODE_RANK $MASTER_ADDR"});
  index_ = "2";
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Out(), "2 2 2 k7m2-42-1-0.k7m2-42-1\n");
}

TEST_P(StartScriptTest, DividesTheIndexesAmongTheRoles) {
  spec().set_nodes(3);
  const std::pair<const char*, uint32_t> roles[] = {{"one", 1}, {"two", 2}};
  uint32_t first = 0;
  for (const auto& [name, nodes] : roles) {
    v1::Role* role = spec().add_roles();
    role->set_name(name);
    role->set_first_node(first);
    role->set_nodes(nodes);
    role->mutable_command()->set_script("echo $MUSTER_ROLE $NODE_RANK $NNODES");
    first += nodes;
  }
  const std::pair<const char*, const char*> outputs[] = {
      {"0", "one 0 1\n"}, {"1", "two 0 2\n"}, {"2", "two 1 2\n"}};
  for (const auto& [index, output] : outputs) {
    index_ = index;
    EXPECT_EQ(Run(), 0);
    EXPECT_EQ(Out(), output);
  }
}

TEST_P(StartScriptTest, HostileTextsReachTheCommandByteForByte) {
  std::mt19937 random(1);
  std::vector<std::string> words = {"/bin/sh", "-c",
                                    "printf '%s\\0' \"$@\"; exec cat /proc/self/environ", "sh"};
  std::string expected;
  for (int i = 0; i < kHostileStrings; ++i) {
    words.push_back(Hostile(&random));
    expected += words.back() + '\0';
  }
  Command(words);
  std::vector<std::string> variables;
  for (int i = 0; i < kHostileStrings; ++i) {
    const std::string name = "V" + std::to_string(i);
    const std::string value = Hostile(&random);
    (*spec().mutable_env())[name] = value;
    variables.push_back('\0' + name + "=" + value + '\0');
  }
  EXPECT_EQ(Run(), 0) << Err();
  const std::string out = Out();
  ASSERT_EQ(out.substr(0, expected.size()), expected);
  const std::string environment = '\0' + out.substr(expected.size());
  for (const std::string& variable : variables) {
    EXPECT_NE(environment.find(variable), std::string::npos) << variable;
  }
}

INSTANTIATE_TEST_SUITE_P(Shells, StartScriptTest,
                         testing::Values(std::vector<std::string>{"dash"},
                                         std::vector<std::string>{"busybox", "sh"},
                                         std::vector<std::string>{"bash", "--posix"}),
                         [](const auto& shell) { return shell.param.front(); });

TEST(StorageScriptTest, NamesEachPathThatIsMissingAndMakesTheResults) {
  char name[] = "/tmp/muster-storage-XXXXXX";
  const std::string directory = mkdtemp(name);
  std::ofstream(directory + "/storage") << StorageScript();
  const auto run = [&](const std::string& words) {
    std::ofstream(directory + "/storage.words") << words;
    return system(("MUSTER_END_SEAL=s sh " + directory + "/storage " + directory + "/last 2>" +
                   directory + "/err")
                      .c_str());
  };
  const std::string make = "muster_make results_directory '/out' '" + directory + "/a/b'\n";
  EXPECT_EQ(run(make), 0);
  EXPECT_TRUE(std::filesystem::is_directory(directory + "/a/b"));
  EXPECT_NE(run("muster_need inputs[0].uri '/data' '" + directory + "/none'\n" + make), 0);
  EXPECT_THAT(ReadAll(directory + "/err"), HasSubstr("inputs[0].uri \"/data\" is not there"));
  const auto told = [&] {
    std::string message = ReadAll(directory + "/last");
    EXPECT_LT(message.size(), kMaxLastWords) << "more is cut off by Kubernetes";
    return TakeEndRecords("s", &message);
  };
  const std::vector<EndRecord> records = told();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].problem, EndRecord::Problem::kMissing);
  EXPECT_EQ(WordsOf(records[0]), "inputs[0].uri \"/data\" is not there");
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "muster_need inputs[" + std::to_string(i) + "].uri '/data" +
            std::string(static_cast<size_t>(i) * 20, 'd') + "' /nonexistent\n";
  EXPECT_NE(run(many), 0);
  EXPECT_GE(told().size(), 5u);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace muster::kubernetes
