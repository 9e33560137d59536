// Lays out what a broker sends on this machine. Whatever it says, nothing is written but below the
// place that the user has named: each directory is opened by its own name without following links,
// and links are made last.
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
  // `place`: a directory, into which it goes as `name`, or what it is to be called itself.
  TreeWriter(std::string place, std::string name)
      : place_(std::move(place)), name_(std::move(name)) {}
  TreeWriter(const TreeWriter&) = delete;
  TreeWriter& operator=(const TreeWriter&) = delete;
  // Removes a file that is half written.
  ~TreeWriter();

  // Begins an entry of FetchFilesResponse. INVALID_ARGUMENT: it is nothing that may be laid out. A
  // file is there, whole and in place of what was there, when the next entry has begun, or at the
  // end.
  absl::Status Begin(const v1::FileTreeEntry& entry);
  absl::Status Append(std::string_view bytes);
  // Nothing follows.
  absl::Status Finish();

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }
  // Where it lies.
  std::string path() const;

 private:
  absl::Status BeginRoot(const v1::FileTreeEntry& entry);
  absl::Status BeginFile(const v1::FileTreeEntry& entry, int directory, const std::string& name);
  absl::Status EndFile();
  // Puts the file on its way in its place; false: errno says why not.
  bool NameFile();
  absl::Status MakeLinks();
  // The directory that is to hold what is at a path below the root.
  absl::StatusOr<int> OpenParent(std::string_view path, std::string* name) const;

  const std::string place_;
  const std::string name_;
  bool has_root_ = false;
  std::string parent_path_;
  std::string root_name_;
  int root_ = -1;  // the directory that was asked for; -1: it is a file

  // The file on its way.
  int directory_ = -1;
  int file_ = -1;
  std::string file_name_;
  std::string temporary_name_;
  bool has_name_ = false;  // it stands in the directory under that name
  v1::FileTreeEntry entry_;
  uint64_t written_ = 0;

  v1::FileTree links_;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TREE_WRITER_H_
