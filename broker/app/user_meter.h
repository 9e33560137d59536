// Bounds how much of something each user takes in a time: calls, bytes of uploads. Any thread.
#ifndef MUSTER_BROKER_APP_USER_METER_H_
#define MUSTER_BROKER_APP_USER_METER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/app/principal.h"
#include "sync/mutex.h"

namespace muster::broker {

// Returns whether the bounds of one user hold for the principal. They do not hold for an admin
// without a credential, who is the owner of the broker's machine, nor for agents: each has a
// certificate that an admin gave, and one connection.
bool HasBounds(const Principal& principal);

// It is above what an honest person's scripts need, and below what a broker can do: one who takes
// all of it leaves room for everybody else.
struct UserBounds {
  uint64_t max_calls_per_second = 5'000;
  size_t max_calls_in_flight = 1'000;  // calls and streams
  // Less than half of what all files may have (files.max_total_bytes). A file that no unfinished
  // job names may go after an hour.
  uint64_t max_upload_bytes_per_hour = uint64_t{20} << 30;
};

class UserMeter {
 public:
  // Users that are remembered, at about 100 bytes each.
  static constexpr size_t kMaxUsers = 10'000;

  // A user who was quiet for a while may take `most` at once, and gets `most` again in `refill`.
  UserMeter(uint64_t most, absl::Duration refill);

  // Takes so much and returns zero, or takes nothing and returns how long the user has to wait for
  // it. More than `most` is taken as `most`.
  absl::Duration Take(const std::string& user, uint64_t amount, absl::Time now);

 private:
  struct Account {
    double left;
    absl::Time at;
  };

  // Adds what the time since then is worth.
  void Refill(absl::Time now, Account* account) const;

  const double most_;
  const double per_second_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Account> by_user_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_USER_METER_H_
