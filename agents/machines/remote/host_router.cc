#include "agents/machines/remote/host_router.h"

#include <utility>

#include "fmt/format.h"

namespace muster::machines {
namespace {

using hosts::FileInfo;
using hosts::FilePart;
using hosts::Host;

absl::Status ReadsOnly() {
  return absl::UnimplementedError("files of several hosts are only read together");
}

// Asks each host for its own, and puts the answers where the questions were.
template <typename Question, typename Answer, typename Find, typename Ask>
std::vector<absl::StatusOr<Answer>> Distribute(const std::vector<Question>& questions,
                                               const Find& find, const Ask& ask) {
  std::vector<absl::StatusOr<Answer>> answers(questions.size());
  std::map<Host*, std::vector<size_t>> by_host;
  for (size_t i = 0; i < questions.size(); ++i) {
    const absl::StatusOr<Host*> host = find(questions[i]);
    if (host.ok()) {
      by_host[*host].push_back(i);
    } else {
      answers[i] = host.status();
    }
  }
  for (const auto& [host, places] : by_host) {
    std::vector<Question> own;
    for (const size_t place : places) own.push_back(questions[place]);
    std::vector<absl::StatusOr<Answer>> told = ask(host, own);
    for (size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(told[i]);
  }
  return answers;
}

}  // namespace

void HostRouter::SetHost(const std::string& name, Host* host) {
  const std::lock_guard lock(mutex_);
  hosts_[name] = host;
}

void HostRouter::SetOwner(const std::string& directory, const std::string& name) {
  const std::lock_guard lock(mutex_);
  owners_[directory] = name;
}

void HostRouter::RemoveOwner(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  owners_.erase(directory);
}

absl::StatusOr<Host*> HostRouter::Find(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  for (std::string directory(path); !directory.empty(); directory.resize(directory.rfind('/'))) {
    const auto owner = owners_.find(directory);
    if (owner != owners_.end()) {
      const auto host = hosts_.find(owner->second);
      if (host == hosts_.end())
        return absl::NotFoundError(fmt::format("there is no host {} any more", owner->second));
      if (host->second != nullptr) return host->second;
      return absl::UnavailableError(fmt::format("host {} does not answer", owner->second));
    }
    if (directory[0] != '/') break;
  }
  return absl::UnavailableError(fmt::format("no host is known to have \"{}\"", path));
}

absl::StatusOr<hosts::CommandResult> HostRouter::Run(const hosts::Command& command) {
  absl::Status status = absl::UnavailableError("the command names no path of any host");
  for (const std::string& word : command.argv) {
    if (!word.starts_with('/')) continue;
    const absl::StatusOr<Host*> host = Find(word);
    if (host.ok()) return (*host)->Run(command);
    status = host.status();
  }
  return status;
}

absl::StatusOr<std::string> HostRouter::ReadFileRange(std::string_view path, uint64_t offset,
                                                      size_t max_bytes) {
  const absl::StatusOr<Host*> host = Find(path);
  if (!host.ok()) return host.status();
  return (*host)->ReadFileRange(path, offset, max_bytes);
}

absl::StatusOr<std::string> HostRouter::ReadFile(std::string_view path, size_t max_bytes) {
  const absl::StatusOr<Host*> host = Find(path);
  if (!host.ok()) return host.status();
  return (*host)->ReadFile(path, max_bytes);
}

absl::StatusOr<FileInfo> HostRouter::Stat(std::string_view path) {
  const absl::StatusOr<Host*> host = Find(path);
  if (!host.ok()) return host.status();
  return (*host)->Stat(path);
}

absl::StatusOr<std::vector<std::string>> HostRouter::ListDirectory(std::string_view path) {
  const absl::StatusOr<Host*> host = Find(path);
  if (!host.ok()) return host.status();
  return (*host)->ListDirectory(path);
}

std::vector<absl::StatusOr<FileInfo>> HostRouter::StatMany(const std::vector<std::string>& paths) {
  return Distribute<std::string, FileInfo>(
      paths, [this](const std::string& path) { return Find(path); },
      [](Host* host, const std::vector<std::string>& own) { return host->StatMany(own); });
}

std::vector<absl::StatusOr<std::string>> HostRouter::ReadMany(const std::vector<FilePart>& parts) {
  return Distribute<FilePart, std::string>(
      parts, [this](const FilePart& part) { return Find(part.path); },
      [](Host* host, const std::vector<FilePart>& own) { return host->ReadMany(own); });
}

absl::Status HostRouter::WriteFile(std::string_view, std::string_view, const hosts::WriteOptions&) {
  return ReadsOnly();
}
absl::Status HostRouter::MakeManyDirectories(const std::vector<std::string>&, uint32_t) {
  return ReadsOnly();
}
absl::Status HostRouter::RemoveTree(std::string_view) { return ReadsOnly(); }
absl::Status HostRouter::RemoveManyTrees(const std::vector<std::string>&) { return ReadsOnly(); }
absl::Status HostRouter::RemoveEmptyDirectories(const std::vector<std::string>&) {
  return ReadsOnly();
}
absl::Status HostRouter::WriteMany(const std::vector<hosts::NewFile>&) { return ReadsOnly(); }

}  // namespace muster::machines
