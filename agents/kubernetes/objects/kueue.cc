#include "agents/kubernetes/objects/kueue.h"

#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

// The reason has the cause behind it; of what people have deactivated there is none (kueue:
// pkg/workload/workload.go).
constexpr char kGivenUpReason[] = "DeactivatedDueTo";

// Null: it does not have this condition with this status ("True", "False").
const Json& ConditionOf(const Json& object, const char* type, const char* status) {
  static const Json none;
  for (const Json& condition : At(object, "status/conditions")) {
    if (TextAt(condition, "type") == type && TextAt(condition, "status") == status)
      return condition;
  }
  return none;
}

// Room is kept for it, and something else has to agree: "checks: budget: over by 3".
std::string ChecksOf(const Json& object) {
  std::vector<std::string> checks;
  for (const Json& check : At(object, "status/admissionChecks")) {
    if (TextAt(check, "state") == "Ready") continue;
    checks.push_back(fmt::format("{} is {}: {}", TextAt(check, "name"), TextAt(check, "state"),
                                 TextAt(check, "message")));
  }
  return checks.empty() ? "" : fmt::format("admission checks: {}", fmt::join(checks, "; "));
}

std::string RefusalsOf(const Json& object) {
  std::vector<std::string> refusals;
  for (const Json& check : At(object, "status/admissionChecks")) {
    if (TextAt(check, "state") == "Rejected")
      refusals.push_back(fmt::format("{}: {}", TextAt(check, "name"), TextAt(check, "message")));
  }
  return fmt::format("{}", fmt::join(refusals, "; "));
}

std::string WaitOf(const Json& object) {
  const Json& evicted = ConditionOf(object, "Evicted", "True");
  if (At(object, "spec/active") == false)
    return evicted.is_null() ? "its workload is not active" : TextAt(evicted, "message");
  const Json& no_room = ConditionOf(object, "QuotaReserved", "False");
  if (!no_room.is_null()) return TextAt(no_room, "message");
  return ConditionOf(object, "Admitted", "True").is_null() ? ChecksOf(object) : "";
}

bool IsGivenUp(const Json& object) {
  return At(object, "spec/active") == false &&
         TextAt(ConditionOf(object, "Evicted", "True"), "reason").starts_with(kGivenUpReason);
}

}  // namespace

bool IsInQueue(const JobObject& job) { return !job.queue.empty() && job.queue != kHeldQueue; }

LocalQueue ParseLocalQueue(const Json& object) {
  LocalQueue queue{.name = TextAt(object, "metadata/name"), .trouble = ""};
  const Json& inactive = ConditionOf(object, "Active", "False");
  if (!inactive.is_null()) queue.trouble = TextAt(inactive, "message");
  return queue;
}

std::optional<Workload> ParseWorkload(const Json& object) {
  for (const Json& owner : At(object, "metadata/ownerReferences")) {
    if (TextAt(owner, "kind") == "Job" && TextAt(owner, "apiVersion") == "batch/v1")
      return Workload{.job_uid = TextAt(owner, "uid"),
                      .words = WaitOf(object),
                      .is_given_up = IsGivenUp(object),
                      .refusals = RefusalsOf(object)};
  }
  return std::nullopt;
}

void KeepRefusals(const Workload& before, Workload* now) {
  if (!now->is_given_up || before.refusals.empty() || !now->refusals.empty()) return;
  now->refusals = before.refusals;
  now->words += fmt::format(" ({})", now->refusals);
}

Json TrimWorkload(const Json& object) {
  Json kept = {{"metadata",
                {{"uid", At(object, "metadata/uid")},
                 {"ownerReferences", At(object, "metadata/ownerReferences")}}},
               {"status",
                {{"conditions", At(object, "status/conditions")},
                 {"admissionChecks", At(object, "status/admissionChecks")}}}};
  kept["spec"]["active"] = At(object, "spec/active");
  return kept;
}

std::string QueueWords(const std::string& queue, const std::string& words) {
  return fmt::format("waits in queue {} (Kueue){}{}", queue, words.empty() ? "" : ": ", words);
}

}  // namespace muster::kubernetes
