// Brings the files of a job from this broker to the remote one.
#ifndef MUSTER_AGENTS_MUSTER_UPLOADS_H_
#define MUSTER_AGENTS_MUSTER_UPLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/files/file_cache.h"
#include "agents/muster/connection.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::remote {

class Uploads {
 public:
  struct File {
    std::string sha256;
    uint64_t size_bytes = 0;
  };
  // Has all files of a job, and their trees. They stay on this machine as long as this object
  // lives.
  struct Files {
    std::vector<File> files;
    uploads::FileCache::Hold trees_hold;
    uploads::FileCache::Hold files_hold;
  };

  // Both outlive it.
  Uploads(uploads::FileCache* cache, Connection* connection)
      : cache_(*cache), connection_(*connection) {}

  // Fetches them from this broker. Errors are those of FileCache::Fetch.
  absl::StatusOr<Files> Fetch(const v1::JobSpec& spec);
  // Sends those that the remote broker lacks. Errors are those of the remote broker or of this
  // disk.
  absl::Status Send(const Files& files);

 private:
  absl::Status Write(const File& file, client::FileWriter* writer);

  uploads::FileCache& cache_;
  Connection& connection_;
};

}  // namespace muster::remote

#endif  // MUSTER_AGENTS_MUSTER_UPLOADS_H_
