// A token as the broker knows it: everything but its secret.
#ifndef MUSTER_BROKER_AUTH_TOKEN_H_
#define MUSTER_BROKER_AUTH_TOKEN_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "broker/auth/role.h"

namespace muster::auth {

struct TokenRecord {
  uint64_t id = 0;     // of this broker, never used again
  std::string digest;  // SHA-256 of the token's text, 32 bytes
  std::string name;    // one live token of a user has it
  std::string user;
  Role role = Role::kNone;
  uint64_t maker = 0;  // the token with which it was made; 0: without one
  int64_t created_micros = 0;
  int64_t expires_micros = 0;
  int64_t used_micros = 0;     // the last use; 0: none
  int64_t revoked_micros = 0;  // 0: not revoked
};

// The token in memory. Its holders see when it ends. Any thread.
class Token {
 public:
  explicit Token(TokenRecord record)
      : record_(std::move(record)),
        used_micros_(record_.used_micros),
        revoked_micros_(record_.revoked_micros) {}

  // As it was when the broker read or made it; the last use and the revocation are below.
  const TokenRecord& record() const { return record_; }
  int64_t used_micros() const { return used_micros_.load(std::memory_order_relaxed); }
  int64_t revoked_micros() const { return revoked_micros_.load(); }

  bool is_revoked() const { return revoked_micros() != 0; }
  bool IsLive(absl::Time now) const {
    return !is_revoked() && absl::ToUnixMicros(now) < record_.expires_micros;
  }

  void Use(int64_t micros) { used_micros_.store(micros, std::memory_order_relaxed); }
  void Revoke(int64_t micros) { revoked_micros_.store(micros); }

 private:
  const TokenRecord record_;
  std::atomic<int64_t> used_micros_;
  std::atomic<int64_t> revoked_micros_;
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_TOKEN_H_
