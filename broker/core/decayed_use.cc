#include "broker/core/decayed_use.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::core {

void DecayedUse::Advance(double now, double half_life) {
  if (now <= at) return;
  const double decay = (now - at) * std::numbers::ln2 / half_life;
  const double keep = std::exp(-decay);
  const double gain = -std::expm1(-decay) * half_life / std::numbers::ln2;
  for (size_t i = 0; i < kResources; ++i) used[i] = used[i] * keep + demand[i] * gain;
  at = now;
}

void DecayedUse::Add(const Amounts& demand_of_run) { AddTo(demand_of_run, &demand); }

void DecayedUse::Remove(const Amounts& demand_of_run) {
  for (size_t i = 0; i < kResources; ++i) demand[i] -= demand_of_run[i];
}

double DominantShare(const DecayedUse& use, const Amounts& totals, double half_life) {
  // A use that never changes comes to this many seconds of it.
  const double seconds = half_life / std::numbers::ln2;
  double share = 0;
  for (size_t i = 0; i < kResources; ++i) {
    if (totals[i] > 0) share = std::max(share, use.used[i] / (totals[i] * seconds));
  }
  return share;
}

}  // namespace muster::core
