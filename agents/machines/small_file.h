// Reads and writes whole small files, with errors as errno values (0 means none). Uses nothing but
// the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_SMALL_FILE_H_
#define MUSTER_AGENTS_MACHINES_SMALL_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::machines {

// Returns EFBIG if it is longer than max_bytes.
int ReadSmallFile(const std::string& path, size_t max_bytes, std::string* content);

// Makes the file or replaces its content; on failure the file may be there in part.
int WriteSmallFile(const std::string& path, std::string_view content, mode_t mode);

// Does the same in one step for readers. Not synced.
int ReplaceSmallFile(const std::string& path, std::string_view content, mode_t mode);

// Makes the file whole, with its name, and on disk; EEXIST: it is there already, and has not been
// touched.
int ClaimFile(const std::string& path, std::string_view content, mode_t mode);

// Puts content and name of a file on disk: for a new file, the file systems in use (ext4, xfs,
// btrfs) write the entries of its directories before fsync of the file itself returns.
int SyncFile(const std::string& path);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SMALL_FILE_H_
