#include "agents/kubernetes/cluster/namespace_limits.h"

#include <string_view>

#include "agents/kubernetes/objects/quantity.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

constexpr int64_t kMillis = 1000;

std::string_view WithoutPrefix(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

// Returns the request of one pod of the run for a resource, in thousandths; nothing: the run does
// not ask.
std::optional<int64_t> AskedByPod(const RunNeed& need, std::string_view resource) {
  if (resource == "cpu") return need.each.cpu_millis;
  if (resource == "memory") return need.each.memory_bytes * kMillis;
  const auto gpus = need.each.gpus.find(std::string(resource));
  if (gpus == need.each.gpus.end()) return std::nullopt;
  return gpus->second * kMillis;
}

// Returns the request of the whole run for a quota's resource.
std::optional<int64_t> AskedByRun(const RunNeed& need, const std::string& resource) {
  if (resource == "pods" || resource == "count/pods") return need.pods * kMillis;
  if (resource == "count/jobs.batch" || resource == "secrets" || resource == "count/secrets")
    return need.has_objects ? int64_t{0} : kMillis;
  if (resource == "services" || resource == "count/services")
    return need.has_objects || need.pods == 1 ? int64_t{0} : kMillis;
  // Runs have no limit of their cpu.
  if (resource == "limits.cpu") return std::nullopt;
  const std::optional<int64_t> each =
      AskedByPod(need, WithoutPrefix(WithoutPrefix(resource, "requests."), "limits."));
  if (!each.has_value()) return std::nullopt;
  return *each * need.pods;
}

std::string Written(const std::string& resource, int64_t millis) {
  const bool is_memory = resource.find("memory") != resource.npos;
  if (!is_memory) return fmt::format("{}", static_cast<double>(millis) / kMillis);
  constexpr int64_t kMebibyte = 1 << 20;
  return fmt::format("{}Mi", (millis / kMillis + kMebibyte - 1) / kMebibyte);
}

std::string KeptWords(const QuotaLine& line) {
  if (line.kept_millis == 0) return "";
  return fmt::format(" and {} kept for runs that start first",
                     Written(line.resource, line.kept_millis));
}

std::optional<Misfit> FindRange(const RunNeed& need, const std::vector<RangeLine>& ranges) {
  for (const RangeLine& line : ranges) {
    const std::optional<int64_t> asked = AskedByPod(need, line.resource);
    if (!asked.has_value()) continue;
    if (line.is_max ? *asked <= line.millis : *asked >= line.millis) continue;
    return Misfit{true, fmt::format("{}, the job asks for {}", Describe(line),
                                    Written(line.resource, *asked))};
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
  for (QuotaLine& line : *quotas) line.kept_millis += AskedByRun(need, line.resource).value_or(0);
}

std::optional<Misfit> FindLimit(const RunNeed& need, const std::vector<QuotaLine>& quotas,
                                const std::vector<RangeLine>& ranges) {
  if (auto range = FindRange(need, ranges); range.has_value()) return range;
  std::optional<Misfit> passing;
  for (const QuotaLine& line : quotas) {
    const std::optional<int64_t> asked = AskedByRun(need, line.resource);
    if (line.has_scope || !asked.has_value() || *asked == 0) continue;
    if (*asked > line.hard_millis) {
      return Misfit{true,
                    fmt::format("quota {} allows {} {} in all, the run needs {}", line.quota,
                                line.hard_text, line.resource, Written(line.resource, *asked))};
    }
    const int64_t taken = line.used_millis + line.kept_millis;
    if (*asked > line.hard_millis - taken && !passing.has_value()) {
      passing = Misfit{false, fmt::format("{}{}, the run needs {}", Describe(line), KeptWords(line),
                                          Written(line.resource, *asked))};
    }
  }
  return passing;
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
