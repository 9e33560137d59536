#include "clients/cpp/login/login_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/time/clock.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"
#include "digest/base64url.h"
#include "oidc/json.h"

namespace muster::client {
namespace {

using nlohmann::json;
using oidc::TextMember;

// Two tokens and a few certificates.
constexpr size_t kMaxLoginBytes = 512 << 10;
constexpr absl::Duration kLockPause = absl::Milliseconds(20);
constexpr mode_t kOwnersOnly = 0600;

// A name in the file, and the member that it stands for.
struct Member {
  const char* name;
  std::string Login::*text;
  bool is_required;
};
constexpr Member kMembers[] = {{"broker", &Login::broker, true},
                               {"issuer", &Login::issuer, true},
                               {"client_id", &Login::client_id, true},
                               {"ca_certificates", &Login::ca, false},
                               {"token_endpoint", &Login::token_endpoint, true},
                               {"revocation_endpoint", &Login::revocation_endpoint, false},
                               {"id_token", &Login::id_token, true},
                               {"refresh_token", &Login::refresh_token, false}};

absl::Status Failed(std::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, ToAbsl(fmt::format("cannot {} {}", what, path)));
}

}  // namespace

absl::StatusOr<Login> ReadLogin(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return absl::NotFoundError("not logged in");
    return Failed("look at", path);
  }
  if ((info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(ToAbsl(
        fmt::format("the login {} has mode {:04o}, so that others may have read it; muster logout, "
                    "then muster login",
                    path, info.st_mode & 07777)));
  }
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxLoginBytes);
  if (!text.ok()) return text.status();
  const std::optional<json> kept = oidc::ParseObject(*text);
  Login login;
  for (const Member& member : kMembers) {
    if (kept) login.*member.text = TextMember(*kept, member.name);
    if (member.is_required && (login.*member.text).empty()) {
      return absl::InvalidArgumentError(
          ToAbsl(fmt::format("the login {} is damaged; muster login makes another", path)));
    }
  }
  return login;
}

absl::Status WriteLogin(const std::string& path, const Login& login) {
  const std::string directory = path.substr(0, path.rfind('/'));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return Failed("make", directory);
  json kept = json::object();
  for (const Member& member : kMembers) kept[member.name] = login.*member.text;
  return WriteFileWhole(path, kept.dump(2) + "\n", kOwnersOnly);
}

absl::Time EndOfToken(std::string_view id_token) {
  const size_t first = id_token.find('.');
  const size_t last = id_token.rfind('.');
  if (first == id_token.npos || first == last) return absl::InfinitePast();
  const auto bytes = FromBase64Url(id_token.substr(first + 1, last - first - 1));
  const auto claims = bytes ? oidc::ParseObject(*bytes) : std::nullopt;
  if (!claims || !claims->contains("exp") || !(*claims)["exp"].is_number())
    return absl::InfinitePast();
  return absl::UnixEpoch() + absl::Seconds((*claims)["exp"].get<double>());
}

absl::StatusOr<LoginLock> LoginLock::Take(const std::string& path) {
  const std::string name = path + ".lock";
  const std::string directory = path.substr(0, path.rfind('/'));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return Failed("make", directory);
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnersOnly);
  if (fd < 0) return Failed("open", name);
  LoginLock lock(fd);
  const absl::Time due = absl::Now() + kPatience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Failed("lock", name);
    if (absl::Now() >= due) {
      return absl::UnavailableError(
          ToAbsl(fmt::format("another muster has held {} for {} s; end it and try again", name,
                             absl::ToInt64Seconds(kPatience))));
    }
    absl::SleepFor(kLockPause);
  }
  return lock;
}

LoginLock::~LoginLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace muster::client
