// Uploads the files that the jobs of a file bring along from this machine: reads them, names them
// in the specs, and sends those that the broker lacks.
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
// INVALID_ARGUMENT, NOT_FOUND and so on name what cannot be read or is more than `max_job_bytes`,
// with its place in the file or "--workdir". Another call reads everything again.
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

// Returns the most bytes that a job may bring along to this broker.
absl::StatusOr<uint64_t> MaxJobBytes(Client* client);
// Returns the trees' files that the broker lacks.
absl::StatusOr<MissingFiles> FindMissing(Client* client, const std::vector<LocalTree>& trees);

// Sends them. Waits for the end of interruptions (a broker that restarts, or that has too many
// uploads) as streams do, and does not send files again that have arrived. ABORTED: a file has
// changed since it was read. `on_progress` gets the number of bytes sent so far, after each file
// and each few MiB.
absl::Status SendFiles(Client* client, const MissingFiles& missing,
                       const std::function<void(uint64_t)>& on_progress);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOCAL_UPLOADS_H_
