// The use of resources over the recent past. Pure.
#ifndef MUSTER_BROKER_CORE_DECAYED_USE_H_
#define MUSTER_BROKER_CORE_DECAYED_USE_H_

#include "broker/core/amounts.h"

namespace muster::core {

// The integral of a demand over time, in which what was used a half-life ago counts half. Times and
// half-lives are seconds.
struct DecayedUse {
  Amounts used = {};    // as of `at`, in amounts times seconds
  Amounts demand = {};  // of the runs since then
  double at = 0;

  void Advance(double now, double half_life);
  void Add(const Amounts& demand_of_run);
  void Remove(const Amounts& demand_of_run);
};

// Returns the largest part of a total that was in use, 0 to 1, over the time that counts. Totals
// that are zero are left out.
double DominantShare(const DecayedUse& use, const Amounts& totals, double half_life);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_DECAYED_USE_H_
