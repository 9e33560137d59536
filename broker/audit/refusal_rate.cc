#include "broker/audit/refusal_rate.h"

namespace muster::audit {

bool RefusalRate::HasPassed(absl::Time now) const {
  // A clock that was put back begins a minute, too.
  return now - minute_ >= absl::Minutes(1) || now < minute_;
}

bool RefusalRate::Admit(const std::string& user, bool has_room, absl::Time now) {
  if (HasPassed(now)) {
    passed_ = Take(now, true);
    minute_ = now;
  }
  const bool is_apart = counts_.size() < kMaxRefusedUsers || counts_.contains(user);
  Count& count = counts_[is_apart ? user : ""];
  const bool is_admitted = has_room && count.admitted < kMaxRefusalsOfUser;
  ++(is_admitted ? count.admitted : count.left_out);
  return is_admitted;
}

RefusalRate::LeftOut RefusalRate::Take(absl::Time now, bool all) {
  LeftOut left_out = std::exchange(passed_, {});
  if (!all && !HasPassed(now)) return left_out;
  for (const auto& [user, count] : counts_) {
    if (count.left_out > 0) left_out.emplace_back(user, count.left_out);
  }
  counts_.clear();
  return left_out;
}

}  // namespace muster::audit
