#include "agents/machines/remote/host_router.h"

#include <any>
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

absl::Status NoAnswer(const std::string& name) {
  return absl::UnavailableError(fmt::format("host {} does not answer in time", name));
}

}  // namespace

void HostRouter::SetHost(const std::string& name, std::shared_ptr<HostLane> host) {
  const MutexLock lock(mutex_);
  hosts_[name] = std::move(host);
}

void HostRouter::SetOwner(const std::string& directory, const std::string& name) {
  const MutexLock lock(mutex_);
  owners_[directory] = name;
}

void HostRouter::RemoveOwner(const std::string& directory) {
  const MutexLock lock(mutex_);
  owners_.erase(directory);
}

absl::StatusOr<HostRouter::Way> HostRouter::Find(std::string_view path) const {
  const MutexLock lock(mutex_);
  for (std::string directory(path); !directory.empty(); directory.resize(directory.rfind('/'))) {
    const auto owner = owners_.find(directory);
    if (owner != owners_.end()) {
      const auto host = hosts_.find(owner->second);
      if (host == hosts_.end())
        return absl::NotFoundError(fmt::format("there is no host {} any more", owner->second));
      if (host->second != nullptr) return Way{.name = owner->second, .lane = host->second};
      return absl::UnavailableError(fmt::format("host {} does not answer", owner->second));
    }
    if (directory[0] != '/') break;
  }
  return absl::UnavailableError(fmt::format("no host is known to have \"{}\"", path));
}

std::chrono::steady_clock::time_point HostRouter::Deadline() const {
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience_);
}

template <typename Answer, typename Ask>
absl::StatusOr<Answer> HostRouter::AskOne(std::string_view path, std::string question, Ask ask) {
  const auto deadline = Deadline();
  const absl::StatusOr<Way> way = Find(path);
  if (!way.ok()) return way.status();
  const auto call = way->lane->Begin(std::move(question), std::move(ask));
  if (call == nullptr || !way->lane->Await(call, deadline)) return NoAnswer(way->name);
  return std::any_cast<absl::StatusOr<Answer>>(std::move(call->answer));
}

template <typename Answer, typename Question, typename Naming, typename Ask>
std::vector<absl::StatusOr<Answer>> HostRouter::AskMany(const std::vector<Question>& questions,
                                                        const Naming& name, const Ask& ask) {
  struct Share {
    Way way;
    std::vector<size_t> places;
    std::vector<Question> questions;
    std::string words;
    std::shared_ptr<HostLane::Call> call;
  };
  const auto deadline = Deadline();
  std::vector<absl::StatusOr<Answer>> answers(questions.size());
  std::map<std::string, Share> shares;  // by host
  for (size_t i = 0; i < questions.size(); ++i) {
    const auto [path, words] = name(questions[i]);
    absl::StatusOr<Way> way = Find(path);
    if (!way.ok()) {
      answers[i] = way.status();
      continue;
    }
    Share& share = shares[way->name];
    share.way = *std::move(way);
    share.places.push_back(i);
    share.questions.push_back(questions[i]);
    share.words += words + '\n';
  }
  for (auto& [host, share] : shares) {
    share.call = share.way.lane->Begin(
        std::move(share.words),
        [ask, own = std::move(share.questions)](Host& at) { return std::any(ask(at, own)); });
  }
  for (auto& [host, share] : shares) {
    const bool is_answered = share.call != nullptr && share.way.lane->Await(share.call, deadline);
    std::vector<absl::StatusOr<Answer>> told(share.places.size(), NoAnswer(host));
    if (is_answered) told = std::any_cast<decltype(told)>(std::move(share.call->answer));
    for (size_t i = 0; i < share.places.size(); ++i) answers[share.places[i]] = std::move(told[i]);
  }
  return answers;
}

absl::StatusOr<hosts::CommandResult> HostRouter::Run(const hosts::Command& command) {
  std::string question = "run";
  for (const std::string& word : command.argv) question += '\n' + word;
  absl::Status status = absl::UnavailableError("the command names no path of any host");
  for (const std::string& word : command.argv) {
    if (!word.starts_with('/')) continue;
    status = Find(word).status();
    if (!status.ok()) continue;
    return AskOne<hosts::CommandResult>(
        word, std::move(question), [command](Host& host) { return std::any(host.Run(command)); });
  }
  return status;
}

absl::StatusOr<std::string> HostRouter::ReadFileRange(std::string_view path, uint64_t offset,
                                                      size_t max_bytes) {
  return AskOne<std::string>(path, fmt::format("range {} {} {}", path, offset, max_bytes),
                             [own = std::string(path), offset, max_bytes](Host& host) {
                               return std::any(host.ReadFileRange(own, offset, max_bytes));
                             });
}

absl::StatusOr<std::string> HostRouter::ReadFile(std::string_view path, size_t max_bytes) {
  return AskOne<std::string>(path, fmt::format("file {} {}", path, max_bytes),
                             [own = std::string(path), max_bytes](Host& host) {
                               return std::any(host.ReadFile(own, max_bytes));
                             });
}

absl::StatusOr<FileInfo> HostRouter::Stat(std::string_view path) {
  return AskOne<FileInfo>(
      path, fmt::format("stat {}", path),
      [own = std::string(path)](Host& host) { return std::any(host.Stat(own)); });
}

absl::StatusOr<std::vector<std::string>> HostRouter::ListDirectory(std::string_view path) {
  return AskOne<std::vector<std::string>>(
      path, fmt::format("list {}", path),
      [own = std::string(path)](Host& host) { return std::any(host.ListDirectory(own)); });
}

std::vector<absl::StatusOr<FileInfo>> HostRouter::StatMany(const std::vector<std::string>& paths) {
  return AskMany<FileInfo>(
      paths, [](const std::string& path) { return std::pair(path, "stats " + path); },
      [](Host& host, const std::vector<std::string>& own) { return host.StatMany(own); });
}

std::vector<absl::StatusOr<std::string>> HostRouter::ReadMany(const std::vector<FilePart>& parts) {
  return AskMany<std::string>(
      parts,
      [](const FilePart& part) {
        return std::pair(part.path,
                         fmt::format("part {} {} {}", part.path, part.offset, part.max_bytes));
      },
      [](Host& host, const std::vector<FilePart>& own) { return host.ReadMany(own); });
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
