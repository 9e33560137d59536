#include "contract/gpu_types.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "contract/characters.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

// Types that one message names.
constexpr size_t kMaxNamedTypes = 8;

constexpr size_t kMaxTypeBytes = 63;

std::vector<std::string_view> WordsOfType(std::string_view type) {
  std::vector<std::string_view> words;
  while (!type.empty()) {
    const std::string_view word = type.substr(0, type.find_first_of("-_ "));
    type.remove_prefix(std::min(type.size(), word.size() + 1));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool Has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view one) { return IsSameGpuType(one, word); });
}

bool IsPartOf(const std::vector<std::string_view>& wanted,
              const std::vector<std::string_view>& label) {
  constexpr std::array<std::string_view, 2> kLess = {"MIG", "SHARED"};
  const bool is_less = std::any_of(kLess.begin(), kLess.end(), [&](std::string_view word) {
    return Has(label, word) && !Has(wanted, word);
  });
  if (is_less || wanted.empty()) return false;
  auto from = label.begin();
  for (std::string_view word : wanted) {
    from = std::find_if(from, label.end(),
                        [&](std::string_view one) { return IsSameGpuType(one, word); });
    if (from == label.end()) return false;
    ++from;
  }
  return true;
}

}  // namespace

bool IsGpuType(std::string_view text) {
  const auto is_of_type = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !text.empty() && text.size() <= kMaxTypeBytes &&
         (IsLetter(text.front()) || IsDigit(text.front())) &&
         std::all_of(text.begin(), text.end(), is_of_type);
}

std::string NoGpuType(std::string_view text) {
  return fmt::format(
      "{} is not a GPU type; use up to {} letters, digits, '-', '_', '.' and '/', "
      "with a letter or digit first",
      Quoted(text), kMaxTypeBytes);
}

bool IsSameGpuType(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

bool NamesGpuResource(std::string_view type, std::string_view resource) {
  return IsSameGpuType(type, resource) ||
         IsSameGpuType(type, resource.substr(resource.find('/') + 1));
}

std::vector<std::string> FindGpuTypes(std::string_view wanted,
                                      const std::set<std::string>& labels) {
  std::vector<std::string> found;
  const std::vector<std::string_view> words = WordsOfType(wanted);
  for (const std::string& label : labels) {
    if (IsSameGpuType(label, wanted)) return {label};
    if (IsPartOf(words, WordsOfType(label))) found.push_back(label);
  }
  return found;
}

std::string MayBeTypes(std::string_view wanted, const std::vector<std::string>& types) {
  std::vector<std::string> named(
      types.begin(), types.begin() + static_cast<long>(std::min(types.size(), kMaxNamedTypes)));
  if (types.size() > kMaxNamedTypes) named.emplace_back("others");
  return fmt::format("GPUs of type {} may be {}", Quoted(wanted), fmt::join(named, " or "));
}

std::string WhichGpuType(std::string_view wanted, const std::vector<std::string>& types,
                         uint64_t count) {
  return fmt::format("{}; {}", MayBeTypes(wanted, types), HowToAskForGpus(types.front(), count));
}

std::string HowToAskForGpus(std::string_view type, uint64_t count) {
  return fmt::format(
      "ask for one of these by its whole name: {0}:{1} (resources.gpus, --gpus or a SkyPilot "
      "task's accelerators; with sbatch --gres=gpu:{0}:{1})",
      type, count);
}

}  // namespace muster::contract
