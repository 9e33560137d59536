// Keeps all tokens of a broker: in memory for look-ups, and in a file.
//
// Any thread may use it. Find and List never wait for the disk; Create, Revoke and WriteUses do.
#ifndef MUSTER_BROKER_AUTH_TOKENS_H_
#define MUSTER_BROKER_AUTH_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/auth/token.h"
#include "sync/mutex.h"

namespace muster::auth {

// The time for which a token is good, if its maker does not say.
inline constexpr absl::Duration kDefaultLifetime = absl::Hours(24 * 90);
// No token lives longer, so that a lost one that nobody remembers ends by itself.
inline constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 366);
inline constexpr absl::Duration kMinLifetime = absl::Seconds(1);
// Bytes of a token's name, and of the name of its user.
inline constexpr size_t kMaxNameBytes = 64;
inline constexpr size_t kMaxUserBytes = 256;
// Kept tokens of one user, and of all: enough for each machine and pipeline, and a few MiB of
// memory. Ended ones make room for new ones.
inline constexpr size_t kMaxTokensOfUser = 100;
inline constexpr size_t kMaxTokens = 10'000;

// Begins the user's name of a service account, an identity of a machine or a program that is no
// person. No Unix user has a ':' in the name, and the users of an identity provider begin
// otherwise.
inline constexpr std::string_view kServiceAccountPrefix = "sa:";

class TokenFile;

struct NewToken {
  std::string name;
  std::string user;
  Role role = Role::kNone;
  absl::Duration lifetime = kDefaultLifetime;
  uint64_t maker = 0;  // the token with which it is made; 0: without one
};

struct MadeToken {
  std::shared_ptr<const Token> token;
  std::string text;  // the secret, which nobody can read again
};

enum class Standing : uint8_t { kUnknown, kLive, kExpired, kRevoked };

struct FoundToken {
  Standing standing = Standing::kUnknown;
  std::shared_ptr<const Token> token;  // null: unknown
};

class Tokens {
 public:
  // Reads the tokens from the file, which is made if it is missing. Errors as of TokenFile::Open.
  static absl::StatusOr<std::unique_ptr<Tokens>> Open(const std::string& path,
                                                      std::function<absl::Time()> now);
  ~Tokens();

  // Looks for the token with this text. A live one counts as used now.
  FoundToken Find(std::string_view text) const;
  // Returns the kept tokens, by id.
  std::vector<std::shared_ptr<const Token>> List() const;

  // The request was checked. ALREADY_EXISTS, TOKEN_EXISTS: the user has a live token of this name.
  // RESOURCE_EXHAUSTED, TOO_MANY_TOKENS. UNAUTHENTICATED: the maker has ended. Others: the file.
  absl::StatusOr<MadeToken> Create(const NewToken& asked);
  // Revokes the token, those that were made with it, those made with these, and so on. Returns
  // those that were not revoked before. NOT_FOUND, NO_SUCH_TOKEN. Others: the file.
  absl::StatusOr<std::vector<std::shared_ptr<const Token>>> Revoke(uint64_t id);
  // Writes the times of the last uses that have changed. A crash forgets those since the last call.
  absl::Status WriteUses();

 private:
  Tokens(std::unique_ptr<TokenFile> file, std::function<absl::Time()> now);
  void Add(const std::shared_ptr<Token>& token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the ids of the ended tokens that make room for one more of the user's.
  absl::StatusOr<std::vector<uint64_t>> MakeRoom(const NewToken& asked, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<absl::Time()> now_;
  // Held for a whole change, so that memory and file have the changes in one order.
  Mutex file_mutex_;
  const std::unique_ptr<TokenFile> file_ ABSL_PT_GUARDED_BY(file_mutex_);
  absl::flat_hash_map<uint64_t, int64_t> written_uses_ ABSL_GUARDED_BY(file_mutex_);

  mutable Mutex mutex_;  // taken after file_mutex_, and never held while the disk works
  std::map<uint64_t, std::shared_ptr<Token>> by_id_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<Token>> by_digest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::auth

#endif  // MUSTER_BROKER_AUTH_TOKENS_H_
