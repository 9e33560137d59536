// Shared by all Hosts: checks of arguments, and the errors of files.
#ifndef MUSTER_AGENTS_HOSTS_FILE_ERROR_H_
#define MUSTER_AGENTS_HOSTS_FILE_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "agents/hosts/host.h"

namespace muster::hosts {

// `cannot WHAT "PATH": words of the operating system`, with the class of the errno.
absl::Status FileError(int error, std::string_view what, std::string_view path);
// Returns the errno whose words (those of the C locale) end the text, which newlines may follow; 0
// if it ends otherwise.
int ErrnoFromWords(std::string_view text);

// FAILED_PRECONDITION: a directory, a pipe or the like where a file is wanted.
absl::Status NotRegularError(std::string_view path);
// RESOURCE_EXHAUSTED: a whole file was asked for, and it is longer.
absl::Status FileTooLongError(std::string_view path, size_t max_bytes);
// RESOURCE_EXHAUSTED: more than kMaxDirectoryEntries.
absl::Status DirectoryTooLongError(std::string_view path);

// INVALID_ARGUMENT unless the path is absolute.
absl::Status CheckPath(std::string_view path);
// INVALID_ARGUMENT for "/" itself, however it is written.
absl::Status CheckRemovable(std::string_view path);
// INVALID_ARGUMENT if one read cannot be so long, or so far behind.
absl::Status CheckRange(uint64_t offset, size_t max_bytes);
// INVALID_ARGUMENT if the parts together are longer than one call may read.
absl::Status CheckParts(const std::vector<FilePart>& parts);
// INVALID_ARGUMENT: a variable that no shell could export, or no time at all.
absl::Status CheckCommand(const Command& command);

}  // namespace muster::hosts

#endif  // MUSTER_AGENTS_HOSTS_FILE_ERROR_H_
