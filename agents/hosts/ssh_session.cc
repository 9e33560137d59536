#include "agents/hosts/ssh_session.h"

#include <libssh2.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "agents/hosts/ssh_auth.h"
#include "agents/hosts/steady_now.h"
#include "agents/hosts/tcp_connect.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Types that libssh2 1.10 can verify, the best first. Its ssh-rsa means SHA-1, which OpenSSH 8.8
// and later no longer offer.
constexpr std::array<std::string_view, 5> kHostKeyTypes = {
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"};

// Frees what a closed connection has left; libssh2 may want several calls for it.
constexpr int kMaxFreeCalls = 100;

void InitLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { libssh2_init(0); });
}

}  // namespace

SshSession::SshSession(LoginHost host, Fd fd, int stop_fd)
    : host_(std::move(host)), fd_(std::move(fd)), stop_fd_(stop_fd), last_received_(SteadyNow()) {
  InitLibrary();
  session_ = libssh2_session_init_ex(nullptr, nullptr, nullptr, this);
  if (session_ == nullptr) return;
  libssh2_session_set_blocking(session_, 0);
  libssh2_session_callback_set(session_, LIBSSH2_CALLBACK_RECV, reinterpret_cast<void*>(&Receive));
}

SshSession::~SshSession() {
  if (session_ == nullptr) return;
  // The host sees the connection close; a polite goodbye might have to wait for it.
  shutdown(fd_.get(), SHUT_RDWR);
  for (int i = 0; i < kMaxFreeCalls; ++i) {
    if (libssh2_session_free(session_) != LIBSSH2_ERROR_EAGAIN) break;
  }
}

ssize_t SshSession::Receive(int fd, void* buffer, size_t length, int flags, void** abstract) {
  auto* self = static_cast<SshSession*>(*abstract);
  const ssize_t bytes = recv(fd, buffer, length, flags);
  if (bytes > 0) {
    self->bytes_received_ += static_cast<uint64_t>(bytes);
    self->last_received_ = SteadyNow();
    // sshd keeps its next small packet back until it hears that this one has come, and the kernel
    // would tell it after 40 ms only. The option lasts for moments.
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
    return bytes;
  }
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return -EAGAIN;
  self->is_broken_ = true;
  return bytes < 0 ? -errno : 0;
}

bool SshSession::is_sending() const {
  return (libssh2_session_block_directions(session_) & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
}

short SshSession::poll_events() const {
  return static_cast<short>(POLLIN | (is_sending() ? POLLOUT : 0));
}

absl::Status SshSession::Fault(std::string_view what) const {
  char* words = nullptr;
  const int code = libssh2_session_last_error(session_, &words, nullptr, 0);
  const std::string_view text = words == nullptr ? "" : words;
  return absl::UnavailableError(
      fmt::format("{}: {}: {} (libssh2 {})", host_.ToString(), what,
                  is_broken_ ? std::string_view("the connection has ended") : text, code));
}

absl::StatusOr<int> SshSession::Repeat(std::string_view what, absl::Duration timeout,
                                       const std::function<int()>& call) {
  const absl::Duration until = SteadyNow() + timeout;
  while (true) {
    const int rc = call();
    if (rc != LIBSSH2_ERROR_EAGAIN) return rc;
    const absl::Status status = WaitFor(fd_.get(), poll_events(), until, stop_fd_);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::UnavailableError(fmt::format("{}: {}: not within {}", host_.ToString(), what,
                                                absl::FormatDuration(timeout)));
    }
    if (!status.ok()) return status;
  }
}

absl::StatusOr<std::unique_ptr<SshSession>> SshSession::Open(const SshConfig& config,
                                                             const HostKeys& host_keys,
                                                             const LoginHost& host, int stop_fd,
                                                             WayIn::Reached* reached) {
  WayIn::Reached ignored;
  if (reached == nullptr) reached = &ignored;
  *reached = WayIn::Reached::kNothing;
  absl::StatusOr<Fd> fd = TcpConnect(host, config.connect_timeout, stop_fd);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<SshSession> session(new SshSession(host, *std::move(fd), stop_fd));
  if (session->session_ == nullptr) return absl::UnavailableError("libssh2 has no memory");
  *reached = WayIn::Reached::kHost;
  if (absl::Status status = session->Handshake(config, host_keys); !status.ok()) return status;
  *reached = WayIn::Reached::kHostKey;
  if (absl::Status status = LogIn(config, session.get()); !status.ok()) return status;
  *reached = WayIn::Reached::kUser;
  return session;
}

absl::Status SshSession::Handshake(const SshConfig& config, const HostKeys& host_keys) {
  if (absl::Status status = PreferKnownKeys(host_keys); !status.ok()) return status;
  const absl::StatusOr<int> rc = Repeat("the SSH handshake", config.handshake_timeout, [this] {
    return libssh2_session_handshake(session_, fd_.get());
  });
  if (!rc.ok()) return rc.status();
  if (*rc != 0) {
    const absl::Status fault = Fault("the SSH handshake failed");
    const bool is_algorithms =
        !is_broken_ && (*rc == LIBSSH2_ERROR_KEX_FAILURE || *rc == LIBSSH2_ERROR_METHOD_NONE);
    if (!is_algorithms) return fault;
    return absl::FailedPreconditionError(fmt::format(
        "{}: it and this libssh2 have no algorithms in common; it needs a host key of the type "
        "ed25519 or ecdsa",
        std::string(fault.message().data(), fault.message().size())));
  }
  size_t length = 0;
  int type = 0;
  const char* key = libssh2_session_hostkey(session_, &length, &type);
  if (key == nullptr) return Fault("it shows no host key");
  return host_keys.Check(host_, {key, length});
}

absl::Status SshSession::PreferKnownKeys(const HostKeys& host_keys) {
  std::string preference;
  const auto add = [&](std::string_view type) {
    if (preference.find(type) != std::string::npos) return;
    preference += fmt::format("{}{}", preference.empty() ? "" : ",", type);
  };
  for (const std::string& type : host_keys.TypesFor(host_)) {
    if (std::find(kHostKeyTypes.begin(), kHostKeyTypes.end(), type) != kHostKeyTypes.end()) {
      add(type);
    }
  }
  for (std::string_view type : kHostKeyTypes) add(type);
  if (libssh2_session_method_pref(session_, LIBSSH2_METHOD_HOSTKEY, preference.c_str()) == 0) {
    return absl::OkStatus();
  }
  return Fault("its host key's type cannot be asked for");
}

}  // namespace muster::hosts
