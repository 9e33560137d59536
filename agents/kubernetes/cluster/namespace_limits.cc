#include "agents/kubernetes/cluster/namespace_limits.h"

#include <algorithm>

#include "agents/kubernetes/objects/quantity.h"
#include "contract/namespace_limits.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

contract::PodsAsk PodsAskOf(const RunNeed& need) {
  contract::PodsAsk ask = {.pods = need.pods,
                           .cpu_millis = need.each.cpu_millis,
                           .memory_bytes = need.each.memory_bytes,
                           .has_objects = need.has_objects};
  // A pod has GPUs of one resource.
  if (const auto gpus = need.each.gpus.begin(); gpus != need.each.gpus.end()) {
    ask.gpu_resource = gpus->first;
    ask.gpus = gpus->second;
  }
  return ask;
}

std::string KeptWords(const QuotaLine& line) {
  if (line.kept_millis == 0) return "";
  return fmt::format(" and {} kept for runs that start first",
                     contract::WrittenAmount(line.resource, line.kept_millis));
}

std::optional<Misfit> FindRange(const RunNeed& need, const std::vector<RangeLine>& ranges) {
  const contract::PodsAsk ask = PodsAskOf(need);
  for (const RangeLine& line : ranges) {
    const std::optional<int64_t> asked = contract::AskedByPod(ask, line.resource);
    if (!asked.has_value()) continue;
    if (line.is_max ? *asked <= line.millis : *asked >= line.millis) continue;
    return Misfit{true, contract::OverRange(Describe(line), line.resource, *asked)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<QuotaLine> ParseQuota(const Json& object) {
  std::vector<QuotaLine> lines;
  const bool has_scope =
      At(object, "spec/scopes").is_array() || At(object, "spec/scopeSelector").is_object();
  // Until the controller has counted there is no status.
  const Json& hard = At(object, "status/hard");
  const Json& used = At(object, "status/used");
  for (const auto& [resource, value] : hard.items()) {
    QuotaLine line;
    line.quota = TextAt(object, "metadata/name");
    line.resource = resource;
    line.has_scope = has_scope;
    line.hard_text = value.is_string() ? value.get<std::string>() : std::string();
    const bool is_counted =
        used.is_object() && used.contains(resource) && used[resource].is_string();
    line.used_text = is_counted ? used[resource].get<std::string>() : std::string(1, '0');
    const std::optional<int64_t> most = ParseMilliQuantity(line.hard_text);
    if (!most.has_value()) continue;
    line.hard_millis = *most;
    line.used_millis = ParseMilliQuantity(line.used_text).value_or(0);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<RangeLine> ParseLimitRange(const Json& object) {
  std::vector<RangeLine> lines;
  for (const Json& limit : At(object, "spec/limits")) {
    const std::string type = TextAt(limit, "type");
    if (type != "Container" && type != "Pod") continue;
    for (const char* bound : {"max", "min"}) {
      for (const auto& [resource, value] : At(limit, bound).items()) {
        RangeLine line{TextAt(object, "metadata/name"),
                       type,
                       resource,
                       value.is_string() ? value.get<std::string>() : std::string(),
                       0,
                       bound[1] == 'a'};
        const std::optional<int64_t> millis = ParseMilliQuantity(line.text);
        if (!millis.has_value()) continue;
        line.millis = *millis;
        lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

void Keep(const RunNeed& need, std::vector<QuotaLine>* quotas) {
  const contract::PodsAsk ask = PodsAskOf(need);
  for (QuotaLine& line : *quotas)
    line.kept_millis += contract::AskedByRun(ask, line.resource).value_or(0);
}

std::optional<Misfit> FindLimit(const RunNeed& need, const std::vector<QuotaLine>& quotas,
                                const std::vector<RangeLine>& ranges) {
  if (auto range = FindRange(need, ranges); range.has_value()) return range;
  const contract::PodsAsk ask = PodsAskOf(need);
  std::optional<Misfit> passing;
  for (const QuotaLine& line : quotas) {
    const std::optional<int64_t> asked = contract::AskedByRun(ask, line.resource);
    if (line.has_scope || !asked.has_value() || *asked == 0) continue;
    if (*asked > line.hard_millis) {
      return Misfit{true, contract::OverQuota(line.quota, line.hard_text, line.resource, *asked)};
    }
    const int64_t taken = line.used_millis + line.kept_millis;
    if (*asked > line.hard_millis - taken && !passing.has_value()) {
      passing = Misfit{false, fmt::format("{}{}, the run needs {}", Describe(line), KeptWords(line),
                                          contract::WrittenAmount(line.resource, *asked))};
    }
  }
  return passing;
}

void AddLimits(const RunNeed& need, const std::vector<QuotaLine>& quotas,
               const std::vector<RangeLine>& ranges, contract::GpuShare* share) {
  for (const QuotaLine& line : quotas) {
    if (!line.has_scope)
      share->AddLimit(line.resource, line.hard_millis / std::max<int64_t>(1, need.pods));
  }
  for (const RangeLine& line : ranges) {
    if (line.is_max) share->AddLimit(line.resource, line.millis);
  }
}

void TellLimits(const std::vector<QuotaLine>& quotas, const std::vector<RangeLine>& ranges,
                v1::NamespaceFacts* facts) {
  const auto add = [&](v1::NamespaceLimitKind kind, const std::string& name,
                       const std::string& resource, const std::string& text, int64_t millis) {
    if (facts->limits_size() == contract::kMaxNamespaceLimits) return;
    v1::NamespaceLimit* limit = facts->add_limits();
    limit->set_kind(kind);
    limit->set_name(name);
    limit->set_resource(resource);
    limit->set_text(text);
    limit->set_amount_millis(millis);
  };
  for (const QuotaLine& line : quotas) {
    if (!line.has_scope)
      add(v1::NAMESPACE_LIMIT_KIND_QUOTA, line.quota, line.resource, line.hard_text,
          line.hard_millis);
  }
  for (const RangeLine& line : ranges) {
    if (line.is_max)
      add(v1::NAMESPACE_LIMIT_KIND_RANGE, line.range, line.resource, line.text, line.millis);
  }
}

bool HaveOtherLimits(const std::vector<QuotaLine>& a, const std::vector<QuotaLine>& b) {
  return !std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const QuotaLine& one, const QuotaLine& other) {
        return one.resource == other.resource && one.hard_millis == other.hard_millis &&
               one.has_scope == other.has_scope;
      });
}

bool HaveOtherLimits(const std::vector<RangeLine>& a, const std::vector<RangeLine>& b) {
  return !std::equal(a.begin(), a.end(), b.begin(), b.end(),
                     [](const RangeLine& one, const RangeLine& other) {
                       return one.resource == other.resource && one.millis == other.millis &&
                              one.is_max == other.is_max;
                     });
}

std::string Describe(const QuotaLine& line) {
  return fmt::format("quota {}: {} of {} {} used{}", line.quota, line.used_text, line.hard_text,
                     line.resource, line.has_scope ? " (of some pods only)" : "");
}

std::string Describe(const RangeLine& line) {
  return fmt::format("limit range {}: at {} {} {} for a {}", line.range,
                     line.is_max ? "most" : "least", line.text, line.resource,
                     line.type == "Pod" ? "pod" : "container");
}

}  // namespace muster::kubernetes
