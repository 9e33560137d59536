#include "agents/machines/supervisor/user_program.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace muster::machines {
namespace {

// More than muster-run-as ever says: a few lines.
constexpr size_t kMaxReceivedBytes = 64 << 10;

// Returns the rest of the line behind the word and a blank; nothing if it begins with another word.
std::optional<std::string> Behind(std::string_view word, const std::string& line) {
  if (!line.starts_with(word) || line.size() <= word.size()) return std::nullopt;
  return line.substr(word.size() + 1);
}

}  // namespace

bool UserProgram::Wrap(ChildRequest* child) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  ours_ = hosts::Fd(ends[0]);
  // Above the descriptor that it becomes in the child, so that it is surely another one.
  theirs_ = hosts::Fd(fcntl(ends[1], F_DUPFD_CLOEXEC, kExtraFd + 1));
  close(ends[1]);
  if (!theirs_.valid() || fcntl(ours_.get(), F_SETFL, O_NONBLOCK) != 0) return false;
  program_ = child->words.front();
  directory_ = child->working_directory;
  std::string variables;
  for (const std::string& variable : child->environment) variables += variable + '\0';
  const auto size = static_cast<uint32_t>(variables.size());
  unsent_.assign(reinterpret_cast<const char*>(&size), sizeof size);
  unsent_ += variables;
  explicit_bzero(variables.data(), variables.size());
  child->words = user_.Words(std::move(child->words), child->working_directory);
  child->words.insert(child->words.begin() + 1, "--supervised");
  child->environment.clear();
  child->working_directory = "/";
  child->extra_fd = theirs_.get();
  return true;
}

void UserProgram::OrderKill() {
  if (ours_.valid()) shutdown(ours_.get(), SHUT_WR);
}

short UserProgram::events() const {
  return static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
}

// The variables may be secrets.
void UserProgram::Wipe() {
  explicit_bzero(unsent_.data(), unsent_.size());
  unsent_.clear();
  sent_ = 0;
}

void UserProgram::Send() {
  while (!unsent_.empty()) {
    const ssize_t n =
        send(ours_.get(), unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    // The reader has said before why it has ended.
    if (n < 0 && errno != EAGAIN) Wipe();
    if (n < 0) return;
    sent_ += static_cast<size_t>(n);
    if (sent_ == unsent_.size()) Wipe();
  }
}

void UserProgram::Step() {
  if (!ours_.valid()) return;
  Send();
  char buffer[4096];
  while (true) {
    const ssize_t n = recv(ours_.get(), buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0 || received_.size() > kMaxReceivedBytes) {
      ours_.Close();
      break;
    }
    received_.append(buffer, static_cast<size_t>(n));
  }
  for (size_t end = 0; (end = received_.find('\n')) != std::string::npos;) {
    Take(received_.substr(0, end));
    received_.erase(0, end + 1);
  }
}

void UserProgram::Take(const std::string& line) {
  if (const auto pid = Behind("started", line)) pid_ = atoi(pid->c_str());
  if (const auto status = Behind("ended", line)) end_ = atoi(status->c_str());
  if (const auto why = Behind("refused", line))
    trouble_ = Trouble{ExitRecord::Step::kProcess, EPERM, std::string(kRunAsWords) + *why};
  if (const auto why = Behind("failed", line)) {
    char* word = nullptr;
    const int error = static_cast<int>(strtol(why->c_str(), &word, 10));
    const std::string_view step = *word == ' ' ? word + 1 : word;
    if (step == "program") {
      trouble_ = Trouble{ExitRecord::Step::kProgram, error, program_};
    } else if (step == "directory") {
      trouble_ = Trouble{ExitRecord::Step::kWorkingDirectory, error, directory_};
    } else {
      trouble_ = Trouble{ExitRecord::Step::kProcess, error, "a process of user " + user_.name};
    }
  }
}

}  // namespace muster::machines
