// The files that one run has on one rank, to be read and sent: paths are relative to its working
// directory, and nothing outside of that is reached, whatever links the run has made.
//
// One thread for each object. Calls may block.
#ifndef MUSTER_AGENTS_CORE_RUN_FILES_H_
#define MUSTER_AGENTS_CORE_RUN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/files_service.pb.h"

namespace muster::agents {

// One directory has at most this many names: a sort of them fits into some 20 MB.
inline constexpr size_t kMaxNamesInDirectory = 100'000;

class RunFiles {
 public:
  virtual ~RunFiles() = default;

  // Returns the entry at a path, without its path: kind UNSPECIFIED means a thing that can be no
  // entry, a pipe or a socket. `follow`: a link itself is followed, too. Errors as of Read.
  virtual absl::StatusOr<v1::FileTreeEntry> LookAt(const std::string& path, bool follow) = 0;
  // Returns the names in a directory, sorted. RESOURCE_EXHAUSTED: more than kMaxNamesInDirectory.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // Returns at most max_bytes from the offset on; fewer only at the end of the file. NOT_FOUND
  // (PATH_NOT_FOUND): it is not there. PERMISSION_DENIED: the path leads out (PATH_LEADS_OUT), or
  // the agent may not read it.
  virtual absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                           size_t max_bytes) = 0;
};

// The owner of the files that are wanted.
struct RankOfRun {
  std::string run_key;
  uint32_t rank = 0;
  std::string node = {};  // as the broker has it; empty: it does not know
  // The directory of the run's results, as the agent has told the broker; empty if it has none.
  std::string results_directory = {};
};

// Opens the files of a rank of a run; may block. RUN_HAS_NO_FILES, NOT_FOUND and so on: there are
// none.
using OpenRunFiles = std::function<absl::StatusOr<std::unique_ptr<RunFiles>>(const RankOfRun& of)>;

// Takes the next piece of what is sent. False: nobody wants more.
using SendPiece = std::function<bool(v1::FetchFilesResponse piece)>;

// Sends what is at a path of a rank of a run, where the cluster itself reads its files and tells
// them in pieces. Called in place of OpenRunFiles; may block. OK: all was sent, or is not wanted.
using RelayRunFiles = std::function<absl::Status(const RankOfRun& of, const std::string& path,
                                                 const SendPiece& send)>;

// Opens the files of a run on this machine, below `root`, which is trusted; `directory` (relative
// to it) and its content belong to the run. The kernel resolves each path beneath the directory
// (openat2), so a run that exchanges a directory for a link while it is read gains nothing.
// NOT_FOUND: there is no such directory.
absl::StatusOr<std::unique_ptr<RunFiles>> OpenLocalRunFiles(const std::string& root,
                                                            const std::string& directory);

// Opens a results directory on this machine; its parent is trusted, and what is in it belongs to
// runs. The kernel resolves paths as for the files of a run.
absl::StatusOr<std::unique_ptr<RunFiles>> OpenLocalResults(const std::string& directory);

// The parent of an absolute path, and its last name.
struct SplitPath {
  std::string parent;
  std::string name;
};
SplitPath SplitOf(const std::string& path);

absl::Status PathNotFound(const std::string& path);
// Tells that a run has no working directory. `why`: where it is known that there was one.
absl::Status NoWorkingDirectory(std::string_view why = {});
absl::Status PathLeadsOut(const std::string& path);
// Returns the error for the errno that the operating system gave for a path.
absl::Status RunFileError(int error, const std::string& path);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_FILES_H_
