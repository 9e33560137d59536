#include "agents/files/fetch_tree.h"

#include <string>
#include <utility>
#include <vector>

#include "agents/files/job_tree.h"
#include "contract/file_tree.h"

namespace muster::uploads {

absl::StatusOr<v1::FileTree> FetchTree(const v1::JobSpec& spec, FileCache* cache,
                                       absl::Duration patience) {
  std::vector<Wanted> wanted;
  for (const v1::Upload& upload : spec.uploads())
    wanted.push_back({upload.tree_sha256(), contract::kMaxTreeBytes, /*is_exact=*/false});
  const absl::StatusOr<FileCache::Hold> hold = cache->Fetch(wanted, patience);
  if (!hold.ok()) return hold.status();
  std::vector<v1::FileTree> trees;
  for (const v1::Upload& upload : spec.uploads()) {
    const absl::StatusOr<std::string> bytes = cache->ReadAll(upload.tree_sha256());
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<v1::FileTree> tree = contract::ParseFileTree(*bytes);
    if (!tree.ok()) return tree.status();
    trees.push_back(*std::move(tree));
  }
  return JoinTrees(spec.uploads(), trees);
}

}  // namespace muster::uploads
