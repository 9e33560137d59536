// A host on which an agent runs commands and keeps files: its own machine (LocalHost), or one over
// SSH (SshHost).
//
// Nothing here assumes that the host is near: every call may block for its bounded time, and every
// call may fail because the host could not be reached (UNAVAILABLE). All calls may be made from any
// thread, also at the same time.
//
// Paths are absolute; another path is INVALID_ARGUMENT. File errors carry the operating system's
// words and the path: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED (full disk,
// quota), FAILED_PRECONDITION and so on.
#ifndef MUSTER_AGENTS_HOSTS_HOST_H_
#define MUSTER_AGENTS_HOSTS_HOST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::hosts {

// A scheduler's command answers within seconds or is stuck.
inline constexpr absl::Duration kDefaultCommandTimeout = absl::Seconds(30);
// This holds one line for each of a hundred thousand runs; a longer listing is asked for in pieces.
inline constexpr size_t kDefaultMaxStdoutBytes = 64 << 20;
// This bounds complaints; more of them than this help nobody.
inline constexpr size_t kDefaultMaxStderrBytes = 1 << 20;
// Bounds the memory of one read.
inline constexpr size_t kMaxReadBytes = 64 << 20;
// Bounds the memory of one listing.
inline constexpr size_t kMaxDirectoryEntries = 1'000'000;

struct Command {
  // The program, looked up in the host's PATH if it has no '/', and then its arguments. No shell
  // reads them.
  std::vector<std::string> argv = {};
  // The bytes that the program reads from its standard input.
  std::string stdin_data = {};
  // Set in addition to the host's environment, or in place of a variable there.
  std::map<std::string, std::string> env = {};
  // Variables of the host's environment that the program does not get, by exact names or prefixes
  // that end with '*'.
  std::vector<std::string> unset_env = {};
  // The directory in which the program starts. Empty: the one in which the host starts programs.
  std::string working_directory = {};
  // After this time the program and its process group are killed.
  absl::Duration timeout = kDefaultCommandTimeout;
  // More output than this kills the program and is an error; output is never cut in silence.
  size_t max_stdout_bytes = kDefaultMaxStdoutBytes;
  size_t max_stderr_bytes = kDefaultMaxStderrBytes;
};

// The end of a program, and its output.
struct CommandResult {
  int exit_code = 0;  // 0 to 255; 0 if a signal ended it
  int signal = 0;     // the signal that ended it; 0 if none
  std::string stdout_data;
  std::string stderr_data;

  bool ok() const { return exit_code == 0 && signal == 0; }
};

enum class FileType { kRegular, kDirectory, kSymlink, kOther };

// Describes a file itself; symbolic links are not followed.
struct FileInfo {
  FileType type = FileType::kOther;
  uint64_t size = 0;  // bytes
  uint32_t mode = 0;  // permission bits
  absl::Time modify_time = {};
};

// A part of a file that is asked for together with others.
struct FilePart {
  std::string path;
  uint64_t offset = 0;
  size_t max_bytes = 0;
};

struct WriteOptions {
  uint32_t mode = 0644;  // permission bits, whatever the umask
  // True if content and name are on disk when the call returns OK.
  bool sync = true;
  // The file is not there yet, and nobody looks for it before the call returns: it may be written
  // where it lies, which over SSH costs a tenth.
  bool in_place = false;
};

// A file that is written together with others.
struct NewFile {
  std::string path;
  std::string content;
  WriteOptions options = {};
};

// Tells of one way to the host, which was tried on its own.
struct WayIn {
  // The last step on this way that succeeds.
  enum class Reached { kNothing, kHost, kHostKey, kUser };

  std::string name;  // "login1.example.org:22"
  Reached reached = Reached::kNothing;
  absl::Status status;  // OK: all the way. Else as SshHost::Connect says it
  std::string remedy;   // what to do about it
};

// All of them, in the order in which they are tried.
struct LoginReport {
  std::string key;      // what the user logs in with: "SSH key /etc/muster/key"
  absl::Status key_is;  // whether it can be used, with the remedy
  std::vector<WayIn> ways;
};

