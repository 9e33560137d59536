#include "agents/kubernetes/verdict/replicas.h"

#include <algorithm>
#include <optional>

#include "agents/core/backend.h"
#include "agents/core/clean_text.h"
#include "agents/core/proto_time.h"
#include "agents/kubernetes/verdict/explain_failure.h"
#include "agents/kubernetes/verdict/verdict.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// The limit of ReadinessIssue.message.
constexpr size_t kMaxMessageBytes = 1024;

v1::ReadinessIssue MakeIssue(const std::string& reason, const std::string& message,
                             const std::optional<absl::Time>& since) {
  v1::ReadinessIssue issue;
  issue.set_reason(reason);
  issue.set_message(agents::CleanText(message, kMaxMessageBytes));
  if (since.has_value()) *issue.mutable_since() = agents::ToProto(*since);
  return issue;
}

// Returns whether it was ended because all that lead had succeeded: how it ends then does not
// count.
bool WasEndedBySuccess(const PodObject& pod, const JobObject* job) {
  if (job == nullptr || job->leading.empty() || !pod.deletion_time.has_value()) return false;
  const bool has_succeeded =
      job->Find("SuccessCriteriaMet") != nullptr || job->Find("Complete") != nullptr;
  const bool leads =
      std::find(job->leading.begin(), job->leading.end(), pod.index) != job->leading.end();
  return has_succeeded && !leads && *pod.deletion_time <= EndOf(pod);
}

// Returns the issue of a pod that has started.
std::optional<v1::ReadinessIssue> LaterIssue(const PodObject& pod, const JobObject* job) {
  if (WasEndedBySuccess(pod, job)) {
    return MakeIssue("SuccessPolicy",
                     "all roles that lead had succeeded, and so the others were ended",
                     pod.deletion_time);
  }
  if (const Condition* target = pod.Find("DisruptionTarget"))
    return MakeIssue(target->reason, target->message, target->since);
  if (!pod.reason.empty()) return MakeIssue(pod.reason, pod.message, pod.deletion_time);
  for (const ContainerObject& container : pod.containers) {
    if (container.state != ContainerState::kTerminated || container.exit_code == 0) continue;
    if (IsLost(container)) {
      return MakeIssue(
          container.reason,
          fmt::format("container {} had not started, or its node has lost it", container.name),
          container.finished);
    }
    const std::string words =
        container.records.empty() ? container.message : WordsOf(container.records.front());
    return MakeIssue(container.reason,
                     fmt::format("container {} ended with exit code {}{}{}", container.name,
                                 container.exit_code, words.empty() ? "" : ": ", words),
                     container.finished);
  }
  return std::nullopt;
}

}  // namespace

std::vector<v1::Replica> MakeReplicas(const std::vector<PodObject>& pods,
                                      const std::vector<EventObject>& events, absl::Time now,
                                      const JobObject* job) {
  std::vector<const PodObject*> by_rank;
  for (const PodObject& pod : pods) by_rank.push_back(&pod);
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [](const PodObject* a, const PodObject* b) { return a->index < b->index; });
  if (by_rank.size() > agents::kMaxReplicas) by_rank.resize(agents::kMaxReplicas);
  std::vector<v1::Replica> replicas;
  for (const PodObject* pod : by_rank) {
    v1::Replica& replica = replicas.emplace_back();
    replica.set_rank(pod->index);
    replica.set_name(pod->name.name);
    replica.set_node(pod->node);
    replica.set_phase(pod->phase);
    if (const std::optional<StartTrouble> trouble = FindStartTrouble(*pod, events, now)) {
      *replica.mutable_issue() = MakeIssue(trouble->reason, trouble->message, trouble->since);
    } else if (std::optional<v1::ReadinessIssue> issue = LaterIssue(*pod, job)) {
      *replica.mutable_issue() = *std::move(issue);
    }
  }
  return replicas;
}

}  // namespace muster::kubernetes
