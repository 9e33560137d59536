#include "clients/cli/token_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "digest/token_text.h"

namespace muster::cli {
namespace {

// A token and some blanks.
constexpr size_t kMaxTokenFileBytes = 4096;

}  // namespace

absl::StatusOr<std::string> CheckToken(std::string_view text, std::string_view source) {
  const std::string token(absl::StripAsciiWhitespace(ToAbsl(text)));
  if (IsTokenText(token)) return token;
  return absl::InvalidArgumentError(ToAbsl(fmt::format(
      "{} has no whole token: a token is \"{}\" and {} letters and digits, and the last {} of them "
      "do not fit the others if one is missing or wrong; copy it again, or make another one",
      source, kTokenPrefix, kTokenCharacters - kTokenPrefix.size(), kTokenSumCharacters)));
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(ToAbsl(
        fmt::format("the token file {} has mode {:04o}, so that others may read it; chmod 600 {}, "
                    "and revoke the token if others could use the file's directory",
                    path, info.st_mode & 07777, path)));
  }
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxTokenFileBytes);
  if (!text.ok()) return text.status();
  return CheckToken(*text, fmt::format("the token file {}", path));
}

absl::StatusOr<int> MakeTokenFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) return fd;
  const int error = errno;
  return absl::ErrnoToStatus(
      error, ToAbsl(fmt::format("cannot make the token file {}; name a new file in a directory of "
                                "yours",
                                path)));
}

}  // namespace muster::cli
