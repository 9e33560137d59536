#include "agents/files/job_tree.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "contract/errors.h"
#include "contract/file_tree.h"

namespace muster::uploads {
namespace {

std::string Below(const std::string& directory, const std::string& path) {
  return directory.empty() ? path : fmt::format("{}/{}", directory, path);
}

}  // namespace

absl::StatusOr<v1::FileTree> JoinTrees(
    const google::protobuf::RepeatedPtrField<v1::Upload>& uploads,
    const std::vector<v1::FileTree>& trees) {
  std::map<std::string, v1::FileTreeEntry> entries;  // sorted byte by byte, as a tree is
  for (int i = 0; i < uploads.size(); ++i) {
    const v1::Upload& upload = uploads[i];
    if (!upload.path().empty()) {
      const std::string_view wrong = contract::WhatIsWrongWithTreePath(upload.path());
      if (!wrong.empty()) {
        return contract::BadField(fmt::format("uploads[{}].path", i),
                                  fmt::format("{}; name a directory below the job's own", wrong));
      }
      // It is made, also for a tree without entries.
      v1::FileTreeEntry directory;
      directory.set_path(upload.path());
      directory.set_kind(v1::FILE_KIND_DIRECTORY);
      entries.insert_or_assign(upload.path(), std::move(directory));
    }
    for (const v1::FileTreeEntry& entry : trees[static_cast<size_t>(i)].entries()) {
      v1::FileTreeEntry moved = entry;
      moved.set_path(Below(upload.path(), entry.path()));
      std::string path = moved.path();
      entries.insert_or_assign(std::move(path), std::move(moved));
    }
  }
  v1::FileTree joined;
  uint64_t total_bytes = 0;
  for (auto& [path, entry] : entries) {
    total_bytes += entry.size_bytes();
    *joined.add_entries() = std::move(entry);
  }
  joined.set_total_bytes(total_bytes);
  if (absl::Status status = contract::CheckFileTree(joined); !status.ok()) return status;
  return joined;
}

}  // namespace muster::uploads
