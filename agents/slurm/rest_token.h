// The JSON web token by which slurmrestd knows the agent's user.
#ifndef MUSTER_AGENTS_SLURM_REST_TOKEN_H_
#define MUSTER_AGENTS_SLURM_REST_TOKEN_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sync/mutex.h"

namespace muster::slurm {

// Returns the token's end, as it says itself; nothing if it does not say, or is none.
std::optional<absl::Time> TokenEnd(std::string_view token);
// Returns the user for whom it was made; empty if it does not say.
std::string TokenUser(std::string_view token);
// Returns the token in "SLURM_JWT=..." (as `scontrol token` prints it) or alone. INVALID_ARGUMENT:
// it is none.
absl::StatusOr<std::string> ParseToken(std::string_view text);

// The source of tokens. Thread-safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Returns a token that has not ended at `now` (time of day). FAILED_PRECONDITION: there is none,
  // and what to do; UNAVAILABLE: nobody could be asked for one.
  virtual absl::StatusOr<std::string> Get(absl::Time now) = 0;
  // The last token may have been refused: the next one should be another.
  virtual void Doubt() {}
};

// A file, read at each use: only its owner, who is the agent's user or root, may read it. The
// operator renews it.
class TokenFile : public TokenSource {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<std::string> Get(absl::Time now) override;

 private:
  const std::string path_;
};

// `scontrol token`, which is asked again when a fifth of a token's time is left.
class TokenCommand : public TokenSource {
 public:
  // `ask` gets the lifespan that the token should have, and answers with what scontrol prints.
  using Ask = std::function<absl::StatusOr<std::string>(absl::Duration lifespan)>;
  explicit TokenCommand(Ask ask) : ask_(std::move(ask)) {}
  absl::StatusOr<std::string> Get(absl::Time now) override;
  void Doubt() override;

 private:
  const Ask ask_;
  Mutex mutex_;  // also keeps two from asking at once
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time renew_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_REST_TOKEN_H_
