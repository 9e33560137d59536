// A directory of this machine as a FileTree, to be brought along by a job.
//
// Files that .gitignore and .musterignore files leave out by git's rules stay behind, and so does
// each .git. The .gitignore files above a working directory count up to the root of its repository,
// and that one's .git/info/exclude; above another one none does, as it was named outright. A
// .musterignore file has the same form and comes after the .gitignore of its directory, so that it
// can also take files back. With a .skyignore file in the directory itself the .skyignore files
// there and below count in place of all of git's, as SkyPilot's users have them. Unlike git, which
// file is tracked is not asked, nor are the rules of the user's own configuration: the same
// directory is the same tree for everybody.
#ifndef MUSTER_CLIENTS_CPP_UPLOADS_LOCAL_TREE_H_
#define MUSTER_CLIENTS_CPP_UPLOADS_LOCAL_TREE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/file_tree.pb.h"

namespace muster::client {

struct LocalTree {
  v1::FileTree tree;
  std::string bytes;   // the tree's own, a file like the others
  std::string sha256;  // of these
  // The file that has the content, by digest.
  std::map<std::string, std::filesystem::path> sources;
};

// Tells whether rules count that stand above the directory, in the repository that it is in.
enum class RulesAbove { kCount, kDoNotCount };

// `path` is a directory, or a file, which becomes a tree of one, under `name` if that is not empty.
// INVALID_ARGUMENT: more than max_bytes or than a tree's entries; something that is no file,
// directory or link; a link that leads out, before any file is read. ABORTED: a file has grown
// since its size was read. Errors name the entry and what would do.
absl::StatusOr<LocalTree> ReadLocalTree(const std::filesystem::path& path, uint64_t max_bytes,
                                        RulesAbove above, const std::string& name = "");

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_UPLOADS_LOCAL_TREE_H_
