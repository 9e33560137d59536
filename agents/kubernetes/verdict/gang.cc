#include "agents/kubernetes/verdict/gang.h"

#include <algorithm>
#include <string>

#include "agents/kubernetes/verdict/explain_failure.h"
#include "contract/failures.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

std::string WhyUnscheduled(const PodObject& pod) {
  const Condition* unscheduled = FindUnscheduled(pod);
  return unscheduled == nullptr ? "not scheduled yet"
                                : unscheduled->reason + ": " + unscheduled->message;
}

}  // namespace

bool HasOwnGangScheduler(const v1::JobSpec& spec) {
  return !spec.kubernetes().queue().empty() ||
         spec.kubernetes().gang() != v1::KUBERNETES_GANG_UNSPECIFIED;
}

std::optional<v1::Failure> FindStuckGang(const RunFacts& facts, size_t pods, absl::Duration grace) {
  if (grace == absl::ZeroDuration()) return std::nullopt;
  const PodObject* waits = nullptr;
  size_t placed = 0;
  absl::Time since = absl::InfinitePast();
  if (facts.job.has_value() && facts.job->is_suspended) return std::nullopt;
  for (const PodObject& pod : facts.pods) {
    if (pod.deletion_time.has_value()) continue;  // another takes its place
    if (pod.HasEnded()) return std::nullopt;      // the Job controller decides what follows
    if (!pod.node.empty()) ++placed;
    if (pod.node.empty() && waits == nullptr) waits = &pod;
    since = std::max(since, pod.created.value_or(facts.now));
  }
  const bool is_whole = placed >= pods;
  if (is_whole || placed == 0 || facts.now - since < grace) return std::nullopt;
  v1::Failure failure = contract::MakeFailure(
      v1::FAILURE_CODE_PLACED_IN_PART, v1::FAILURE_CLASS_INFRA,
      {.detail = waits == nullptr ? "" : WhyUnscheduled(*waits),
       .subject = waits == nullptr ? "" : "pod " + waits->name.name,
       .meaning = waits == nullptr ? "Kubernetes did not make the others"
                                   : fmt::format("pod {} found none", waits->name.name),
       .phase = v1::FAILURE_PHASE_QUEUE,
       .is_retriable = true});
  failure.set_placed_nodes(static_cast<uint32_t>(placed));
  failure.set_requested_nodes(static_cast<uint32_t>(pods));
  failure.mutable_waited()->set_seconds(absl::ToInt64Seconds(facts.now - since));
  contract::PutSentence(&failure);
  return failure;
}

}  // namespace muster::kubernetes
