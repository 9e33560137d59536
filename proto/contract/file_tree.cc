#include "contract/file_tree.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/link_fault.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

absl::Status Hostile(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, "HOSTILE_TREE",
               fmt::format("the tree of files is refused: {}", what));
}

absl::Status HostileEntry(const v1::FileTreeEntry& entry, std::string_view what) {
  return Hostile(fmt::format("{} {}", Quoted(entry.path()), what));
}

std::string_view TakePart(std::string_view* path) {
  const std::string_view part = path->substr(0, path->find('/'));
  path->remove_prefix(std::min(path->size(), part.size() + 1));
  return part;
}

// A link is followed in thought, from its own directory on: no step may lead above the tree. A name
// on the way may be a link itself, which is checked as an entry of its own: what leads below the
// tree's root by each link alone may still leave it by two, so links through links are refused.
LinkFault FaultOfTarget(std::string_view path, std::string_view target,
                        const std::set<std::string_view>& links) {
  if (target.empty()) return {"is a link that leads nowhere", ""};
  if (target.size() > kMaxTreePathBytes)
    return {"is a link with a target of more than 1024 bytes", ""};
  if (target.find('\0') != target.npos) return {"is a link whose target holds a NUL", ""};
  if (target.front() == '/') return {"is a link with an absolute target", "use a relative one"};
  std::vector<std::string_view> at;
  while (path.find('/') != path.npos) at.push_back(TakePart(&path));
  while (!target.empty()) {
    const std::string_view part = TakePart(&target);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (at.empty()) return {"is a link that leads out of the tree", ""};
      at.pop_back();
      continue;
    }
    at.push_back(part);
    // The last part may be a link: where that leads is its own matter.
    if (!target.empty() && links.contains(fmt::format("{}", fmt::join(at, "/"))))
      return {"is a link that leads through another link", "let it lead to the place itself"};
  }
  return {};
}

std::string_view WhatIsWrongWithKind(const v1::FileTreeEntry& entry) {
  const bool is_file = entry.kind() == v1::FILE_KIND_FILE;
  const bool is_link = entry.kind() == v1::FILE_KIND_SYMLINK;
  if (!is_file && !is_link && entry.kind() != v1::FILE_KIND_DIRECTORY)
    return "is neither a file nor a directory nor a link";
  if (is_file && !IsSha256(entry.sha256())) return "has no SHA-256 of 64 digits 0-9 and a-f";
  if (!is_file && (!entry.sha256().empty() || entry.size_bytes() > 0 || entry.executable() ||
                   entry.owner_only()))
    return "has what only a file has: a digest, a size or a mode";
  if (!is_link && !entry.link_target().empty()) return "has a target, but is no link";
  return "";
}

// Returns whether something above the path is there as something else than a directory.
bool IsBelowANonDirectory(std::string_view path,
                          const std::set<std::string_view>& non_directories) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    if (non_directories.contains(path.substr(0, slash))) return true;
  }
  return false;
}

}  // namespace

bool IsSha256(std::string_view text) {
  constexpr size_t kHexDigits = 64;
  return text.size() == kHexDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

std::string_view WhatIsWrongWithTreePath(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > kMaxTreePathBytes) return "has more than 1024 bytes";
  if (path.find('\0') != path.npos) return "holds a NUL";
  if (path.front() == '/') return "is absolute; use a path relative to the tree";
  if (path.back() == '/') return "ends with '/'";
  while (!path.empty()) {
    const std::string_view part = TakePart(&path);
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "has the part \".\" or \"..\"";
    if (part.size() > kMaxTreeNameBytes) return "has a part of more than 255 bytes";
  }
  return "";
}

std::string LinkFault::Text() const {
  return fmt::format("{}{}{}", what, remedy.empty() ? "" : "; ", remedy);
}

LinkFault FaultOfLink(std::string_view path, std::string_view target) {
  return FaultOfTarget(path, target, {});
}

absl::Status CheckFileTree(const v1::FileTree& tree) {
  if (tree.entries_size() > static_cast<int>(kMaxTreeEntries)) {
    return Hostile(
        fmt::format("it has {} entries, and {} are the most; leave some out by "
                    "a .musterignore file, or keep data on the cluster",
                    tree.entries_size(), kMaxTreeEntries));
  }
  std::set<std::string_view> links;
  std::set<std::string_view> non_directories;
  for (const v1::FileTreeEntry& entry : tree.entries()) {
    if (entry.kind() == v1::FILE_KIND_SYMLINK) links.insert(entry.path());
    if (entry.kind() != v1::FILE_KIND_DIRECTORY) non_directories.insert(entry.path());
  }
  uint64_t total = 0;
  std::string_view last;
  for (const v1::FileTreeEntry& entry : tree.entries()) {
    const std::string_view path = entry.path();
    LinkFault fault = {.what = WhatIsWrongWithTreePath(path)};
    if (fault.what.empty()) fault.what = WhatIsWrongWithKind(entry);
    if (fault.what.empty() && entry.kind() == v1::FILE_KIND_SYMLINK)
      fault = FaultOfTarget(path, entry.link_target(), links);
    if (fault.what.empty() && path == last) fault.what = "is there twice";
    if (fault.what.empty() && path < last)
      fault.what = "is out of order; entries are sorted by path";
    if (fault.what.empty() && IsBelowANonDirectory(path, non_directories))
      fault.what = "is below a file or a link";
    if (fault.what.empty() && entry.size_bytes() > std::numeric_limits<uint64_t>::max() - total)
      fault.what = "is larger than any file";
    if (!fault.what.empty()) return HostileEntry(entry, fault.Text());
    total += entry.size_bytes();
    last = path;
  }
  if (total != tree.total_bytes()) {
    return Hostile(
        fmt::format("its files have {} bytes together, and it says {}", total, tree.total_bytes()));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::FileTree> ParseFileTree(std::string_view bytes) {
  if (bytes.size() > kMaxTreeBytes)
    return Hostile(
        fmt::format("it has {} bytes, and {} are the most", bytes.size(), kMaxTreeBytes));
  v1::FileTree tree;
  if (!tree.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Hostile("its bytes are no FileTree");
  if (absl::Status status = CheckFileTree(tree); !status.ok()) return status;
  return tree;
}

uint64_t ArchiveBytes(const v1::FileTree& tree) {
  constexpr uint64_t kBlock = 512;
  constexpr uint64_t kEndBytes = 2 * kBlock;
  // A longer name has an entry of its own before it, with its NUL.
  constexpr uint64_t kShortName = 100;
  const auto padded = [](uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; };
  const auto long_bytes = [&](uint64_t size) {
    return size > kShortName ? kBlock + padded(size + 1) : 0;
  };
  uint64_t bytes = kEndBytes;
  for (const v1::FileTreeEntry& entry : tree.entries()) {
    const uint64_t slash = entry.kind() == v1::FILE_KIND_DIRECTORY ? 1 : 0;
    bytes += long_bytes(entry.link_target().size()) + long_bytes(entry.path().size() + slash) +
             kBlock + padded(entry.size_bytes());
  }
  return bytes;
}

}  // namespace muster::contract
