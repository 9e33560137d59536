#include "clients/cpp/slurm/sbatch_values.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::ParseNumber;
using contract::Split;

constexpr uint64_t kMaxSeconds = uint64_t{36500} * 86400;
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr uint32_t kMaxCount = 10'000'000;
constexpr uint64_t kMaxGpus = 1000;
constexpr uint64_t kMaxHosts = 10000;  // nodes of a job

std::optional<uint64_t> Number(std::string_view text, uint64_t max) {
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(text);
  return number.has_value() && *number <= max ? number : std::nullopt;
}

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (contract::IsLowerLetter(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// Reads "2", "2k" (2048), "2m".
std::optional<uint64_t> NodeCount(std::string_view text) {
  uint64_t unit = 1;
  if (text.ends_with('k') || text.ends_with('K')) unit = 1024;
  if (text.ends_with('m') || text.ends_with('M')) unit = 1024 * 1024;
  if (unit > 1) text.remove_suffix(1);
  const std::optional<uint64_t> number = Number(text, kMaxCount / unit);
  return number.has_value() ? std::optional(*number * unit) : std::nullopt;
}

// Reads "4", "h100", "h100:4".
std::optional<v1::GpuRequest> OneTypeOfGpus(std::string_view text) {
  if (text.empty()) return std::nullopt;
  v1::GpuRequest gpus;
  const size_t colon = text.find(':');
  const std::string_view count = colon == text.npos ? text : text.substr(colon + 1);
  std::optional<uint64_t> number = Number(count, kMaxGpus);
  if (colon != text.npos) gpus.set_type(std::string(text.substr(0, colon)));
  if (!number.has_value() && colon == text.npos && !contract::IsDigit(text.front())) {
    gpus.set_type(std::string(text));
    number = 1;
  }
  if (!number.has_value() || (colon == 0)) return std::nullopt;
  gpus.set_count_millis(*number * 1000);
  return gpus;
}

}  // namespace

std::optional<uint64_t> ParseSbatchTime(std::string_view text) {
  const std::string upper = UpperCase(text);
  if (upper == "UNLIMITED" || upper == "INFINITE" || upper == "-1") return 0;
  const size_t dash = text.find('-');
  std::vector<std::string_view> parts = Split(text.substr(dash == text.npos ? 0 : dash + 1), ':');
  if (parts.size() > 3 || (dash == text.npos && parts.back().empty())) return std::nullopt;
  uint64_t seconds = 0;
  const auto add = [&](std::string_view part, uint64_t unit) {
    const std::optional<uint64_t> number = Number(part, kMaxSeconds);
    seconds += number.value_or(0) * unit;
    return number.has_value();
  };
  // "1-" is a day.
  if (dash != text.npos && parts.size() == 1 && parts.front().empty()) parts.clear();
  if (dash != text.npos && !add(text.substr(0, dash), 86400)) return std::nullopt;
  // Minutes come first without days, unless there are three numbers.
  uint64_t unit = dash == text.npos && parts.size() < 3 ? 60 : 3600;
  for (std::string_view part : parts) {
    if (!add(part, unit)) return std::nullopt;
    unit /= 60;
  }
  return seconds <= kMaxSeconds ? std::optional(seconds) : std::nullopt;
}

std::optional<uint64_t> ParseSbatchMemory(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t unit = uint64_t{1} << 20;
  if (end < text.size()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t at = kUnits.find(UpperCase(text.substr(end, 1)));
    if (at == kUnits.npos) return std::nullopt;
    unit = uint64_t{1} << (10 * (at + 1));
  }
  const std::optional<uint64_t> number = Number(text.substr(0, end), kMaxBytes / unit);
  return number.has_value() ? std::optional(*number * unit) : std::nullopt;
}

std::optional<NodeRange> ParseNodeRange(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == text.npos) {
    const std::optional<uint64_t> count = NodeCount(text);
    if (!count.has_value() || *count == 0) return std::nullopt;
    return NodeRange{static_cast<uint32_t>(*count), static_cast<uint32_t>(*count)};
  }
  const auto count_of = [](std::string_view part) { return part.empty() ? 0 : NodeCount(part); };
  const std::optional<uint64_t> min = count_of(text.substr(0, dash));
  const std::optional<uint64_t> max = count_of(text.substr(dash + 1));
  if (!min.has_value() || !max.has_value() || (*max != 0 && *max < *min)) return std::nullopt;
  const uint64_t least = std::max<uint64_t>(1, *min);
  return NodeRange{static_cast<uint32_t>(least), static_cast<uint32_t>(std::max(least, *max))};
}

std::optional<uint32_t> CountHosts(std::string_view list) {
  std::set<std::string> names;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const size_t open = list.substr(0, end).find('[');
    if (open == list.npos) {
      if (end > 0) names.emplace(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
      continue;
    }
    const size_t close = list.find(']', open);
    if (close == list.npos) return std::nullopt;
    const size_t after = std::min(list.find(',', close), list.size());
    const std::string prefix(list.substr(0, open));
    const std::string suffix(list.substr(close + 1, after - close - 1));
    for (std::string_view range : Split(list.substr(open + 1, close - open - 1), ',')) {
      const size_t dash = range.find('-');
      const auto first = Number(range.substr(0, dash), kMaxCount);
      const auto last = dash == range.npos ? first : Number(range.substr(dash + 1), kMaxCount);
      if (!first || !last || *last < *first || *last - *first >= kMaxHosts) return std::nullopt;
      for (uint64_t i = *first; i <= *last; ++i)
        names.insert(fmt::format("{}{}{}", prefix, i, suffix));
    }
    list.remove_prefix(std::min(after + 1, list.size()));
  }
  if (names.size() > kMaxHosts) return std::nullopt;
  return static_cast<uint32_t>(names.size());
}

std::optional<std::vector<std::string>> ParseMailTypes(std::string_view text) {
  std::vector<std::string> types;
  for (std::string_view word : Split(text, ',')) {
    std::string upper = UpperCase(word);
    if (upper == "NONE") return std::vector<std::string>();
    if (contract::IsMailType(upper)) types.push_back(std::move(upper));
  }
  return types.empty() ? std::nullopt : std::optional(std::move(types));
}

std::optional<v1::GpuRequest> ParseSbatchGpus(std::string_view text) {
  std::optional<v1::GpuRequest> all;
  bool is_of_several = false;
  for (std::string_view part : Split(text, ',')) {
    const std::optional<v1::GpuRequest> one = OneTypeOfGpus(part);
    // GPUs with a type and others without exclude each other.
    if (!one.has_value() || (all.has_value() && all->type().empty() != one->type().empty()))
      return std::nullopt;
    is_of_several = is_of_several || (all.has_value() && all->type() != one->type());
    all = one;
  }
  return is_of_several ? v1::GpuRequest() : all;
}

std::optional<Gres> ParseGres(std::string_view text) {
  Gres gres;
  std::string gpus;
  for (std::string_view one : Split(text, ',')) {
    if (one.starts_with("gres:")) one.remove_prefix(5);
    const bool is_gpu = one == "gpu" || one.starts_with("gpu:");
    std::string& list = is_gpu ? gpus : gres.others;
    if (!list.empty()) list += ',';
    list += one == "gpu" ? "1" : one.substr(is_gpu ? 4 : 0);
  }
  if (gpus.empty()) return gres;
  gres.gpus = ParseSbatchGpus(gpus);
  return gres.gpus.has_value() ? std::optional(gres) : std::nullopt;
}

}  // namespace muster::client::slurm
