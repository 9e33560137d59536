#include "contract/namespace_limits.h"

#include <limits>

#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr int64_t kLimitMillis = 1000;
constexpr int64_t kMostMillis = std::numeric_limits<int64_t>::max();

std::string_view CutPrefix(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

// Multiplies amounts that are not negative.
int64_t Times(int64_t amount, int64_t count) {
  if (count > 0 && amount > kMostMillis / count) return kMostMillis;
  return amount * count;
}

}  // namespace

std::string_view BareResource(std::string_view resource) {
  return CutPrefix(CutPrefix(resource, "requests."), "limits.");
}

std::optional<int64_t> AskedByPod(const PodsAsk& ask, std::string_view resource) {
  if (resource == "cpu") return ask.cpu_millis;
  if (resource == "memory") return Times(ask.memory_bytes, kLimitMillis);
  if (ask.gpus == 0 || resource != ask.gpu_resource) return std::nullopt;
  return Times(ask.gpus, kLimitMillis);
}

std::optional<int64_t> AskedByRun(const PodsAsk& ask, std::string_view resource) {
  if (resource == "pods" || resource == "count/pods") return Times(ask.pods, kLimitMillis);
  if (resource == "count/jobs.batch" || resource == "secrets" || resource == "count/secrets")
    return ask.has_objects ? int64_t{0} : kLimitMillis;
  if (resource == "services" || resource == "count/services")
    return ask.has_objects || ask.pods == 1 ? int64_t{0} : kLimitMillis;
  // Runs have no limit of their cpu.
  if (resource == "limits.cpu") return std::nullopt;
  const std::optional<int64_t> each = AskedByPod(ask, BareResource(resource));
  if (!each.has_value()) return std::nullopt;
  return Times(*each, ask.pods);
}

std::string WrittenAmount(std::string_view resource, int64_t millis) {
  const bool is_memory = resource.find("memory") != std::string_view::npos;
  if (!is_memory) return fmt::format("{}", static_cast<double>(millis) / kLimitMillis);
  constexpr int64_t kMebibyte = 1 << 20;
  return fmt::format("{}Mi", (millis / kLimitMillis + kMebibyte - 1) / kMebibyte);
}

std::string OverQuota(std::string_view quota, std::string_view text, std::string_view resource,
                      int64_t asked_millis) {
  return fmt::format("quota {} allows {} {} in all, the run needs {}", quota, text, resource,
                     WrittenAmount(resource, asked_millis));
}

std::string OverRange(std::string_view described, std::string_view resource, int64_t asked_millis) {
  return fmt::format("{}, the job asks for {}", described, WrittenAmount(resource, asked_millis));
}

}  // namespace muster::contract
