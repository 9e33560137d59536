#include "clients/cpp/errors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "clients/cpp/broker_trust.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "rpc/status.h"

namespace muster::client {
namespace {

// gRPC names each layer that passed the error on, with colons between; the last one says what
// happened.
std::string_view Cause(std::string_view message) {
  const size_t at = message.rfind(": ");
  return at == std::string_view::npos ? message : message.substr(at + 2);
}

// Marks an error of a call that never left this process. The value carries nothing.
constexpr char kNeverSentUrl[] = "muster.v1/never-sent";

// Returns the errno with which a Unix socket answers a connection; 0 if it is accepted, or there is
// no such address to ask at. The error is local and comes at once, unlike gRPC's, which may be an
// older one's.
int ConnectError(const rpc::Address& address) {
  sockaddr_un name{};
  if (address.unix_path.empty() || address.unix_path.size() >= sizeof(name.sun_path)) return 0;
  name.sun_family = AF_UNIX;
  address.unix_path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return 0;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  const int error = result == 0 ? 0 : errno;
  close(fd);
  return error;
}

bool IsAbsent(const rpc::Address& address) {
  const int error = ConnectError(address);
  return error == ENOENT || error == ENOTDIR || error == ECONNREFUSED;
}

bool IsForbidden(const rpc::Address& address) {
  const int error = ConnectError(address);
  return error == EACCES || error == EPERM;
}

// Something else has the socket's name; no wait makes a socket of it.
bool IsNoSocket(const rpc::Address& address) {
  struct stat info;
  return !address.unix_path.empty() && stat(address.unix_path.c_str(), &info) == 0 &&
         !S_ISSOCK(info.st_mode);
}

std::string UserName(uid_t id) {
  std::array<char, 1024> buffer;
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? fmt::format("{}", id) : found->pw_name;
}

std::string GroupName(gid_t id) {
  std::array<char, 4096> buffer;  // holds the members too
  group entry;
  group* found = nullptr;
  getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? fmt::format("{}", id) : found->gr_name;
}

// Returns the part of the path that keeps this user out: the first directory that may not be
// entered, or the socket itself.
std::string Obstacle(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    if (faccessat(AT_FDCWD, directory.c_str(), X_OK, AT_EACCESS) != 0) return directory;
  }
  return path;
}

std::string OriginText(const rpc::Address& address) {
  return address.origin.empty() ? "" : fmt::format(" ({})", address.origin);
}

std::string ForbiddenText(const rpc::Address& address) {
  const std::string place = Obstacle(address.unix_path);
  struct stat info;
  std::string whose;
  std::string group = "its group";
  if (stat(place.c_str(), &info) == 0) {
    group = fmt::format("group {}", GroupName(info.st_gid));
    whose = fmt::format(" (owner {}, {}, mode {:04o})", UserName(info.st_uid), group,
                        info.st_mode & 07777);
  }
  return fmt::format(
      "permission denied on {}{}, so {} cannot use the broker at {}{}. Ask its operator to let {} "
      "in "
      "(muster-broker --socket-mode 0660), or name another broker with --broker or MUSTER_BROKER.",
      place, whose, UserName(geteuid()), address.text, OriginText(address), group);
}

std::string Remedy(const rpc::Address& address) {
  struct stat info;
  if (address.is_tls) {
    return "Is the broker running there, and does it listen on that port (muster-broker "
           "--tls-listen)?";
  }
  if (address.unix_path.empty()) {
    return "Is the broker running there, and does it listen on that port (muster-broker --listen)?";
  }
  if (stat(address.unix_path.c_str(), &info) != 0) {
    return "There is no such socket: start the broker (muster-broker --state-dir DIR serves "
           "DIR/broker.sock), or name another one with --broker or MUSTER_BROKER.";
  }
  if (IsNoSocket(address)) {
    return S_ISDIR(info.st_mode) ? "That is a directory; the socket is DIR/broker.sock."
                                 : "That is not a socket.";
  }
  if (ConnectError(address) == 0) {
    return "It takes the connection and says nothing: it is stopped or very busy; look at its log.";
  }
  return "The socket is there, but no broker answers on it: start it again, or look at its log.";
}

}  // namespace

absl::Status EndOfCall(const grpc::Status& end) {
  absl::Status status = rpc::FromGrpc(end);
  if (!absl::IsCancelled(status) || contract::GetErrorInfo(status).has_value()) return status;
  return absl::UnavailableError("the broker cut the call off");
}

bool IsTransportError(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) &&
         !contract::GetErrorInfo(status).has_value();
}

bool MayPass(const absl::Status& status) {
  return (absl::IsUnavailable(status) && IsTransportError(status)) ||
         contract::GetRetryDelay(status).has_value();
}

absl::Duration RetryDelay(const absl::Status& status) {
  return contract::GetRetryDelay(status).value_or(absl::ZeroDuration());
}

absl::Status Explain(const absl::Status& status, const rpc::Address& address,
                     absl::Duration timeout) {
  if (!IsTransportError(status)) return status;
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(fmt::format("the broker at {} did not answer within {}",
                                                   address.text,
                                                   ToStd(absl::FormatDuration(timeout))));
  }
  if (IsForbidden(address)) return absl::PermissionDeniedError(ForbiddenText(address));
  if (absl::Status fault = CheckTrust(address); !fault.ok()) return fault;
  absl::Status error = absl::UnavailableError(
      fmt::format("cannot reach the broker at {}{}: {}. {}", address.text, OriginText(address),
                  Cause(ToStd(status.message())), Remedy(address)));
  // gRPC says this, and only this, of a call that found no connection to go over.
  if (absl::StrContains(status.message(), "failed to connect to all addresses")) {
    error.SetPayload(kNeverSentUrl, absl::Cord());
  }
  return error;
}

bool WasNeverSent(const absl::Status& error) { return error.GetPayload(kNeverSentUrl).has_value(); }

absl::Status AsMaybeSent(absl::Status error) {
  error.ErasePayload(kNeverSentUrl);
  return error;
}

absl::Duration Patience(const absl::Status& status, const rpc::Address& address, bool was_answered,
                        const ClientOptions& options, absl::Duration patience) {
  if (was_answered || !IsTransportError(status)) return patience;
  if (IsForbidden(address) || IsNoSocket(address) || !CheckTrust(address).ok())
    return absl::ZeroDuration();
  return IsAbsent(address) ? std::min(patience, options.absent_patience) : patience;
}

absl::Status Interruption(const absl::Status& status, const rpc::Address& address,
                          bool was_answered) {
  if (!IsTransportError(status)) return status;
  return absl::Status(status.code(),
                      fmt::format("{} the broker at {}: {}", was_answered ? "lost" : "cannot reach",
                                  address.text, Cause(ToStd(status.message()))));
}

}  // namespace muster::client
