#include "agents/machines/amd_gpus.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "agents/core/json_members.h"
#include "agents/machines/machine.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Bytes of an answer that an error quotes.
constexpr size_t kMaxQuotedBytes = 300;
constexpr char kCard[] = "card";

// The product, as the first key that says something has it; of some cards there is a number only,
// and the architecture says more.
std::string ProductOf(const nlohmann::json& card) {
  for (const char* key :
       {"Card Series", "Card series", "Device Name", "Card Model", "Card model", "GFX Version"}) {
    std::string text = agents::TextOf(agents::Member(card, key));
    if (text.empty() || text == "N/A" || text.starts_with("0x")) continue;
    // "Navi 31 [Radeon RX 7900 XT/7900 XTX]" names the chip, and what is sold.
    const size_t open = text.find('[');
    const size_t close = text.find(']', open);
    if (close != std::string::npos) text = text.substr(open + 1, close - open - 1);
    return text;
  }
  return "amd";
}

// "0x719d230578348e8c" is GPU-719d230578348e8c.
std::string NameOf(const nlohmann::json& card, uint32_t index) {
  const std::string id = absl::AsciiStrToLower(agents::TextOf(agents::Member(card, "Unique ID")));
  absl::string_view digits = id;
  absl::ConsumePrefix(&digits, "0x");
  uint64_t value = 0;
  if (!absl::SimpleHexAtoi(digits, &value) || value == 0) return std::to_string(index);
  return fmt::format("GPU-{:016x}", value);
}

}  // namespace

std::vector<std::string> RocmSmiArguments() {
  return {"--showid", "--showuniqueid", "--showproductname", "--json"};
}

absl::StatusOr<std::vector<Gpu>> ParseRocmSmi(std::string_view answer) {
  const size_t begin = std::min(answer.find('{'), answer.size());
  const nlohmann::json cards =
      nlohmann::json::parse(answer.substr(begin), nullptr, /*allow_exceptions=*/false);
  if (!cards.is_object()) {
    return absl::InvalidArgumentError(fmt::format("rocm-smi gave no list of cards in JSON: \"{}\"",
                                                  answer.substr(0, kMaxQuotedBytes)));
  }
  std::vector<Gpu> gpus;
  for (const auto& [key, card] : cards.items()) {
    uint32_t index = 0;
    // The others tell of the system as a whole.
    if (!key.starts_with(kCard) || !absl::SimpleAtoi(key.substr(sizeof kCard - 1), &index))
      continue;
    gpus.push_back({.index = index,
                    .type = GpuTypeOf(ProductOf(card)),
                    .name = NameOf(card, index),
                    .is_amd = true});
  }
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  return gpus;
}

}  // namespace muster::machines
