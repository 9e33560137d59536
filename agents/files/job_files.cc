#include "agents/files/job_files.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/core/launch_refusal.h"
#include "agents/core/proto_time.h"
#include "agents/files/fetch_tree.h"
#include "agents/hosts/steady_now.h"
#include "contract/failures.h"
#include "contract/text.h"

namespace muster::uploads {
namespace {

// The pause before a launch whose files could not be had: a disk that cannot be read answers at
// once, again and again.
constexpr absl::Duration kFetchAgain = absl::Seconds(5);

v1::Evidence EvidenceOf(const std::string& message) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  *evidence.mutable_observed_at() = agents::ToProto(absl::Now());
  evidence.set_detail(message);
  return evidence;
}

struct Refusal {
  v1::FailureClass failure_class;
  contract::FailureCause cause = contract::FailureCause::kNone;
};

Refusal RefusalFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return {v1::FAILURE_CLASS_CONFIG, contract::FailureCause::kUploadGone};
    case absl::StatusCode::kInvalidArgument:
      return {v1::FAILURE_CLASS_CONFIG, contract::FailureCause::kUploadInvalid};
    case absl::StatusCode::kResourceExhausted:
      return {v1::FAILURE_CLASS_INFRA, contract::FailureCause::kAgentFull};
    default:
      return {v1::FAILURE_CLASS_INFRA};
  }
}

}  // namespace

absl::StatusOr<LocalFiles> JobFiles::Fetch(const v1::JobSpec& spec, absl::Duration patience) {
  const absl::Duration until = hosts::SteadyNow() + patience;
  absl::StatusOr<v1::FileTree> joined = FetchTree(spec, cache_, patience);
  if (!joined.ok()) return joined.status();
  std::vector<Wanted> wanted;
  for (const v1::FileTreeEntry& entry : joined->entries()) {
    if (entry.kind() == v1::FILE_KIND_FILE)
      wanted.push_back({entry.sha256(), entry.size_bytes(), /*is_exact=*/true});
  }
  absl::StatusOr<FileCache::Hold> hold = cache_->Fetch(wanted, until - hosts::SteadyNow());
  if (!hold.ok()) return hold.status();
  return LocalFiles{*std::move(joined), *std::move(hold)};
}

agents::LaunchOutcome NotLaunched(const absl::Status& status) {
  const std::string words(ToStd(status.message()));
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    agents::LaunchOutcome outcome;
    outcome.kind = agents::LaunchOutcome::Kind::kDeferred;
    outcome.retry_after = kFetchAgain;
    outcome.evidence = EvidenceOf("the files that the job brings along are not there: " + words);
    return outcome;
  }
  const Refusal refusal = RefusalFor(status);
  return agents::RefusedAs(
      contract::MakeFailure(v1::FAILURE_CODE_FILES_NOT_BROUGHT, refusal.failure_class,
                            {.detail = words, .cause = refusal.cause}),
      EvidenceOf(""));
}

}  // namespace muster::uploads
