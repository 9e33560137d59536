#include "clients/cpp/uploads/local_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "clients/cpp/uploads/ignore_rules.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/link_fault.h"
#include "contract/text.h"
#include "contract/units.h"
#include "digest/sha256.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;
using contract::FormatBytes;
using contract::Quoted;

constexpr const char* kSkyIgnore = ".skyignore";
// Limit of one .gitignore file; people write them, or take one of some kB from a collection.
constexpr size_t kMaxIgnoreFileBytes = 1 << 20;
// Files that an error about too many bytes names.
constexpr size_t kMaxNamed = 3;
constexpr size_t kReadBytes = 256 << 10;
constexpr std::string_view kLeaveOut =
    "leave it out by a .musterignore file (in the form of .gitignore)";
constexpr std::string_view kRemedy =
    "leave what the job does not need out by a .musterignore file (in the form of .gitignore), or "
    "keep data on the cluster's storage and name its path there";

absl::Status SystemError(int error, const fs::path& path) {
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("cannot read {}", path.native())));
}

absl::Status Refused(const fs::path& root, std::string_view why) {
  return absl::InvalidArgumentError(ToAbsl(fmt::format("{}: {}", root.native(), why)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Calls `take` with the file's bytes, piece by piece.
template <typename Take>
absl::Status ReadPieces(const fs::path& path, Take take) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemError(errno, path);
  const auto buffer = std::make_unique<char[]>(kReadBytes);
  for (;;) {
    const ssize_t count = read(file.get(), buffer.get(), kReadBytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, path);
    if (count == 0) return absl::OkStatus();
    absl::Status status = take(std::string_view(buffer.get(), static_cast<size_t>(count)));
    if (!status.ok()) return status;
  }
}

void SetFile(const struct stat& info, v1::FileTreeEntry* entry) {
  entry->set_executable((info.st_mode & S_IXUSR) != 0);
  entry->set_owner_only((info.st_mode & (S_IRWXG | S_IRWXO)) == 0);
  entry->set_size_bytes(static_cast<uint64_t>(info.st_size));
}

// Walks one directory.
class Walk {
 public:
  Walk(fs::path root, RulesAbove above) : root_(std::move(root)), above_(above) {}

  absl::Status Go() {
    std::error_code error;
    if (fs::is_regular_file(root_ / kSkyIgnore, error)) {
      ignore_file_ = kSkyIgnore;
    } else if (absl::Status status = ReadRulesOfRepository(); !status.ok()) {
      return status;
    }
    return Enter("");
  }

  v1::FileTree* tree() { return &tree_; }

 private:
  absl::Status AddRules(const fs::path& file, const std::string& base) {
    std::string text;
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return absl::OkStatus();
    absl::Status status = ReadPieces(file, [&](std::string_view piece) {
      text += piece;
      return text.size() <= kMaxIgnoreFileBytes
                 ? absl::OkStatus()
                 : Refused(file, fmt::format("has more than {}, which is no list of patterns",
                                             FormatBytes(kMaxIgnoreFileBytes)));
    });
    if (status.ok()) rules_.Add(text, base);
    return status;
  }

  // Reads the rules of the repository that the root is in, if it is in one.
  absl::Status ReadRulesOfRepository() {
    std::error_code error;
    const fs::path absolute = fs::canonical(root_, error);
    if (error) return SystemError(error.value(), root_);
    fs::path repository = absolute;
    while (!fs::exists(repository / ".git", error)) {
      if (above_ == RulesAbove::kDoNotCount || !repository.has_relative_path())
        return absl::OkStatus();
      repository = repository.parent_path();
    }
    if (absl::Status status = AddRules(repository / ".git/info/exclude", ""); !status.ok())
      return status;
    fs::path above = repository;
    for (const fs::path& part : absolute.lexically_relative(repository)) {
      if (part == ".") break;
      if (absl::Status status = AddRules(above / ".gitignore", prefix_); !status.ok())
        return status;
      above /= part;
      prefix_ += part.native() + "/";
    }
    return absl::OkStatus();
  }

  // `path` is that of the directory below the root, empty or with a '/' at its end.
  absl::Status Enter(const std::string& path) {
    const size_t rules_above = rules_.size();
    const int entries_above = tree_.entries_size();
    for (const char* name : {ignore_file_, ".musterignore"}) {
      if (absl::Status status = AddRules(root_ / (path + name), prefix_ + path); !status.ok())
        return status;
    }
    std::error_code error;
    for (auto it = fs::directory_iterator(root_ / path, error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      absl::Status status = Take(path + it->path().filename().native(), it->path());
      if (!status.ok()) return status;
    }
    if (error) return SystemError(error.value(), root_ / path);
    rules_.Shrink(rules_above);
    // An empty directory is only known by an entry of its own.
    if (tree_.entries_size() == entries_above && !path.empty())
      return Add(path.substr(0, path.size() - 1), v1::FILE_KIND_DIRECTORY).status();
    return absl::OkStatus();
  }

  absl::StatusOr<v1::FileTreeEntry*> Add(const std::string& path, v1::FileKind kind) {
    if (tree_.entries_size() == static_cast<int>(contract::kMaxTreeEntries)) {
      return Refused(root_, fmt::format("has more than {} files, the most that a job may bring "
                                        "along from one directory; {}",
                                        contract::kMaxTreeEntries, kRemedy));
    }
    v1::FileTreeEntry* entry = tree_.add_entries();
    entry->set_path(path);
    entry->set_kind(kind);
    return entry;
  }

  absl::Status Take(const std::string& path, const fs::path& source) {
    struct stat info {};
    if (source.filename() == ".git") return absl::OkStatus();
    if (lstat(source.c_str(), &info) != 0) return SystemError(errno, source);
    if (rules_.LeavesOut(prefix_ + path, S_ISDIR(info.st_mode))) return absl::OkStatus();
    if (const std::string_view wrong = contract::WhatIsWrongWithTreePath(path); !wrong.empty())
      return Refused(root_, fmt::format("{} {}; {}", Quoted(path), wrong, kRemedy));
    if (S_ISDIR(info.st_mode)) return Enter(path + "/");
    if (S_ISLNK(info.st_mode)) return TakeLink(path, source);
    if (!S_ISREG(info.st_mode)) {
      return Refused(root_, fmt::format("{} is no file, directory or link, but a device, a pipe or "
                                        "a socket; remove it, or name it in a .musterignore file",
                                        Quoted(path)));
    }
    const auto entry = Add(path, v1::FILE_KIND_FILE);
    if (!entry.ok()) return entry.status();
    SetFile(info, *entry);
    return absl::OkStatus();
  }

  absl::Status TakeLink(const std::string& path, const fs::path& source) {
    std::error_code error;
    const fs::path target = fs::read_symlink(source, error);
    if (error) return SystemError(error.value(), source);
    // The fault is told at once: each environment of Python has such links, and gigabytes would be
    // read before.
    if (const auto [wrong, remedy] = contract::FaultOfLink(path, target.native()); !wrong.empty()) {
      return Refused(root_, fmt::format("{} {}; {}{}{}", Quoted(path), wrong, remedy,
                                        remedy.empty() ? "" : ", or ", kLeaveOut));
    }
    const auto entry = Add(path, v1::FILE_KIND_SYMLINK);
    if (entry.ok()) (*entry)->set_link_target(target.native());
    return entry.status();
  }

  const fs::path root_;
  const RulesAbove above_;
  const char* ignore_file_ = ".gitignore";
  std::string prefix_;  // of paths in rules: from the root of the repository to ours
  IgnoreRules rules_;
  v1::FileTree tree_;
};

// Makes a tree of one file.
absl::StatusOr<v1::FileTree> TreeOfFile(const fs::path& path, const struct stat& info,
                                        const std::string& name) {
  if (!S_ISREG(info.st_mode)) return Refused(path, "is neither a file nor a directory");
  v1::FileTree tree;
  v1::FileTreeEntry* entry = tree.add_entries();
  entry->set_path(name.empty() ? path.filename().native() : name);
  entry->set_kind(v1::FILE_KIND_FILE);
  SetFile(info, entry);
  return tree;
}

absl::Status CheckTotal(const fs::path& root, const v1::FileTree& tree, uint64_t max_bytes) {
  uint64_t total = 0;
  std::vector<const v1::FileTreeEntry*> largest;
  for (const v1::FileTreeEntry& entry : tree.entries()) {
    total += entry.size_bytes();
    largest.push_back(&entry);
  }
  if (total <= max_bytes) return absl::OkStatus();
  const size_t named = std::min(kMaxNamed, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<ptrdiff_t>(named), largest.end(),
                    [](const auto* a, const auto* b) { return a->size_bytes() > b->size_bytes(); });
  std::string names;
  for (size_t i = 0; i < named; ++i) {
    names += fmt::format("{}{} ({})", i > 0 ? ", " : "", Quoted(largest[i]->path()),
                         FormatBytes(largest[i]->size_bytes()));
  }
  return Refused(root, fmt::format("has {} bytes of files, and {} ({}) are the most that a job may "
                                   "bring along; the largest are {}; {}",
                                   total, max_bytes, FormatBytes(max_bytes), names, kRemedy));
}

// Size and digest are those of the bytes read, which may be fewer than at the walk. More would be
// beyond what was compared with the bound, and a log that is being written has no end.
absl::Status Digest(const fs::path& source, v1::FileTreeEntry* entry) {
  Sha256 digest;
  uint64_t size_bytes = 0;
  absl::Status status = ReadPieces(source, [&](std::string_view piece) {
    digest.Add(piece);
    size_bytes += piece.size();
    if (size_bytes <= entry->size_bytes()) return absl::OkStatus();
    return absl::AbortedError(
        ToAbsl(fmt::format("{} has changed: it had {} bytes a moment ago and has more now",
                           source.native(), entry->size_bytes())));
  });
  if (!status.ok()) return status;
  entry->set_size_bytes(size_bytes);
  entry->set_sha256(digest.Finish());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LocalTree> ReadLocalTree(const fs::path& path, uint64_t max_bytes, RulesAbove above,
                                        const std::string& name) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return SystemError(errno, path);
  LocalTree local;
  const bool is_directory = S_ISDIR(info.st_mode);
  if (is_directory) {
    Walk walk(path, above);
    if (absl::Status status = walk.Go(); !status.ok()) return status;
    local.tree = std::move(*walk.tree());
  } else {
    auto tree = TreeOfFile(path, info, name);
    if (!tree.ok()) return tree.status();
    local.tree = *std::move(tree);
  }
  // The check comes before any reading: a forgotten data set is told at once.
  if (absl::Status status = CheckTotal(path, local.tree, max_bytes); !status.ok()) return status;
  auto& entries = *local.tree.mutable_entries();
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  uint64_t total = 0;
  for (v1::FileTreeEntry& entry : entries) {
    if (entry.kind() != v1::FILE_KIND_FILE) continue;
    const fs::path source = is_directory ? path / entry.path() : path;
    if (absl::Status status = Digest(source, &entry); !status.ok()) return status;
    total += entry.size_bytes();
    local.sources.emplace(entry.sha256(), source);
  }
  local.tree.set_total_bytes(total);
  if (absl::Status status = contract::CheckFileTree(local.tree); !status.ok()) return status;
  local.bytes = local.tree.SerializeAsString();
  local.sha256 = Sha256Of(local.bytes);
  return local;
}

}  // namespace muster::client
