// Splits a script into words, for code that looks for names in it. The words are not expanded as a
// shell would expand them.
#ifndef MUSTER_PROTO_CONTRACT_SCRIPT_WORDS_H_
#define MUSTER_PROTO_CONTRACT_SCRIPT_WORDS_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "contract/characters.h"

namespace muster::contract {

inline bool IsScriptWordCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

// Calls visit(number of the line, from 1; word) for each run of letters, digits and '_' outside of
// lines that are comments, until it returns false.
template <typename Visit>
void ForEachScriptWord(std::string_view script, Visit visit) {
  for (size_t number = 1; !script.empty(); ++number) {
    std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    const size_t first = line.find_first_not_of(" \t");
    if (first == line.npos || line[first] == '#') continue;
    while (true) {
      const auto* begin = std::find_if(line.begin(), line.end(), IsScriptWordCharacter);
      const auto* end = std::find_if_not(begin, line.end(), IsScriptWordCharacter);
      if (begin == end) break;
      if (!visit(number, std::string_view(begin, static_cast<size_t>(end - begin)))) return;
      line.remove_prefix(static_cast<size_t>(end - line.begin()));
    }
  }
}

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SCRIPT_WORDS_H_
