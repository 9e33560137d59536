#include "contract/launch_refusals.h"

#include <fmt/format.h>

#include <algorithm>

#include "contract/failure_causes.h"
#include "contract/micros.h"
#include "contract/rfc3339.h"
#include "contract/sentences.h"
#include "contract/slurm_refusals.h"

namespace muster::contract {
namespace {

bool IsOfARefusal(v1::FailureCode code) {
  switch (code) {
    case v1::FAILURE_CODE_LAUNCH_REFUSED:
    case v1::FAILURE_CODE_DOES_NOT_FIT:
    case v1::FAILURE_CODE_GIVEN_UP_BY_QUEUE:
    case v1::FAILURE_CODE_NO_CONTAINERS:
    case v1::FAILURE_CODE_FILES_NOT_TAKEN:
      return true;
    default:
      return false;
  }
}

bool LiesInTheJob(const v1::Failure& failure) {
  if (failure.remedy() == RemedyFor(FailureCause::kSecretMissing)) return true;
  const SlurmRefusal* known = FindSlurmRefusal(failure.detail());
  return known != nullptr && known->is_of_job;
}

absl::Time EndOf(const v1::Run& run) { return absl::FromUnixMicros(Micros(run.end_time())); }

}  // namespace

bool MayGoElsewhere(const v1::Run& ended) {
  return ended.state() == v1::RUN_STATE_FAILED && !ended.has_start_time() &&
         IsOfARefusal(ended.failure().code()) && !LiesInTheJob(ended.failure());
}

void NoteRefusal(const v1::Run& refused, std::vector<RefusingCluster>* known) {
  auto at = std::find_if(known->begin(), known->end(), [&](const RefusingCluster& one) {
    return one.cluster == refused.cluster();
  });
  if (at == known->end()) at = known->insert(at, RefusingCluster{.cluster = refused.cluster()});
  at->run = refused.number();
  ++at->times;
  at->passes = refused.failure().retriable();
  absl::Duration wait = at->passes ? kAskedAgainIfItPasses : kAskedAgain;
  const absl::Duration most = at->passes ? kLatestAskedAgainIfItPasses : kLatestAskedAgain;
  for (uint32_t before = 1; before < at->times && wait < most; ++before) wait *= 2;
  at->until = EndOf(refused) + std::min(wait, most);
}

std::vector<RefusingCluster> RefusalsOf(const v1::Job& job) {
  std::vector<RefusingCluster> refusals;
  for (const v1::Run& run : job.runs()) {
    if (MayGoElsewhere(run)) NoteRefusal(run, &refusals);
  }
  return refusals;
}

v1::StateReason RefusedThere(const RefusingCluster& refusing, const v1::Failure& failure) {
  v1::StateReason reason =
      MakeReason(v1::STATE_REASON_CODE_CANNOT_START,
                 {.detail = fmt::format("it refused run {}: {}", refusing.run, failure.message()),
                  .cluster = refusing.cluster,
                  .remedy = failure.remedy()});
  AddToSentence(fmt::format("it is asked again from {} on", Rfc3339(refusing.until)), &reason);
  reason.mutable_until()->set_seconds(absl::ToUnixSeconds(refusing.until));
  return reason;
}

std::string GoesElsewhere(const v1::Run& refused, absl::Time until) {
  return fmt::format(
      "another cluster may take it, because cluster {} refused run {} ({}); that one is asked "
      "again from {} on",
      refused.cluster(), refused.number(), refused.failure().message(), Rfc3339(until));
}

}  // namespace muster::contract
