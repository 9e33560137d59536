// Checks the things that jobs depend on: runtime classes, pull secrets, claims, queues.
#include <algorithm>

#include "agents/kubernetes/checks/checks.h"
#include "agents/kubernetes/cluster/pull_secret.h"
#include "agents/kubernetes/cluster/queue_view.h"
#include "agents/kubernetes/objects/kueue.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::kubernetes {
namespace {

bool HasMode(const Json& claim, const char* mode) {
  const Json& modes = At(claim, "spec/accessModes");
  return std::find(modes.begin(), modes.end(), Json(mode)) != modes.end();
}

}  // namespace

void JudgeNames(v1::CheckCode code, const std::string& what, const std::string& if_none,
                const absl::StatusOr<Json>& list, agents::CheckList* checks) {
  if (!list.ok()) return checks->Skip(code, what, MessageOf(list.status()));
  std::vector<std::string> names;
  for (const Json& item : At(*list, "items")) names.push_back(TextAt(item, "metadata/name"));
  checks->Ok(code, what, names.empty() ? if_none : fmt::format("{}", fmt::join(names, ", ")));
}

void JudgePullSecret(const std::string& name, const std::string& name_space,
                     const absl::StatusOr<Json>& secret, agents::CheckList* checks) {
  const std::string subject = fmt::format("pull secret {} in namespace {}", name, name_space);
  constexpr char kRemedy[] = "muster-agent install-credentials REGISTRY USER makes it";
  if (absl::IsPermissionDenied(secret.status())) {
    return checks->Skip(v1::CHECK_CODE_IMAGES, subject,
                        fmt::format("the agent's account may read no Secrets of namespace {0}, and "
                                    "need not; whether it is there, and for which registries, an "
                                    "administrator sees with kubectl -n {0} get secret {1} "
                                    "-o jsonpath='{{.data.\\.dockerconfigjson}}' | base64 -d: {2}",
                                    name_space, name, MessageOf(secret.status())));
  }
  if (absl::IsNotFound(secret.status()))
    return checks->Fail(v1::CHECK_CODE_IMAGES, subject,
                        fmt::format("there is none in namespace {}", name_space), kRemedy);
  if (!secret.ok()) return checks->Skip(v1::CHECK_CODE_IMAGES, subject, MessageOf(secret.status()));
  const std::vector<std::string> registries = RegistriesOf(*secret);
  if (registries.empty()) {
    return checks->Fail(v1::CHECK_CODE_IMAGES, subject,
                        fmt::format("it is of type {} and has credentials for no registry",
                                    TextAt(*secret, "type")),
                        kRemedy);
  }
  checks->Ok(v1::CHECK_CODE_IMAGES, subject,
             fmt::format("has credentials for {}", fmt::join(registries, ", ")));
}

void JudgeAgentRoot(const std::string& root, const std::string& directory, const absl::Status& read,
                    agents::CheckList* checks) {
  const std::string subject = "agent root " + root;
  if (read.ok())
    return checks->Ok(v1::CHECK_CODE_STORAGE, subject,
                      fmt::format("the agent sees it at {}, and reads results there", directory));
  checks->Fail(v1::CHECK_CODE_STORAGE, subject,
               fmt::format("{} cannot be read: {}", directory, MessageOf(read)),
               "Mount the volume there for the agent's user, or correct kubernetes.agent_roots; "
               "status_json and muster cp need it.");
}

void JudgeHostPath(const std::string& root, const std::string& path, agents::CheckList* checks) {
  checks->Ok(v1::CHECK_CODE_STORAGE, "storage root " + root,
             fmt::format("the directory {} of each node, which cannot be seen from here", path));
}

void JudgeClaim(const std::string& root, const std::string& claim, const std::string& name_space,
                const absl::StatusOr<Json>& answer, agents::CheckList* checks) {
  const std::string subject = fmt::format("storage root {} in namespace {}", root, name_space);
  if (absl::IsNotFound(answer.status())) {
    return checks->Fail(
        v1::CHECK_CODE_STORAGE, subject,
        fmt::format("there is no claim {} in namespace {}", claim, name_space),
        fmt::format("make it, or set kubernetes.storage_roots.{}.claim to another", root));
  }
  if (!answer.ok())
    return checks->Skip(v1::CHECK_CODE_STORAGE, subject, MessageOf(answer.status()));
  const std::string phase = TextAt(*answer, "status/phase");
  const std::string seen = fmt::format("claim {} is {}", claim, phase);
  if (phase == "Lost")
    return checks->Fail(v1::CHECK_CODE_STORAGE, subject, seen,
                        "its volume is gone; make the claim anew");
  if (HasMode(*answer, "ReadWriteOnce") && !HasMode(*answer, "ReadWriteMany")) {
    return checks->Warn(v1::CHECK_CODE_STORAGE, subject,
                        seen + ", and one node at a time can have it (ReadWriteOnce)",
                        "use a claim with access mode ReadWriteMany, or jobs that need it wait for "
                        "each other");
  }
  // A claim may wait for its first pod.
  checks->Ok(v1::CHECK_CODE_STORAGE, subject, seen);
}

void JudgeQueues(const absl::StatusOr<Json>& groups, agents::CheckList* checks) {
  constexpr char kSubject[] = "queues and gangs";
  if (!groups.ok()) return checks->Skip(v1::CHECK_CODE_POOL, kSubject, MessageOf(groups.status()));
  std::vector<std::string> found;
  for (const Json& group : At(*groups, "groups")) {
    const std::string name = TextAt(group, "name");
    if (name == kKueueGroup) found.emplace_back("Kueue");
    if (name == kVolcanoGroup) found.emplace_back("Volcano");
    if (name == kPodGroupsGroup) found.emplace_back("PodGroups of scheduler-plugins");
  }
  checks->Ok(v1::CHECK_CODE_POOL, kSubject,
             found.empty() ? "neither Kueue nor Volcano nor PodGroups are here; jobs that ask for "
                             "kubernetes.queue or kubernetes.gang are refused"
                           : fmt::format("{}", fmt::join(found, ", ")));
}

void JudgeLocalQueues(const std::string& name_space, const absl::StatusOr<Json>& list,
                      agents::CheckList* checks) {
  const std::string subject = "queues of Kueue in namespace " + name_space;
  if (!list.ok()) return checks->Skip(v1::CHECK_CODE_POOL, subject, MessageOf(list.status()));
  std::vector<std::string> names;
  bool has_default = false;
  for (const Json& item : At(*list, "items")) {
    const LocalQueue queue = ParseLocalQueue(item);
    has_default |= queue.name == kDefaultQueue;
    names.push_back(queue.trouble.empty()
                        ? queue.name
                        : fmt::format("{} (lets nothing go: {})", queue.name, queue.trouble));
  }
  if (names.empty())
    return checks->Ok(v1::CHECK_CODE_POOL, subject,
                      "none; jobs that name a kubernetes.queue are refused here");
  const std::string seen = fmt::format("{}", fmt::join(names, ", "));
  if (!has_default) return checks->Ok(v1::CHECK_CODE_POOL, subject, seen);
  checks->Warn(v1::CHECK_CODE_POOL, subject,
               seen + "; Kueue puts each job that names no queue into the queue default",
               "name a kubernetes.queue in jobs that are for another, or remove the queue default "
               "if jobs without one are to start without Kueue");
}

}  // namespace muster::kubernetes
