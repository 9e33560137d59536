// Where the files come from that jobs bring along: the broker, for an agent; anything else in
// tests.
#ifndef MUSTER_AGENTS_FILES_FILE_SOURCE_H_
#define MUSTER_AGENTS_FILES_FILE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::uploads {

// Takes the next bytes of a file; what it refuses ends the reading with its error.
using ByteSink = std::function<absl::Status(std::string_view)>;

// Any thread, several at a time.
class FileSource {
 public:
  virtual ~FileSource() = default;

  // The file's bytes from `offset` to its end, unchecked: whoever takes them knows the digest.
  // NOT_FOUND: it is not there. UNAVAILABLE: it could not be asked, or not to the end before
  // `deadline`; those bytes that came are good to go on from.
  virtual absl::Status Read(const std::string& sha256, uint64_t offset, absl::Time deadline,
                            const ByteSink& sink) = 0;
  // The agent ends: reads end soon, those that come later at once, as UNAVAILABLE.
  virtual void Stop() {}
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FILE_SOURCE_H_
