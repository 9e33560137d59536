// Writes the files that a broker sends to this machine. It writes only below the place that the
// user has named, whatever the broker sends: it opens each directory by its own name without
// following links, and makes links last.
//
// One thread.
#ifndef MUSTER_CLIENTS_CLI_TREE_WRITER_H_
#define MUSTER_CLIENTS_CLI_TREE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/file_tree.pb.h"

namespace muster::cli {

class TreeWriter {
 public:
  // `place`: an existing directory, in which it gets the name `name`, or its own new path.
  TreeWriter(std::string place, std::string name)
      : place_(std::move(place)), name_(std::move(name)) {}
  TreeWriter(const TreeWriter&) = delete;
  TreeWriter& operator=(const TreeWriter&) = delete;
  // Removes a file that is half written.
  ~TreeWriter();

  // Begins an entry of FetchFilesResponse. INVALID_ARGUMENT: it must not be written here. A file
  // appears whole, in place of an older one, when the next entry begins, or at the end.
  absl::Status Begin(const v1::FileTreeEntry& entry);
  absl::Status Append(std::string_view bytes);
  // Ends the copy.
  absl::Status Finish();

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }
  // Returns the path of the copy.
  std::string path() const;

 private:
  absl::Status BeginRoot(const v1::FileTreeEntry& entry);
  absl::Status BeginFile(const v1::FileTreeEntry& entry, int directory, const std::string& name);
  absl::Status EndFile();
  // Gives the unfinished file its name; false: errno says why not.
  bool NameFile();
  absl::Status MakeLinks();
  // Returns the directory of a path below the root.
  absl::StatusOr<int> OpenParent(std::string_view path, std::string* name) const;

  const std::string place_;
  const std::string name_;
  bool has_root_ = false;
  std::string parent_path_;
  std::string root_name_;
  int root_ = -1;  // the directory that was asked for; -1: it is a file

  // The unfinished file.
  int directory_ = -1;
  int file_ = -1;
  std::string file_name_;
  std::string temporary_name_;
  bool has_name_ = false;  // the directory has the name already
  v1::FileTreeEntry entry_;
  uint64_t written_ = 0;

  v1::FileTree links_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TREE_WRITER_H_
