#include "agents/kubernetes/manifest/pod_lease.h"

#include "agents/core/lease_file.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

constexpr char kLeaseVolume[] = "muster-lease";
// Everybody in the container may read it.
constexpr int kLeaseFileMode = 0444;
constexpr int64_t kMsPerSecond = 1000;

}  // namespace

// A run key begins with the instance, and has no '-' before that ends.
std::string LeaseKey(std::string_view run_key, std::string_view cluster) {
  return fmt::format("{}.{}", run_key.substr(0, run_key.find('-')), cluster);
}

std::string LeaseTerms() {
  return fmt::format("{} {} {}\n", agents::kLeaseLookMs / kMsPerSecond,
                     agents::kLeaseClockSkewMs / kMsPerSecond, absl::ToInt64Seconds(kLeaseGrace));
}

// A pod whose ConfigMap is not there starts without the file, and its program does not: a pod that
// waited for it would start it however late.
Json LeaseVolume(std::string_view run_key, std::string_view cluster) {
  Json item = {{"key", LeaseKey(run_key, cluster)}, {"path", std::string(agents::kLeaseFileName)}};
  return {{"name", kLeaseVolume},
          {"configMap",
           {{"name", kLeaseObject},
            {"optional", true},
            {"defaultMode", kLeaseFileMode},
            {"items", Json::array({std::move(item)})}}}};
}

Json LeaseMount() {
  return {{"name", kLeaseVolume}, {"mountPath", kLeaseDirectory}, {"readOnly", true}};
}

}  // namespace muster::kubernetes
