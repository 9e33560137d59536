#include "agents/kubernetes/verdict/gang.h"

#include <algorithm>
#include <string>

#include "agents/kubernetes/verdict/explain_failure.h"
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
  v1::Failure failure;
  failure.set_failure_class(v1::FAILURE_CLASS_INFRA);
  failure.set_phase(v1::FAILURE_PHASE_QUEUE);
  failure.set_retriable(true);
  failure.set_message(fmt::format(
      "{} of {} pods had nodes and kept them from others for {}, while {}; all were taken away, so "
      "that two halves do not block each other",
      placed, pods, absl::FormatDuration(grace),
      waits == nullptr
          ? std::string("Kubernetes did not make the others")
          : fmt::format("pod {} found none ({})", waits->name.name, WhyUnscheduled(*waits))));
  failure.set_suggestion(
      "Nothing, if the job has runs left: it is queued again. Each try is one of its "
      "retry.max_runs; a gang, or fewer pods, keeps it from being placed in part.");
  return failure;
}

}  // namespace muster::kubernetes
