// Computes a run's demand on the limits of its namespace on Kubernetes: ResourceQuotas and
// LimitRanges. Pure. The agent applies it to live limits, the broker to published facts.
#ifndef MUSTER_PROTO_CONTRACT_NAMESPACE_LIMITS_H_
#define MUSTER_PROTO_CONTRACT_NAMESPACE_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::contract {

// Published limits of one namespace; the others are judged at the launch.
inline constexpr int kMaxNamespaceLimits = 100;

// The pods of a run, which are alike.
struct PodsAsk {
  int64_t pods = 1;
  int64_t cpu_millis = 0;  // of each pod, as the rest
  int64_t memory_bytes = 0;
  std::string_view gpu_resource = {};  // empty: no GPUs
  int64_t gpus = 0;
  // True: the run's objects exist already, so that quotas have counted them.
  bool has_objects = false;
};

// Return the request of one pod, and of the whole run, for a resource of a limit, in thousandths;
// nothing if the run does not ask for it. They end at the largest number.
std::optional<int64_t> AskedByPod(const PodsAsk& ask, std::string_view resource);
std::optional<int64_t> AskedByRun(const PodsAsk& ask, std::string_view resource);

// Returns an amount of the resource for people, as "16384Mi" or "2.5".
std::string WrittenAmount(std::string_view resource, int64_t millis);

// "quota lab allows 4 requests.cpu in all, the run needs 8". `text` is the limit in its author's
// words.
std::string OverQuota(std::string_view quota, std::string_view text, std::string_view resource,
                      int64_t asked_millis);
// Returns "limit range lab: at most 4 cpu for each pod, the job asks for 8".
std::string OverRange(std::string_view described, std::string_view resource, int64_t asked_millis);

// Makes "memory" of "requests.memory" and "limits.memory".
std::string_view BareResource(std::string_view resource);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_NAMESPACE_LIMITS_H_
