// Takes one client's files into the store. They are announced one after the other, checked while
// they are written, and kept in batches, so that one wait for the disk serves many small files.
//
// One thread at a time may use it. It does blocking file I/O.
#ifndef MUSTER_BROKER_FILES_UPLOAD_H_
#define MUSTER_BROKER_FILES_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/files/file_store.h"
#include "broker/files/viewer.h"
#include "digest/sha256.h"

namespace muster::files {

// An upload. The object can only be destroyed after an error; it leaves no incomplete file. Errors
// name the file.
class Upload {
 public:
  // All files become those of the viewer's user. A file of others that the viewer may not know of
  // is taken as one that is missing, byte for byte, so that nothing tells that it is there.
  Upload(FileStore* store, Viewer viewer) : store_(store), viewer_(std::move(viewer)) {}

  // Begins the next file. INVALID_ARGUMENT: its digest is not one, or the last file was not as
  // announced (WRONG_SIZE, WRONG_DIGEST). RESOURCE_EXHAUSTED as in FileStore::NewFile, or for a
  // full disk.
  absl::Status Begin(const std::string& sha256, uint64_t size_bytes);
  // Appends the file's next bytes.
  absl::Status Append(std::string_view bytes);
  // Ends the upload: all files are on disk.
  absl::StatusOr<FileStore::Counts> Finish();

 private:
  // Most files that wait to be kept; each that was written has an open descriptor.
  static constexpr size_t kBatchFiles = 64;
  // Most bytes that are written before a wait for the disk.
  static constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

  absl::Status EndFile();
  absl::Status KeepBatch();
  absl::Status KeepKnown();

  FileStore* const store_;
  const Viewer viewer_;
  FileStore::Counts counts_;

  // The present file.
  bool is_open_ = false;
  std::string sha256_;
  uint64_t size_bytes_ = 0;
  uint64_t received_bytes_ = 0;
  Sha256 digest_;
  std::unique_ptr<IncomingFile>
      file_;  // null: the file is there already, and its content is only checked

  std::vector<std::unique_ptr<IncomingFile>> batch_;
  uint64_t batch_bytes_ = 0;
  // Files that were there, and that have come all the same: they become the user's.
  std::vector<std::string> known_;
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_UPLOAD_H_
