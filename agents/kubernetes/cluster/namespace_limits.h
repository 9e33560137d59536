// Computes what a namespace's ResourceQuotas and LimitRanges leave to a run. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_LIMITS_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_LIMITS_H_

#include <optional>
#include <string>
#include <vector>

#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/cluster/capacity.h"
#include "contract/gpu_share.h"
#include "muster/v1/cluster.pb.h"

namespace muster::kubernetes {

// One resource of a ResourceQuota, in thousandths.
struct QuotaLine {
  std::string quota;     // its name
  std::string resource;  // "requests.cpu", "requests.nvidia.com/gpu", "pods"
  std::string hard_text;
  std::string used_text;
  int64_t hard_millis = 0;
  int64_t used_millis = 0;
  int64_t kept_millis = 0;  // for runs that come first and whose pods are not counted yet
  bool has_scope = false;   // it counts only some pods, so it is shown and not judged

  bool IsExhausted() const { return used_millis >= hard_millis; }
};

// One bound of a LimitRange for pods or containers, in thousandths.
struct RangeLine {
  std::string range;  // the LimitRange's name
  std::string type;   // "Container" or "Pod"
  std::string resource;
  std::string text;
  int64_t millis = 0;
  bool is_max = true;
};

std::vector<QuotaLine> ParseQuota(const Json& object);
std::vector<RangeLine> ParseLimitRange(const Json& object);

// Keeps for the run what its pods will take of the quotas.
void Keep(const RunNeed& need, std::vector<QuotaLine>* quotas);

// It is final where the whole quota is too small for the run, or a LimitRange forbids it.
std::optional<Misfit> FindLimit(const RunNeed& need, const std::vector<QuotaLine>& quotas,
                                const std::vector<RangeLine>& ranges);

// Bounds the share of a pod of the run so that it alone breaks no limit.
void AddLimits(const RunNeed& need, const std::vector<QuotaLine>& quotas,
               const std::vector<RangeLine>& ranges, contract::GpuShare* share);

// Writes down the largest amounts, by which the broker judges jobs. Quotas of some pods only are
// left out.
void TellLimits(const std::vector<QuotaLine>& quotas, const std::vector<RangeLine>& ranges,
                v1::NamespaceFacts* facts);

// Tells whether they differ in what TellLimits tells, however much is in use.
bool HaveOtherLimits(const std::vector<QuotaLine>& a, const std::vector<QuotaLine>& b);
bool HaveOtherLimits(const std::vector<RangeLine>& a, const std::vector<RangeLine>& b);

// Returns "quota lab: 3 of 8 requests.nvidia.com/gpu used".
std::string Describe(const QuotaLine& line);
// Returns "limit range lab: at most 4 cpu for a container".
std::string Describe(const RangeLine& line);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_LIMITS_H_
