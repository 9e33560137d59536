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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/files/file_store.h"
#include "digest/sha256.h"

namespace muster::files {

// An upload. The object can only be destroyed after an error; it leaves no incomplete file. Errors
// name the file.
class Upload {
 public:
  explicit Upload(FileStore* store) : store_(store) {}

  // Begins the next file. INVALID_ARGUMENT: its digest is not one, or the last file was not as
  // announced (WRONG_SIZE, WRONG_DIGEST). RESOURCE_EXHAUSTED as in FileStore::NewFile, or for a
  // full disk.
  absl::Status Begin(const std::string& sha256, uint64_t size_bytes);
  // Appends the file's next bytes.
  absl::Status Append(std::string_view bytes);
  // Ends the upload: all files are on disk.
  absl::StatusOr<FileStore::Counts> Finish();

 private:
  // Files that are written and checked, and wait to be kept; each has an open descriptor.
  static constexpr size_t kBatchFiles = 64;
  // Most bytes that are written before a wait for the disk.
  static constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

  absl::Status EndFile();
  absl::Status KeepBatch();

  FileStore* const store_;
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
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_UPLOAD_H_
