// Tells whether the published limits of a namespace on Kubernetes could ever let a job's pods in.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "contract/admission.h"
#include "contract/namespace_limits.h"
#include "contract/pod_ask.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr int64_t kMillisOfUnit = 1000;

// This is the resource of a job that a limit is about, in the words and the unit of v1::Shortage.
struct JobResource {
  std::string name;
  int64_t unit_millis = kMillisOfUnit;  // thousandths of a limit in one unit of the job spec
};

JobResource JobResourceOf(const PodsAsk& ask, std::string_view resource) {
  const std::string_view bare = BareResource(resource);
  if (bare == "cpu") return {"cpus", 1};
  if (bare == "memory") return {"memory"};
  if (!ask.gpu_resource.empty() && bare == ask.gpu_resource) return {"gpus", 1};
  return {"nodes"};
}

std::string LimitWords(const v1::NamespaceLimit& limit, std::string_view name_space,
                       int64_t asked) {
  if (limit.kind() == v1::NAMESPACE_LIMIT_KIND_QUOTA) {
    return OverQuota(fmt::format("{} of namespace {}", limit.name(), name_space), limit.text(),
                     limit.resource(), asked);
  }
  return OverRange(fmt::format("limit range {} of namespace {}: at most {} {} for each pod",
                               limit.name(), name_space, limit.text(), limit.resource()),
                   limit.resource(), asked);
}

}  // namespace

std::optional<v1::Shortage> FindLimitShortage(const AdmissionNeeds& needs,
                                              const v1::KubernetesFacts& facts) {
  const v1::NamespaceFacts* space = NamespaceOf(needs, facts);
  if (space == nullptr || space->limits().empty()) return std::nullopt;
  const PodAsk pod = PodAskOf(needs, facts);
  const PodsAsk ask = {.pods = needs.pods,
                       .cpu_millis = static_cast<int64_t>(pod.cpu_millis),
                       .memory_bytes = static_cast<int64_t>(pod.memory_bytes),
                       .gpu_resource = pod.gpu_resource,
                       .gpus = static_cast<int64_t>(pod.gpus)};
  for (const v1::NamespaceLimit& limit : space->limits()) {
    const bool is_quota = limit.kind() == v1::NAMESPACE_LIMIT_KIND_QUOTA;
    const std::optional<int64_t> asked =
        is_quota ? AskedByRun(ask, limit.resource()) : AskedByPod(ask, limit.resource());
    if (!asked.has_value() || *asked <= limit.amount_millis()) continue;
    const JobResource resource = JobResourceOf(ask, limit.resource());
    v1::Shortage shortage;
    shortage.set_resource(resource.name);
    shortage.set_requested(static_cast<uint64_t>(*asked / resource.unit_millis));
    shortage.set_available(static_cast<uint64_t>(limit.amount_millis() / resource.unit_millis));
    shortage.set_message(LimitWords(limit, space->name(), *asked));
    return shortage;
  }
  return std::nullopt;
}

}  // namespace muster::contract
