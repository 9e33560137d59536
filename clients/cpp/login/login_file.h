// The file in which a login at an identity provider is kept. It has secrets: only its owner may
// read it.
#ifndef MUSTER_CLIENTS_CPP_LOGIN_LOGIN_FILE_H_
#define MUSTER_CLIENTS_CPP_LOGIN_LOGIN_FILE_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::client {

struct Login {
  std::string broker{};  // the address of the broker to which the tokens go, and to no other
  std::string issuer{};
  std::string client_id{};
  std::string ca{};  // certificates in PEM that vouch for the provider; empty: those of the system
  std::string token_endpoint{};
  std::string revocation_endpoint{};  // empty: the provider has none
  std::string id_token{};             // what the broker gets
  std::string refresh_token{};        // for the next ones; empty: there are none
};

// NOT_FOUND: there is no login. INVALID_ARGUMENT: others may read the file, or it is damaged.
absl::StatusOr<Login> ReadLogin(const std::string& path);
// Puts the file in place as a whole; its directory is made.
absl::Status WriteLogin(const std::string& path, const Login& login);

// Returns the end of an ID token, which is read without a check: only the broker has to check it.
// The past: it cannot be read.
absl::Time EndOfToken(std::string_view id_token);

// Keeps other processes from the login until it is destroyed, so that a refresh token is used once.
class LoginLock {
 public:
  // Longer than a holder's exchange with its provider takes.
  static constexpr absl::Duration kPatience = absl::Seconds(30);

  // UNAVAILABLE: another process holds it all the time.
  static absl::StatusOr<LoginLock> Take(const std::string& path);
  LoginLock(LoginLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LoginLock(const LoginLock&) = delete;
  LoginLock& operator=(LoginLock&&) = delete;
  ~LoginLock();

 private:
  explicit LoginLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOGIN_LOGIN_FILE_H_
