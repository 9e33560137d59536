// Puts jobs' files on a host: sends each tree there once, as one archive, and copies it there for
// each run.
//
// `DIRECTORY/trees/DIGEST/` holds a whole tree: the name exists only after the archive was checked
// and unpacked. `DIRECTORY/incoming/` holds the received part of an archive, from which sending
// goes on. Trees that were used in the last week stay, at most kMaxTrees. A try whose connection
// broke may still go on there beside the next one; neither disturbs the other.
//
// Any thread; one agent for each directory. Calls block; each command on the host is bounded.
#ifndef MUSTER_AGENTS_FILES_HOST_TREES_H_
#define MUSTER_AGENTS_FILES_HOST_TREES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files/job_files.h"
#include "agents/hosts/host.h"
#include "sync/shared_mutex.h"

namespace muster::uploads {

// This many trees stay on a host, those used last: some edits of the same few projects.
inline constexpr int kMaxTrees = 20;
// One command has at most this much of the archive: one request over SSH, in memory on both sides.
inline constexpr size_t kPartBytes = 8 << 20;

// Holds the facts of a tree that a host needs, without the names of its files, which may be many.
struct TreeName {
  std::string digest;
  uint64_t occupied_bytes = 0;  // of a disk
  uint64_t archive_bytes = 0;

  static TreeName Of(const v1::FileTree& tree);
};

class HostTrees {
 public:
  // `bytes` of the archive are on the host.
  using SentListener = std::function<void(uint64_t bytes)>;

  // `directory` is absolute. Host and cache must outlive this object.
  HostTrees(hosts::Host* host, std::string directory, FileCache* cache)
      : host_(host), directory_(std::move(directory)), cache_(cache) {}

  // Makes `target` with the files, and its parents, which only their owner may enter. The target
  // appears as a whole or not at all: one that is not empty is whole, from an earlier try.
  // DEADLINE_EXCEEDED: call it again, and it goes on. RESOURCE_EXHAUSTED: the disk there is full.
  // UNAVAILABLE: the host could not be asked, or a cached file was damaged. Other errors have the
  // host's words.
  absl::Status LayOut(const LocalFiles& files, const std::string& target, absl::Duration patience);

  // These do the same in steps, for callers with many hosts. Only Send takes much memory, so they
  // send to a few hosts at a time.
  //
  // NOT_FOUND: the host does not have the tree yet; Send and Unpack put it there.
  absl::Status Copy(const TreeName& tree, const std::string& target);
  // Returns the archive's SHA-256. Goes on where the last try has ended.
  absl::StatusOr<std::string> Send(const LocalFiles& files, const TreeName& tree,
                                   absl::Duration patience, const SentListener& sent);
  absl::Status Unpack(const TreeName& tree, const std::string& archive_sha256);

 private:
  absl::Status CopyLocked(const TreeName& tree, const std::string& target)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // `until` is by hosts::SteadyNow.
  absl::StatusOr<std::string> SendLocked(const LocalFiles& files, const TreeName& tree,
                                         absl::Duration until, const SentListener& sent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnpackLocked(const TreeName& tree, const std::string& archive_sha256)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how much of an archive is there, in whole parts.
  absl::StatusOr<uint64_t> SentBytes(const std::string& archive);
  std::string ArchivePath(const TreeName& tree) const;
  std::string TreePath(const TreeName& tree) const;
  // The room that a script needs in a directory, and what it is for, in words for errors.
  struct Need {
    std::string_view what;
    uint64_t bytes;
    const std::string& directory;
  };
  // Adds the last argument of the script: the bytes that must be free there.
  absl::Status RunWithRoom(const char* script, std::vector<std::string> arguments, const Need& need,
                           std::string input = "");
  // OUT_OF_RANGE: less is free than the script was told.
  absl::Status RunScript(const std::string& script, std::vector<std::string> arguments,
                         std::string input, absl::Duration patience);

  hosts::Host* const host_;
  const std::string directory_;
  FileCache* const cache_;
  // Guards the files of the host: shared by copies; exclusive for changes of the trees.
  SharedMutex mutex_;
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_HOST_TREES_H_
