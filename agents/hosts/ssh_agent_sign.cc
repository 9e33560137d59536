#include "agents/hosts/ssh_agent_sign.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agents/hosts/fd.h"
#include "agents/hosts/ssh_wire.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// The source is draft-miller-ssh-agent, sections 4.5 and 7.
constexpr char kSignRequest = 13;
constexpr char kSignResponse = 14;
constexpr uint32_t kSignBySha256 = 2;
// A signature of a key of 16384 bits is 2 KiB.
constexpr size_t kMaxAnswerBytes = 64 << 10;

absl::Status Fault(const std::string& socket, const char* what) {
  return absl::UnavailableError(
      fmt::format("ssh-agent at \"{}\": {}: {}", socket, what, std::strerror(errno)));
}

absl::StatusOr<Fd> Connect(const std::string& path, absl::Duration timeout) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return Fault(path, "connecting");
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = absl::ToTimeval(std::max(timeout, absl::Milliseconds(1)));
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(fd.get(), SOL_SOCKET, option, &limit, sizeof limit);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Fault(path, "connecting");
  return fd;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool ReceiveAll(int fd, std::string* bytes) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t got = recv(fd, bytes->data() + done, bytes->size() - done, 0);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::string> SignWithAgent(const std::string& socket, std::string_view public_key,
                                          std::string_view data, absl::Duration timeout) {
  const absl::StatusOr<Fd> fd = Connect(socket, timeout);
  if (!fd.ok()) return fd.status();
  const std::string request = std::string(1, kSignRequest) + WireString(public_key) +
                              WireString(data) + WireNumber(kSignBySha256);
  if (!SendAll(fd->get(), WireString(request))) return Fault(socket, "asking");
  std::string size_bytes(4, '\0');
  if (!ReceiveAll(fd->get(), &size_bytes)) return Fault(socket, "waiting for its answer");
  const uint32_t size = *WireReader(size_bytes).Number();
  if (size == 0 || size > kMaxAnswerBytes) {
    errno = EMSGSIZE;
    return Fault(socket, "waiting for its answer");
  }
  std::string answer(size, '\0');
  if (!ReceiveAll(fd->get(), &answer)) return Fault(socket, "reading its answer");
  WireReader reader(std::string_view(answer).substr(1));
  const auto blob = answer[0] == kSignResponse ? reader.String() : std::nullopt;
  WireReader signature(blob.value_or(""));
  signature.String();  // the signature's name
  const auto bytes = signature.String();
  if (!bytes.has_value())
    return absl::PermissionDeniedError("ssh-agent does not sign with this RSA key");
  return std::string(*bytes);
}

}  // namespace muster::hosts
