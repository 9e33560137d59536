#include "broker/core/placement/kept_room.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace muster::core::placement {
namespace {

// Memory decides nothing where that of the nodes is not known.
Amounts Known(Amounts amounts, const KeptRoom& kept) {
  if (kept.usable.memory_bytes == 0) amounts.memory_bytes = 0;
  return amounts;
}

// The part of `there` that counts for a job that asks for so much: of a resource that it does not
// take it can leave too little to nobody.
Amounts OfAsked(Amounts there, const Amounts& asked) {
  if (asked.cpu_millis == 0) there.cpu_millis = 0;
  if (asked.memory_bytes == 0) there.memory_bytes = 0;
  if (asked.gpu_millis == 0) there.gpu_millis = 0;
  return there;
}

}  // namespace

void ExpectStart(std::vector<EndOfRun> runs, absl::Time now, KeptRoom* kept) {
  std::sort(runs.begin(), runs.end(),
            [](const EndOfRun& a, const EndOfRun& b) { return a.at < b.at; });
  Amounts taken;
  for (const EndOfRun& run : runs) taken = taken + Known(run.amounts, *kept);
  const Amounts need = Known(kept->need, *kept);
  absl::Time at = now;
  auto next = runs.begin();
  while (!IsWithin(taken + need, kept->usable) && next != runs.end()) {
    at = std::max(at, next->at);
    taken = taken - Known(next->amounts, *kept);
    ++next;
  }
  kept->start = IsWithin(taken + need, kept->usable) ? at : absl::InfiniteFuture();
  kept->spare = {};
  if (kept->start == absl::InfiniteFuture()) return;
  // Others of the same time end as well.
  for (; next != runs.end() && next->at <= at; ++next) taken = taken - Known(next->amounts, *kept);
  kept->spare = kept->usable - (taken + need);
}

Amounts DemandBeside(const KeptRoom& kept, const Requirements& job) {
  Amounts amounts = Known(DemandOf(job), kept);
  const std::string type = absl::AsciiStrToLower(job.gpu_type);
  const bool is_of_another = !kept.gpu_type.empty() && !type.empty() && kept.gpu_type != type;
  if (is_of_another || kept.need.gpu_millis == 0) amounts.gpu_millis = 0;
  return amounts;
}

bool EndsInTime(const KeptRoom& kept, const Requirements& job, absl::Time now) {
  if (kept.start == absl::InfiniteFuture() || !job.time_limit_s) return false;
  return now + absl::Seconds(*job.time_limit_s) + kLaunchAndEnd <= kept.start;
}

bool LeavesRoom(const KeptRoom& kept, const Requirements& job, Amounts taken, absl::Time now) {
  if (EndsInTime(kept, job, now)) return true;
  const Amounts asked = DemandBeside(kept, job);
  const Amounts need = OfAsked(Known(kept.need, kept), asked);
  if (kept.is_there) taken = taken - kept.need;
  const Amounts now_taken = OfAsked(Known(taken, kept), asked);
  // The rest is enough for the kept job already, or once it is expected to start.
  if (IsWithin(now_taken + asked + need, kept.usable)) return true;
  return kept.start != absl::InfiniteFuture() && IsWithin(asked, kept.spare);
}

}  // namespace muster::core::placement
