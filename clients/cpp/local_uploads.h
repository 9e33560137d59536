// Brings the files of a job file's jobs from this machine: read, named in their specs, and sent to
// the broker as far as it lacks them.
//
// One thread. Reads whole directories and waits for the broker.
#ifndef MUSTER_CLIENTS_CPP_LOCAL_UPLOADS_H_
#define MUSTER_CLIENTS_CPP_LOCAL_UPLOADS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/client.h"
#include "clients/cpp/job_file_result.h"
#include "clients/cpp/uploads/local_tree.h"

namespace muster::client {

// Reads each directory and file once, and puts the names of their trees into the specs.
// INVALID_ARGUMENT, NOT_FOUND and so on: what cannot be read or is more than `max_job_bytes`, with
// its place in the file, or "--workdir". Called again, it reads anew.
absl::StatusOr<std::vector<LocalTree>> ReadLocalUploads(uint64_t max_job_bytes, JobFile* file);

// A file that the broker lacks.
struct FileToSend {
  std::string sha256;
  uint64_t size_bytes = 0;
  std::filesystem::path path;  // empty: its bytes are these
  std::string bytes;
};

struct MissingFiles {
  std::vector<FileToSend> files;
  uint64_t bytes = 0;  // of all of them
};

// The most bytes that a job may bring along to this broker.
absl::StatusOr<uint64_t> MaxJobBytes(Client* client);
// Returns the trees' files that the broker lacks.
absl::StatusOr<MissingFiles> FindMissing(Client* client, const std::vector<LocalTree>& trees);

// Brings them. Interruptions (a broker that restarts, or that has too many uploads) are waited out
// as with streams; files that have arrived by then are not sent again. ABORTED: a file has changed
// since it was read. `on_progress` is told the bytes that were sent so far, after each file and
// each few MiB.
absl::Status SendFiles(Client* client, const MissingFiles& missing,
                       const std::function<void(uint64_t)>& on_progress);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOCAL_UPLOADS_H_
