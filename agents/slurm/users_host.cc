#include "agents/slurm/users_host.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_replace.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// No path begins like this by itself.
constexpr std::string_view kMark = "/@";

}  // namespace

std::string UserPath(std::string_view user, std::string_view path) {
  return fmt::format("{}{}{}", kMark, user, path);
}

UsersHost::Place UsersHost::PlaceOf(std::string_view path) const {
  if (path.starts_with(kMark)) {
    const size_t slash = path.find('/', kMark.size());
    if (slash == path.npos) return {"", std::string(path), ""};
    return {std::string(path.substr(kMark.size(), slash - kMark.size())),
            std::string(path.substr(slash)), std::string(path.substr(0, slash))};
  }
  if (!path.starts_with(areas_)) return {"", std::string(path), ""};
  const std::string_view below = path.substr(areas_.size());
  return {std::string(below.substr(0, below.find('/'))), std::string(path), ""};
}

template <typename Item, typename PathOf, typename Act>
absl::Status UsersHost::ForEachUser(const std::vector<Item>& items, PathOf path_of, Act act) const {
  struct Share {
    hosts::Host* host;
    std::vector<Item> items;
    std::vector<size_t> numbers;
  };
  std::map<std::string, Share> shares;
  for (size_t i = 0; i < items.size(); ++i) {
    Item item = items[i];
    Place place = PlaceOf(*path_of(&item));
    Share& share = shares[place.user];
    share.host = &HostOf(place);
    *path_of(&item) = std::move(place.path);
    share.items.push_back(std::move(item));
    share.numbers.push_back(i);
  }
  absl::Status status;
  for (auto& [user, share] : shares) {
    status = act(*share.host, share.items, share.numbers);
    if (!status.ok()) break;
  }
  return status;
}

namespace {

std::string* PathItself(std::string* path) { return path; }

// Puts the answers to a user's share of the items into their places.
template <typename Answer>
absl::Status Put(std::vector<Answer> answers, const std::vector<size_t>& numbers,
                 std::vector<Answer>* all) {
  for (size_t i = 0; i < numbers.size(); ++i) (*all)[numbers[i]] = std::move(answers[i]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<hosts::CommandResult> UsersHost::Run(const hosts::Command& command) {
  const auto word =
      std::find_if(command.argv.begin(), command.argv.end(),
                   [this](const std::string& each) { return !PlaceOf(each).user.empty(); });
  if (word == command.argv.end()) return own_->Run(command);
  const Place first = PlaceOf(*word);
  hosts::Command real = command;
  for (std::string& each : real.argv) {
    // Another user's area stays as it is written, and is not there for this user.
    if (Place place = PlaceOf(each); place.user == first.user) each = std::move(place.path);
  }
  absl::StatusOr<hosts::CommandResult> result = HostOf(first).Run(real);
  if (result.ok() && !first.prefix.empty()) {
    result->stdout_data =
        absl::StrReplaceAll(result->stdout_data, {{first.path, first.prefix + first.path}});
  }
  return result;
}

absl::Status UsersHost::WriteFile(std::string_view path, std::string_view content,
                                  const hosts::WriteOptions& options) {
  const Place place = PlaceOf(path);
  return HostOf(place).WriteFile(place.path, content, options);
}

absl::StatusOr<std::string> UsersHost::ReadFileRange(std::string_view path, uint64_t offset,
                                                     size_t max_bytes) {
  const Place place = PlaceOf(path);
  return HostOf(place).ReadFileRange(place.path, offset, max_bytes);
}

absl::StatusOr<std::string> UsersHost::ReadFile(std::string_view path, size_t max_bytes) {
  const Place place = PlaceOf(path);
  return HostOf(place).ReadFile(place.path, max_bytes);
}

absl::StatusOr<hosts::FileInfo> UsersHost::Stat(std::string_view path) {
  const Place place = PlaceOf(path);
  return HostOf(place).Stat(place.path);
}

absl::StatusOr<std::vector<std::string>> UsersHost::ListDirectory(std::string_view path) {
  const Place place = PlaceOf(path);
  return HostOf(place).ListDirectory(place.path);
}

absl::Status UsersHost::RemoveTree(std::string_view path) {
  const Place place = PlaceOf(path);
  return HostOf(place).RemoveTree(place.path);
}

std::vector<absl::StatusOr<hosts::FileInfo>> UsersHost::StatMany(
    const std::vector<std::string>& paths) {
  std::vector<absl::StatusOr<hosts::FileInfo>> infos(paths.size(),
                                                     absl::UnavailableError("not asked"));
  ForEachUser(paths, PathItself, [&](hosts::Host& host, const auto& share, const auto& numbers) {
    return Put(host.StatMany(share), numbers, &infos);
  }).IgnoreError();
  return infos;
}

std::vector<absl::StatusOr<std::string>> UsersHost::ReadMany(
    const std::vector<hosts::FilePart>& parts) {
  std::vector<absl::StatusOr<std::string>> texts(parts.size(), absl::UnavailableError("not asked"));
  ForEachUser(
      parts, [](hosts::FilePart* part) { return &part->path; },
      [&](hosts::Host& host, const auto& share, const auto& numbers) {
        return Put(host.ReadMany(share), numbers, &texts);
      })
      .IgnoreError();
  return texts;
}

absl::Status UsersHost::MakeManyDirectories(const std::vector<std::string>& paths, uint32_t mode) {
  return ForEachUser(paths, PathItself, [&](hosts::Host& host, const auto& share, const auto&) {
    return host.MakeManyDirectories(share, mode);
  });
}

// A user who cannot be acted for keeps nobody else's files from going.
absl::Status UsersHost::RemoveManyTrees(const std::vector<std::string>& paths) {
  absl::Status status;
  ForEachUser(paths, PathItself, [&](hosts::Host& host, const auto& share, const auto&) {
    status.Update(host.RemoveManyTrees(share));
    return absl::OkStatus();
  }).IgnoreError();
  return status;
}

absl::Status UsersHost::RemoveEmptyDirectories(const std::vector<std::string>& paths) {
  absl::Status status;
  ForEachUser(paths, PathItself, [&](hosts::Host& host, const auto& share, const auto&) {
    status.Update(host.RemoveEmptyDirectories(share));
    return absl::OkStatus();
  }).IgnoreError();
  return status;
}

absl::Status UsersHost::WriteMany(const std::vector<hosts::NewFile>& files) {
  return ForEachUser(
      files, [](hosts::NewFile* file) { return &file->path; },
      [&](hosts::Host& host, const auto& share, const auto&) { return host.WriteMany(share); });
}

}  // namespace muster::slurm
