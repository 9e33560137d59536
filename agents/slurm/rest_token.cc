#include "agents/slurm/rest_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "agents/hosts/fd.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::slurm {
namespace {

// Tokens have a few hundred bytes.
constexpr size_t kMaxTokenBytes = 16 * 1024;
// Slurm's default is half an hour; sites may allow less, and then say so.
constexpr absl::Duration kLifespan = absl::Minutes(30);
constexpr std::string_view kName = "SLURM_JWT=";

absl::Status Unusable(std::string text) {
  return absl::FailedPreconditionError(
      text + ". Have it written anew (scontrol token username=USER lifespan=SECONDS), mode 0600");
}

// Opens the file once, so that the file that is checked is the file that is read.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  const hosts::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0)
    return Unusable(
        fmt::format("rest_token_file \"{}\" cannot be read: {}", path, std::strerror(errno)));
  if (!S_ISREG(info.st_mode))
    return Unusable(fmt::format("rest_token_file \"{}\" is no file", path));
  if ((info.st_mode & 0077) != 0)
    return Unusable(
        fmt::format("rest_token_file \"{}\" has mode {:04o}, so that others can read it", path,
                    info.st_mode & 07777));
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return Unusable(fmt::format("rest_token_file \"{}\" belongs to user id {}, not to the agent's",
                                path, info.st_uid));
  std::array<char, kMaxTokenBytes> buffer;
  const ssize_t bytes = read(file.get(), buffer.data(), buffer.size());
  if (bytes < 0)
    return Unusable(
        fmt::format("rest_token_file \"{}\" cannot be read: {}", path, std::strerror(errno)));
  return std::string(buffer.data(), static_cast<size_t>(bytes));
}

// Returns an object, which is empty if the token is none.
nlohmann::json ClaimsOf(std::string_view token) {
  const size_t first = token.find('.');
  const size_t second = token.find('.', first == token.npos ? first : first + 1);
  std::string payload;
  const bool is_token =
      second != token.npos &&
      absl::WebSafeBase64Unescape(ToAbsl(token.substr(first + 1, second - first - 1)), &payload);
  nlohmann::json claims =
      is_token ? nlohmann::json::parse(payload, nullptr, false) : nlohmann::json();
  return claims.is_object() ? claims : nlohmann::json::object();
}

}  // namespace

std::optional<absl::Time> TokenEnd(std::string_view token) {
  const nlohmann::json claims = ClaimsOf(token);
  const auto end = claims.find("exp");
  if (end == claims.end() || !end->is_number()) return std::nullopt;
  return absl::FromUnixSeconds(end->get<int64_t>());
}

std::string TokenUser(std::string_view token) {
  const nlohmann::json claims = ClaimsOf(token);
  const auto user = claims.find("sun");
  return user != claims.end() && user->is_string() ? user->get<std::string>() : "";
}

absl::StatusOr<std::string> ParseToken(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  if (text.starts_with(kName)) text.remove_prefix(kName.size());
  const bool is_token =
      !text.empty() && text.size() < kMaxTokenBytes &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (is_token) return std::string(text);
  // It may be a token all the same: its text is not quoted.
  return absl::InvalidArgumentError(
      "it holds no token, which is one word, alone or after SLURM_JWT=");
}

absl::StatusOr<std::string> TokenFile::Get(absl::Time now) {
  const absl::StatusOr<std::string> text = ReadPrivateFile(path_);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::string> token = ParseToken(*text);
  if (!token.ok())
    return Unusable(
        fmt::format("rest_token_file \"{}\": {}", path_, ToStd(token.status().message())));
  const std::optional<absl::Time> end = TokenEnd(*token);
  if (end.has_value() && *end <= now) {
    return Unusable(fmt::format("the token in rest_token_file \"{}\" ended at {}", path_,
                                absl::FormatTime(*end, absl::UTCTimeZone())));
  }
  return token;
}

absl::StatusOr<std::string> TokenCommand::Get(absl::Time now) {
  const MutexLock lock(mutex_);
  if (now < renew_) return token_;
  const absl::StatusOr<std::string> output = ask_(kLifespan);
  if (!output.ok()) {
    return absl::UnavailableError(fmt::format(
        "no token for slurmrestd, scontrol token failed: {}. If the site gives its users none, set "
        "rest_token_file",
        ToStd(output.status().message())));
  }
  absl::StatusOr<std::string> token = ParseToken(*output);
  if (!token.ok())
    return absl::UnavailableError(
        fmt::format("what scontrol token printed is none: {}", ToStd(token.status().message())));
  token_ = *token;
  const absl::Duration rest = TokenEnd(token_).value_or(now + kLifespan) - now;
  renew_ = now + rest * 4 / 5;
  return token_;
}

void TokenCommand::Doubt() {
  const MutexLock lock(mutex_);
  renew_ = absl::InfinitePast();
}

}  // namespace muster::slurm
