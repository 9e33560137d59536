// Reads the one-line form of scontrol show: "NodeName=n1 OS=Linux 6.1 #1 State=IDLE ...".
#ifndef MUSTER_AGENTS_SLURM_KEY_VALUES_H_
#define MUSTER_AGENTS_SLURM_KEY_VALUES_H_

#include <map>
#include <string>
#include <string_view>

namespace muster::slurm {

// Returns values by key, the first of each. A value may hold spaces: it goes on until the next word
// that looks like a key with its '='. "(null)" and "N/A" count as empty.
inline std::map<std::string, std::string, std::less<>> ParseKeyValues(std::string_view line) {
  constexpr std::string_view kKeyCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/:";
  std::map<std::string, std::string, std::less<>> values;
  std::string* value = nullptr;
  while (!line.empty()) {
    const size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    if (equals != std::string_view::npos && !key.empty() &&
        key.find_first_not_of(kKeyCharacters) == std::string_view::npos) {
      const auto [at, is_new] = values.emplace(key, word.substr(equals + 1));
      value = is_new ? &at->second : nullptr;
    } else if (value != nullptr && !word.empty()) {
      value->append(" ").append(word);
    }
  }
  for (auto& [key, text] : values) {
    if (text == "(null)" || text == "N/A") text.clear();
  }
  return values;
}

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_KEY_VALUES_H_
