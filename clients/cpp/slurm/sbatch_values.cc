#include "clients/cpp/slurm/sbatch_values.h"

#include <vector>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::client::slurm {
namespace {

using contract::ParseNumber;
using contract::Split;

constexpr uint64_t kMaxSeconds = uint64_t{365} * 86400;
constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr uint32_t kMaxCount = 10'000'000;
constexpr uint64_t kMaxGpus = 1000;

std::optional<uint64_t> Number(std::string_view text, uint64_t max) {
  const std::optional<uint64_t> number = ParseNumber<uint64_t>(text);
  return number.has_value() && *number <= max ? number : std::nullopt;
}

// The sum of `parts` in `units`; nothing if one is no number.
std::optional<uint64_t> Sum(const std::vector<std::string_view>& parts,
                            const std::vector<uint64_t>& units) {
  uint64_t seconds = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::optional<uint64_t> number = Number(parts[i], kMaxSeconds);
    if (!number.has_value()) return std::nullopt;
    seconds += *number * units[i];
  }
  return seconds <= kMaxSeconds ? std::optional(seconds) : std::nullopt;
}

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (contract::IsLowerLetter(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

std::optional<uint64_t> ParseSbatchTime(std::string_view text) {
  const std::string upper = UpperCase(text);
  if (upper == "UNLIMITED" || upper == "INFINITE" || upper == "-1") return 0;
  if (const size_t dash = text.find('-'); dash != text.npos) {
    std::vector<std::string_view> parts = Split(text.substr(dash + 1), ':');
    parts.insert(parts.begin(), text.substr(0, dash));
    return parts.size() > 4 ? std::nullopt : Sum(parts, {86400, 3600, 60, 1});
  }
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() == 1) return Sum(parts, {60});
  if (parts.size() == 2) return Sum(parts, {60, 1});
  return parts.size() == 3 ? Sum(parts, {3600, 60, 1}) : std::nullopt;
}

std::optional<uint64_t> ParseSbatchMemory(std::string_view text) {
  if (text.ends_with('B') || text.ends_with('b')) text.remove_suffix(1);
  uint64_t unit = uint64_t{1} << 20;
  constexpr std::string_view kUnits = "KMGT";
  const std::string upper = UpperCase(text);
  if (const size_t at = upper.empty() ? kUnits.npos : kUnits.find(upper.back());
      at != kUnits.npos) {
    unit = uint64_t{1} << (10 * (at + 1));
    text.remove_suffix(1);
  }
  const std::optional<uint64_t> number = Number(text, kMaxBytes / unit);
  return number.has_value() ? std::optional(*number * unit) : std::nullopt;
}

std::optional<NodeRange> ParseNodeRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<uint64_t> min = Number(text.substr(0, dash), kMaxCount);
  const std::optional<uint64_t> max =
      dash == text.npos ? min : Number(text.substr(dash + 1), kMaxCount);
  if (!min.has_value() || !max.has_value() || *min == 0 || *max < *min) return std::nullopt;
  return NodeRange{static_cast<uint32_t>(*min), static_cast<uint32_t>(*max)};
}

std::optional<v1::GpuRequest> ParseSbatchGpus(std::string_view text) {
  if (text.empty() || text.find(',') != text.npos) return std::nullopt;
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

std::optional<Gres> ParseGres(std::string_view text) {
  Gres gres;
  for (std::string_view one : Split(text, ',')) {
    if (one.starts_with("gres:")) one.remove_prefix(5);
    if (one != "gpu" && !one.starts_with("gpu:")) {
      gres.others += (gres.others.empty() ? "" : ",") + std::string(one);
      continue;
    }
    const std::optional<v1::GpuRequest> gpus = ParseSbatchGpus(one == "gpu" ? "1" : one.substr(4));
    if (!gpus.has_value() || gres.gpus.has_value()) return std::nullopt;
    gres.gpus = gpus;
  }
  return gres;
}

}  // namespace muster::client::slurm
