// Decides what follows each try to deliver an event. Takes no clock: the time comes in. Belongs to
// one thread.
#ifndef MUSTER_BROKER_NOTIFY_RETRIES_H_
#define MUSTER_BROKER_NOTIFY_RETRIES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "rpc/backoff.h"

namespace muster::notify {

// The waits between two tries: half to all of a second, of two, of four and so on.
inline constexpr absl::Duration kFirstWait = absl::Seconds(1);
// A receiver that comes back hears of the first event within this time.
inline constexpr absl::Duration kMaxWait = absl::Minutes(5);
// A receiver may ask for a longer wait (Retry-After), up to this.
inline constexpr absl::Duration kMaxRetryAfter = absl::Hours(1);
// An event that the receiver does not take for so long, since its first try, is given up: those
// behind it wait.
inline constexpr absl::Duration kRetryFor = absl::Hours(24);
// An answer that refuses the event, and would probably do so again, gives it up after so many ...
inline constexpr int kMaxRefusals = 5;
// ... once the first try is so long ago: a proxy answers 404 or 403 for a receiver that is being
// replaced. 410 (Gone) and 413 (Content Too Large) are about the event alone, and do not wait.
inline constexpr absl::Duration kRefusedFor = absl::Minutes(10);

// The outcome of a try.
struct Outcome {
  int status = 0;  // of the answer over HTTP; 0: there was none
  std::optional<absl::Duration> retry_after = {};
};

// True if the receiver has the event (2xx).
inline bool IsTaken(const Outcome& outcome) {
  return outcome.status >= 200 && outcome.status < 300;
}

class Retries {
 public:
  enum class Verdict : uint8_t { kDelivered, kRetry, kGiveUp };
  struct Next {
    Verdict verdict = Verdict::kDelivered;
    absl::Duration wait = {};  // before the next try, with kRetry
  };

  // Begins with an event, at its first try.
  void Begin(absl::Time now);
  Next After(const Outcome& outcome, absl::Time now);

 private:
  rpc::Backoff backoff_{kFirstWait, kMaxWait};
  absl::Time begun_;
  int refusals_ = 0;
};

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_RETRIES_H_
