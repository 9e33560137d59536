// Decides which files stay behind, by the rules of .gitignore files of several directories.
//
// Later patterns win over earlier ones, so files are added from the outermost directory inwards.
#ifndef MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_RULES_H_
#define MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_RULES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/uploads/ignore_pattern.h"

namespace muster::client {

class IgnoreRules {
 public:
  // Adds the patterns of a file. `base` is its directory, empty or with a '/' at its end.
  void Add(std::string_view text, const std::string& base);
  // size and Shrink serve to leave a directory again: all but the first patterns are forgotten.
  size_t size() const { return rules_.size(); }
  void Shrink(size_t size) {
    rules_.erase(rules_.begin() + static_cast<ptrdiff_t>(size), rules_.end());
  }

  // A path as the bases have it. Paths below a directory that stays behind are not asked about.
  bool LeavesOut(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string base;
    IgnorePattern pattern;
  };
  std::vector<Rule> rules_;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_RULES_H_
