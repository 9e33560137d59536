// Declares the source of the files that jobs bring along: the broker, or anything else in tests.
#ifndef MUSTER_AGENTS_FILES_FILE_SOURCE_H_
#define MUSTER_AGENTS_FILES_FILE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::uploads {

// Takes the next bytes of a file. An error ends the reading, and is its result.
using ByteSink = std::function<absl::Status(std::string_view)>;

// Several threads may use it at a time.
class FileSource {
 public:
  virtual ~FileSource() = default;

  // Reads the file from `offset` to its end. The bytes are unchecked: the caller knows the digest.
  // NOT_FOUND: the source does not have the file. UNAVAILABLE: the source could not be asked, or
  // `patience` was over before the end; the next read may go on behind the bytes that came.
  virtual absl::Status Read(const std::string& sha256, uint64_t offset, absl::Duration patience,
                            const ByteSink& sink) = 0;
  // The agent ends: reads under way soon fail with UNAVAILABLE, and later ones at once.
  virtual void Stop() {}
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FILE_SOURCE_H_
