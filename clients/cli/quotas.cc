#include "clients/cli/quotas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/gpu_types.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

constexpr std::string_view kForm =
    "write queued=N, active=N, gpus=N and gpus:TYPE=N with commas between them, or none";
constexpr uint64_t kGpu = 1000;  // thousandths

absl::Status Wrong(std::string_view part, std::string_view why) {
  return absl::InvalidArgumentError(
      ToAbsl(fmt::format("{} {}; {}", contract::Quoted(part), why, kForm)));
}

std::optional<uint32_t> Whole(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

absl::Status ParsePart(const std::string& part, v1::Quota* quota) {
  const size_t equals = part.find('=');
  if (equals == part.npos) return Wrong(part, "has no number");
  const std::string what = part.substr(0, equals), text = part.substr(equals + 1);
  const std::optional<uint32_t> number = Whole(text);
  if (!number) return Wrong(part, "has no whole number, 0 or more, behind the \"=\"");
  if (what == "queued") {
    quota->set_max_queued_jobs(*number);
  } else if (what == "active") {
    quota->set_max_active_runs(*number);
  } else if (what == "gpus") {
    (*quota->mutable_max_gpu_millis())[""] = kGpu * *number;
  } else if (what.starts_with("gpus:") && contract::IsGpuType(what.substr(5))) {
    (*quota->mutable_max_gpu_millis())[what.substr(5)] = kGpu * *number;
  } else {
    return Wrong(part, "is no part of a quota");
  }
  return absl::OkStatus();
}

std::string GpusText(uint64_t millis) {
  return millis % kGpu == 0 ? fmt::format("{}", millis / kGpu)
                            : fmt::format("{:g}", static_cast<double>(millis) / kGpu);
}

std::string GpusName(const std::string& type) {
  return type.empty() ? "gpus" : fmt::format("gpus:{}", Harmless(type));
}

std::map<std::string, uint64_t> Sorted(
    const google::protobuf::Map<std::string, uint64_t>& by_type) {
  return {by_type.begin(), by_type.end()};
}

}  // namespace

absl::StatusOr<v1::Quota> ParseQuota(const std::string& text) {
  v1::Quota quota;
  if (text == "none") return quota;
  for (const auto part : absl::StrSplit(ToAbsl(text), ',')) {
    if (absl::Status status = ParsePart(std::string(part), &quota); !status.ok()) return status;
  }
  return quota;
}

std::string QuotaText(const v1::Quota& quota) {
  std::vector<std::string> parts;
  if (quota.has_max_queued_jobs())
    parts.push_back(fmt::format("queued={}", quota.max_queued_jobs()));
  if (quota.has_max_active_runs())
    parts.push_back(fmt::format("active={}", quota.max_active_runs()));
  for (const auto& [type, millis] : Sorted(quota.max_gpu_millis()))
    parts.push_back(fmt::format("{}={}", GpusName(type), GpusText(millis)));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ","));
}

std::string UseText(const v1::ProjectUse& use, const v1::Quota& quota) {
  std::vector<std::string> parts;
  parts.push_back(fmt::format("{} queued", use.queued_jobs()));
  if (quota.has_max_queued_jobs())
    parts.back() = fmt::format("{} of {} queued", use.queued_jobs(), quota.max_queued_jobs());
  parts.push_back(fmt::format("{} active", use.active_runs()));
  if (quota.has_max_active_runs())
    parts.back() = fmt::format("{} of {} active", use.active_runs(), quota.max_active_runs());
  std::map<std::string, uint64_t> in_use = Sorted(use.gpu_millis());
  const std::map<std::string, uint64_t> most = Sorted(quota.max_gpu_millis());
  for (const auto& [type, millis] : most) in_use.try_emplace(type, 0);
  for (const auto& [type, millis] : in_use) {
    const auto bound = most.find(type);
    parts.push_back(bound == most.end() ? fmt::format("{} {}", GpusText(millis), GpusName(type))
                                        : fmt::format("{} of {} {}", GpusText(millis),
                                                      GpusText(bound->second), GpusName(type)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string PercentText(double part) { return fmt::format("{:.1f}%", 100 * part); }

}  // namespace muster::cli