class Host {
 public:
  virtual ~Host() = default;

  // Returns the host's name for messages.
  virtual std::string Name() const = 0;
  // Tries each way to the host now, beside what goes on. Nothing: there is none to be tried, as on
  // this machine.
  virtual std::optional<LoginReport> TryLogins() { return std::nullopt; }

  // Runs a program to its end. A program that ends badly is a result, not an error. Processes that
  // it leaves behind are not waited for, and what they write after its end is not read. Errors:
  //   NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT, FAILED_PRECONDITION: it was not started (see
  //   NotStarted); DEADLINE_EXCEEDED: killed after its time-out; RESOURCE_EXHAUSTED: killed because
  //   it wrote too much; others, such as UNAVAILABLE: it may have run, nobody knows how far.
  virtual absl::StatusOr<CommandResult> Run(const Command& command) = 0;

  // Writes the file in one step: a reader sees the old content or the new one, never a part. The
  // directory must exist.
  virtual absl::Status WriteFile(std::string_view path, std::string_view content,
                                 const WriteOptions& options) = 0;
  // Returns at most max_bytes (up to kMaxReadBytes) from offset on; fewer only at the end of the
  // file, none beyond it.
  virtual absl::StatusOr<std::string> ReadFileRange(std::string_view path, uint64_t offset,
                                                    size_t max_bytes) = 0;
  // Returns the whole file; RESOURCE_EXHAUSTED if it has more than max_bytes (up to kMaxReadBytes).
  virtual absl::StatusOr<std::string> ReadFile(std::string_view path, size_t max_bytes) = 0;
  // Makes the directory and its parents; OK if it exists. The mode is for directories that are
  // made.
  absl::Status MakeDirectories(std::string_view path, uint32_t mode) {
    return MakeManyDirectories({std::string(path)}, mode);
  }
  virtual absl::StatusOr<FileInfo> Stat(std::string_view path) = 0;
  // Returns names in a directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(std::string_view path) = 0;
  // Removes a file, or a directory with all that is in it; links are removed, not followed. OK if
  // it does not exist.
  virtual absl::Status RemoveTree(std::string_view path) = 0;

  // Does Stat and ReadFileRange for many files, at the price of few round trips: an answer for
  // each, in the same order. ReadMany follows no link in place of a file, and one call reads at
  // most kMaxReadBytes altogether (INVALID_ARGUMENT in every answer otherwise).
  virtual std::vector<absl::StatusOr<FileInfo>> StatMany(const std::vector<std::string>& paths) = 0;
  virtual std::vector<absl::StatusOr<std::string>> ReadMany(const std::vector<FilePart>& parts) = 0;
  // Does MakeDirectories for several, one after the other, and ends at the first error.
  virtual absl::Status MakeManyDirectories(const std::vector<std::string>& paths,
                                           uint32_t mode) = 0;
  // Does RemoveTree for several, one after the other, and ends at the first error.
  virtual absl::Status RemoveManyTrees(const std::vector<std::string>& paths) = 0;
  // Removes those of the directories that are empty; the others stay, which is no error.
  virtual absl::Status RemoveEmptyDirectories(const std::vector<std::string>& paths) = 0;
  // Does WriteFile for several files, one after the other, and ends at the first error.
  virtual absl::Status WriteMany(const std::vector<NewFile>& files) = 0;
};

// Returns whether this error of Host::Run means that the program surely was not started.
bool NotStarted(const absl::Status& status);

// Returns the error of Host::Run for a program that was not started, by the errno that says why (0
// if none does).
absl::Status NotStartedError(int error, const std::string& message);

// Returns the error of Host::Run when the host was lost: UNAVAILABLE, with its payloads.
absl::Status LostError(const std::string& program, const absl::Status& cause);
// Returns the error's words without the name of the program that it happened to, and the message of
// any other error.
std::string CauseOf(const absl::Status& status);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_HOST_H_
