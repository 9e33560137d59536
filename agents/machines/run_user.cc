#include "agents/machines/run_user.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "agents/hosts/fd.h"
#include "agents/machines/clock_now.h"
#include "agents/machines/record.h"
#include "agents/machines/run_records.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

// A record is all that a command answers.
constexpr size_t kMaxAnswerBytes = 64 << 10;

// Reads to the end, and keeps the beginning. Returns whether the end came in time.
bool ReadAnswer(int fd, int limit_ms, std::string* answer) {
  const int64_t until_ms = SteadyMilliseconds() + limit_ms;
  char buffer[4096];
  while (true) {
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int64_t left_ms = std::max<int64_t>(until_ms - SteadyMilliseconds(), 0);
    const int polled = poll(&ready, 1, static_cast<int>(left_ms));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return false;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (answer->size() < kMaxAnswerBytes) answer->append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

std::vector<std::string> RunUser::Words(std::vector<std::string> program,
                                        const std::string& directory) const {
  program.insert(program.begin(), {helper, "run", name, directory});
  return program;
}

std::string RunUser::Encode() const {
  Record record;
  record.Add("name", name);
  record.Add("directory", directory);
  record.Add("helper", helper);
  record.Add("supervisor", supervisor);
  return record.Encode();
}

std::optional<RunUser> RunUser::Decode(std::string_view bytes) {
  const std::optional<Record> record = Record::Decode(bytes);
  if (!record.has_value()) return std::nullopt;
  return RunUser{.name = record->Text("name"),
                 .directory = record->Text("directory"),
                 .helper = record->Text("helper"),
                 .supervisor = record->Text("supervisor")};
}

std::optional<RunUser> ReadRunUser(const std::string& directory) {
  std::string bytes;
  if (ReadSmallFile(directory + "/" + kUserFile, kMaxRecordBytes * 4, &bytes) != 0)
    return std::nullopt;
  return RunUser::Decode(bytes);
}

int RunAsUser(const RunUser& user, const std::vector<std::string>& command, std::string* output,
              int input, int limit_ms) {
  std::vector<std::string> words = command;
  words.insert(words.begin(), user.supervisor);
  words = user.Words(std::move(words));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char* no_variables[] = {nullptr};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const hosts::Fd read_end(ends[0]);
  hosts::Fd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
  if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), no_variables);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  write_end = hosts::Fd();
  std::string answer;
  // The command's process is the user's, who may stop it. It ends with the helper.
  if (!ReadAnswer(read_end.get(), limit_ms, &answer)) kill(pid, SIGKILL);
  if (output != nullptr) *output = std::move(answer);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int WriteUserSecret(const RunUser& user, const std::string& name, std::string_view content) {
  const hosts::Fd memory(memfd_create("secret", MFD_CLOEXEC));
  if (!memory.valid()) return errno;
  for (size_t written = 0; written < content.size();) {
    const ssize_t n = write(memory.get(), content.data() + written, content.size() - written);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) written += static_cast<size_t>(n);
  }
  if (lseek(memory.get(), 0, SEEK_SET) != 0) return errno;
  const std::string path = user.directory + "/" + name;
  const int code = RunAsUser(user, {"write-secret", path}, nullptr, memory.get());
  // Muster-run-as refuses with an exit code that is no error of a file.
  return code < 0 || code == kRunAsRefused ? EPERM : code;
}

bool RemoveUserSecrets(const std::string& directory, const RunUser& user) {
  const std::string mark = directory + "/" + kUserSecretsFile;
  if (access(mark.c_str(), F_OK) != 0) return true;
  if (RunAsUser(user, {"remove-secrets", user.directory}) != 0) return false;
  unlink(mark.c_str());
  return true;
}

void ForgetUser(const std::string& directory) {
  for (const char* name : {kUserSecretsFile, kUserFile}) unlink((directory + "/" + name).c_str());
}

TreeRemoval RemoveUserDirectory(const std::string& directory, const RunUser& user, int budget_ms) {
  std::string answer;
  const int code = RunAsUser(user, {"remove-tree", user.directory, std::to_string(budget_ms)},
                             &answer, /*input=*/-1, budget_ms + kUserCommandMs);
  std::optional<TreeRemoval> removal = TreeRemoval::Decode(answer);
  if (code != 0 || !removal.has_value()) {
    removal = TreeRemoval{.trouble = "cannot remove \"" + user.directory + "\" as user " +
                                     user.name + "; see what \"" + user.helper + " check " +
                                     user.name + "\" says to the agent's user"};
  }
  if (removal->is_gone) ForgetUser(directory);
  return *std::move(removal);
}

}  // namespace muster::machines
