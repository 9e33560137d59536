#include "tests/integration/kubernetes/test_cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
// The first start builds the program.
constexpr absl::Duration kBuildTimeout = absl::Minutes(15);
// The cluster ends when its standard input does; its files are removed then, also when this process
// was killed. "$0" is its directory, the rest its command.
constexpr char kRunAndRemove[] = R"("$@" > "$0/output" 2>&1 || cat "$0/output" >&2; rm -rf "$0")";

[[noreturn]] void Die(const std::string& words) {
  fmt::print(stderr, "{}\n", words);
  exit(1);
}

std::string ProgramPath(hosts::Host* host) {
  hosts::Command command;
  command.argv = {MUSTER_SOURCE_DIR "/tests/support/kubernetes-cluster", "path"};
  command.timeout = kBuildTimeout;
  const absl::StatusOr<hosts::CommandResult> result = host->Run(command);
  if (!result.ok()) Die(result.status().ToString());
  if (!result->ok()) Die(result->stderr_data);
  return result->stdout_data.substr(0, result->stdout_data.find('\n'));
}

}  // namespace

TestCluster::TestCluster(const Options& options) {
  char name[] = "/tmp/muster-kube-XXXXXX";
  if (mkdtemp(name) == nullptr) Die("cannot make a directory in /tmp");
  directory_ = name;
  Start(options);
  if (!AwaitText("output", "ready\n")) Die("the cluster did not start; its words are above");
  api_ = std::make_unique<Api>(endpoint(), &host_);
}

TestCluster::~TestCluster() {
  api_.reset();
  close(lifeline_);
  int status = 0;
  waitpid(pid_, &status, 0);
}

void TestCluster::Start(const Options& options) {
  std::vector<std::string> words = {"/bin/sh",
                                    "-c",
                                    kRunAndRemove,
                                    directory_,
                                    ProgramPath(&host_),
                                    "-dir",
                                    directory_ + "/cluster",
                                    "-nodes",
                                    std::to_string(options.nodes),
                                    "-gpus",
                                    std::to_string(options.gpus)};
  words.insert(words.end(), options.more.begin(), options.more.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Die("no pipe");
  pid_ = fork();
  if (pid_ < 0) Die("no process");
  if (pid_ == 0) {
    setsid();  // a Ctrl-C is the test's matter
    dup2(ends[0], STDIN_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[0]);
  lifeline_ = ends[1];
}

bool TestCluster::AwaitText(const std::string& file, const std::string& text) const {
  const absl::Time deadline = absl::Now() + 2 * kPatience;
  while (ReadWhole(directory_ + "/" + file).find(text) == std::string::npos) {
    // One that has ended has removed its files.
    if (absl::Now() > deadline || waitpid(pid_, nullptr, WNOHANG) != 0) return false;
    absl::SleepFor(kPollInterval);
  }
  return true;
}

Endpoint TestCluster::endpoint() const {
  absl::StatusOr<Endpoint> endpoint = ReadKubeconfig({kubeconfig()}, "");
  if (!endpoint.ok()) Die(endpoint.status().ToString());
  return *std::move(endpoint);
}

ApiAnswer TestCluster::Admin(const std::string& method, const std::string& path, const Json& body) {
  ApiCall call{.method = method, .path = path, .body = body};
  if (method == "PATCH") call.content_type = "application/merge-patch+json";
  absl::StatusOr<ApiAnswer> answer = api_->Call(call);
  EXPECT_TRUE(answer.ok()) << method << " " << path << ": " << answer.status();
  return answer.ok() ? *std::move(answer) : ApiAnswer();
}

Json TestCluster::MustDo(const std::string& method, const std::string& path, const Json& body) {
  ApiAnswer answer = Admin(method, path, body);
  EXPECT_TRUE(answer.ok()) << RefusalOf(answer, method + " " + path);
  return std::move(answer.body);
}

std::string TestCluster::MakeNamespace(const Json& labels) {
  static int last = 0;
  const std::string name = fmt::format("t-{}", ++last);
  MustDo("POST", "/api/v1/namespaces", {{"metadata", {{"name", name}, {"labels", labels}}}});
  // Pods are refused before it is there.
  WaitFor("the default service account", [&] {
    return Admin("GET", fmt::format("/api/v1/namespaces/{}/serviceaccounts/default", name)).ok();
  });
  return name;
}

pid_t TestCluster::Signal(const std::string& part, int signal) const {
  const std::string file = fmt::format("{}/cluster/{}.pid", directory_, part);
  const int pid = atoi(ReadWhole(file).c_str());
  const bool is_sent = pid > 1 && kill(pid, signal) == 0;
  EXPECT_TRUE(is_sent) << file;
  return is_sent ? pid : -1;
}

void TestCluster::Kill(const std::string& part) const {
  const pid_t pid = Signal(part, SIGKILL);
  if (pid > 0) WaitFor(part + " has ended", [&] { return kill(pid, 0) != 0; });
}
void TestCluster::Stop(const std::string& part) const { Signal(part, SIGSTOP); }
void TestCluster::Continue(const std::string& part) const { Signal(part, SIGCONT); }

void TestCluster::AwaitApi() {
  WaitFor("the API server is ready", [&] {
    const absl::StatusOr<ApiAnswer> answer = api_->Call({.path = "/readyz"});
    return answer.ok() && answer->ok();
  });
}

}  // namespace muster::kubernetes
