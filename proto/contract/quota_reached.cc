#include "contract/quota_reached.h"

#include <fmt/format.h>

#include <map>

#include "absl/time/time.h"
#include "contract/errors.h"
#include "contract/sentences.h"

namespace muster::contract {
namespace {

using What = QuotaReached::What;

// Jobs of a project end, and start, no faster than this matters.
constexpr absl::Duration kRetryAtQuota = absl::Seconds(10);

std::string WhatOf(const QuotaReached& fact) {
  switch (fact.what) {
    case What::kQueuedJobs:
      return "queued jobs";
    case What::kActiveRuns:
      return "active runs";
    case What::kGpus:
      break;
  }
  return fact.gpu_type.empty() ? "gpus" : fmt::format("gpus of type {}", fact.gpu_type);
}

// Returns GPUs as people count them.
std::string Amount(const QuotaReached& fact, uint64_t amount) {
  constexpr uint64_t kWhole = 1000;
  if (fact.what != What::kGpus) return fmt::format("{}", amount);
  if (amount % kWhole == 0) return fmt::format("{}", amount / kWhole);
  return fmt::format("{:g}", static_cast<double>(amount) / kWhole);
}

std::string Remedy(const QuotaReached& fact) {
  return fmt::format("an admin of the broker changes the quota: muster project set {} --{}",
                     fact.project, fact.user.empty() ? "quota" : "user-quota");
}

}  // namespace

std::string QuotaName(const QuotaReached& fact) {
  return fact.user.empty()
             ? fmt::format("{} of project {}", WhatOf(fact), fact.project)
             : fmt::format("{} of user {} in project {}", WhatOf(fact), fact.user, fact.project);
}

v1::StateReason QuotaReason(const QuotaReached& fact) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_QUOTA_REACHED);
  reason.set_subject(QuotaName(fact));
  reason.set_detail(fmt::format("{} of {} in use, the job needs {}", Amount(fact, fact.present),
                                Amount(fact, fact.max), Amount(fact, fact.asked)));
  reason.set_remedy(Remedy(fact));
  PutSentence(&reason);
  return reason;
}

absl::Status QuotaStatus(const QuotaReached& fact) {
  const std::string name = QuotaName(fact);
  std::map<std::string, std::string> metadata = {{"quota", name},
                                                 {"project", fact.project},
                                                 {"max", Amount(fact, fact.max)},
                                                 {"present", Amount(fact, fact.present)},
                                                 {"asked", Amount(fact, fact.asked)}};
  if (!fact.user.empty()) metadata["user"] = fact.user;
  if (fact.what == What::kGpus) {
    return Error(absl::StatusCode::kFailedPrecondition, "BEYOND_QUOTA",
                 fmt::format("the job needs {} GPUs at the same time, and the quota of {} is {}; "
                             "ask for fewer; {}",
                             Amount(fact, fact.asked), name, Amount(fact, fact.max), Remedy(fact)),
                 std::move(metadata));
  }
  absl::Status status = RetryableError(
      absl::StatusCode::kResourceExhausted, "QUOTA_REACHED",
      fmt::format(
          "the quota of {} is {}: {} are queued, and the request has {} more; submit fewer, "
          "or wait until some have started; {}",
          name, fact.max, fact.present, fact.asked, Remedy(fact)),
      kRetryAtQuota);
  SetMetadata(std::move(metadata), &status);
  return status;
}

}  // namespace muster::contract
