#include "tests/integration/slurm/root_helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace muster::slurm {
namespace {

void Check(bool ok, const char* what) {
  if (ok) return;
  perror(what);
  abort();
}

bool ReadAll(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = read(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void WriteText(int fd, const std::string& text) {
  const uint32_t size = static_cast<uint32_t>(text.size());
  Check(write(fd, &size, sizeof(size)) == static_cast<ssize_t>(sizeof(size)), "write");
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    Check(n > 0, "write");
    done += static_cast<size_t>(n);
  }
}

bool ReadText(int fd, std::string* text) {
  uint32_t size = 0;
  if (!ReadAll(fd, &size, sizeof(size))) return false;
  text->resize(size);
  return ReadAll(fd, text->data(), size);
}

// Lives the helper's life, until the other side is gone.
[[noreturn]] void Serve(int request, int reply) {
  std::string command;
  while (ReadText(request, &command)) {
    std::string output;
    FILE* pipe = popen(("{ " + command + "\n} 2>&1 </dev/null").c_str(), "r");
    Check(pipe != nullptr, "popen");
    std::array<char, 4096> buffer;
    size_t n = 0;
    while ((n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) output.append(buffer.data(), n);
    const int status = pclose(pipe);
    WriteText(reply, std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128));
    WriteText(reply, output);
  }
  _exit(0);
}

}  // namespace

RootHelper::RootHelper() {
  int request[2];
  int reply[2];
  Check(pipe(request) == 0 && pipe(reply) == 0, "pipe");
  pid_ = fork();
  Check(pid_ >= 0, "fork");
  if (pid_ == 0) {
    close(request[1]);
    close(reply[0]);
    Serve(request[0], reply[1]);
  }
  close(request[0]);
  close(reply[1]);
  request_ = request[1];
  reply_ = reply[0];
}

RootHelper::~RootHelper() {
  close(request_);
  close(reply_);
  waitpid(pid_, nullptr, 0);
}

RootHelper::Result RootHelper::Run(const std::string& command) {
  Result result;
  std::string status;
  WriteText(request_, command);
  Check(ReadText(reply_, &status) && ReadText(reply_, &result.output), "the root helper is gone");
  result.status = std::stoi(status);
  return result;
}

}  // namespace muster::slurm
