// One pattern of a .gitignore file, as git reads it.
//
// A pattern becomes a regular expression of RE2, so that no pattern takes more than time in
// proportion to the path, whatever stars it has.
#ifndef MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_PATTERN_H_
#define MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_PATTERN_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "re2/re2.h"

namespace muster::client {

class IgnorePattern {
 public:
  // Parses one line without its end; nullopt if it is empty, a comment, or matches nothing.
  static std::optional<IgnorePattern> Parse(std::string_view line);

  // Returns whether it takes files back that an earlier pattern leaves out.
  bool is_negated() const { return is_negated_; }
  // `path` is relative to the directory of the pattern's file.
  bool Matches(std::string_view path, bool is_directory) const;

 private:
  bool is_negated_ = false;
  bool directories_only_ = false;
  bool names_only_ = false;  // compared with the last part of a path, at any depth
  std::string literal_;      // if there is nothing special in it
  std::unique_ptr<RE2> expression_;
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_UPLOADS_IGNORE_PATTERN_H_
