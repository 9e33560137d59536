#include "daemon/command_line.h"

#include <fmt/core.h>

#include <algorithm>

#include "contract/characters.h"
#include "contract/nearest.h"

namespace muster {

std::string UnknownWords(std::string_view program, const std::vector<std::string>& words,
                         const std::vector<Setting>& settings,
                         const std::vector<std::string>& own_flags) {
  // The value of an unknown flag is unknown, too, and may stand before it here.
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return word.starts_with('-'); });
  if (first == words.end())
    return fmt::format("{} is more than {} takes; see: {} --help", contract::Quoted(words.front()),
                       program, program);
  const std::string_view flag = std::string_view(*first).substr(0, first->find('='));
  std::vector<std::string> names = own_flags;
  for (const Setting& setting : settings) names.push_back(FlagName(setting.key));
  const std::string_view nearest =
      contract::Nearest(flag, std::vector<std::string_view>(names.begin(), names.end()));
  return fmt::format("{} is not a flag of {}; {}", contract::Quoted(flag), program,
                     nearest.empty() ? fmt::format("see: {} --help", program)
                                     : fmt::format("did you mean {}?", nearest));
}

}  // namespace muster
