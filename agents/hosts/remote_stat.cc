#include "agents/hosts/remote_stat.h"

#include <sys/stat.h>

#include <charconv>
#include <string>

#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Takes a number and the character behind it, which may be the end.
template <typename Number>
bool Take(std::string_view* text, char end, int base, Number* number) {
  const char* const last = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), last, *number, base);
  if (error != std::errc() || (stop != last && *stop != end)) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()) + (stop != last ? 1 : 0));
  return true;
}

FileType TypeOf(uint32_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kDirectory;
  if (S_ISLNK(mode)) return FileType::kSymlink;
  return FileType::kOther;
}

}  // namespace

absl::StatusOr<FileInfo> ParseStat(std::string_view line) {
  while (line.ends_with('\n')) line.remove_suffix(1);
  std::string_view rest = line;
  uint32_t mode = 0;
  FileInfo info;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  if (!Take(&rest, ' ', 16, &mode) || !Take(&rest, ' ', 10, &info.size) ||
      !Take(&rest, '.', 10, &seconds) || (!rest.empty() && !Take(&rest, '\0', 10, &nanoseconds))) {
    return absl::UnavailableError(
        fmt::format("the host's stat prints \"{}\"; it must be that of coreutils", line));
  }
  info.type = TypeOf(mode);
  info.mode = mode & 07777;
  info.modify_time = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanoseconds);
  return info;
}

}  // namespace muster::hosts
