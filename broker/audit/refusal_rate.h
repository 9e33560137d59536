// Bounds the records of refused calls: whoever tries many credentials must neither fill the disk
// nor hide what others try. Pure; one thread at a time.
#ifndef MUSTER_BROKER_AUDIT_REFUSAL_RATE_H_
#define MUSTER_BROKER_AUDIT_REFUSAL_RATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace muster::audit {

// Refused calls of one user that are recorded in a minute. Callers whom nobody knows share one
// count.
inline constexpr uint64_t kMaxRefusalsOfUser = 60;
// At most this many users are counted apart in a minute; others are counted with the unknown ones.
inline constexpr size_t kMaxRefusedUsers = 1000;

class RefusalRate {
 public:
  // A user and the number of its refused calls that were left out.
  using LeftOut = std::vector<std::pair<std::string, uint64_t>>;

  // Counts a refused call; false if it is to be left out. `has_room`: false leaves it out anyway.
  bool Admit(const std::string& user, bool has_room, absl::Time now);
  // Takes the calls that were left out in past minutes. `all`: also in the present one.
  LeftOut Take(absl::Time now, bool all);

 private:
  struct Count {
    uint64_t admitted = 0;
    uint64_t left_out = 0;
  };

  bool HasPassed(absl::Time now) const;

  absl::Time minute_ = absl::InfinitePast();
  std::map<std::string, Count> counts_;  // since minute_
  LeftOut passed_;
};

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_REFUSAL_RATE_H_
