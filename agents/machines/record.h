// Holds a list of named texts, as the agent and a run's supervisor exchange them in small files.
//
// The form on disk: NAME '=' VALUE NUL for each, then "end" NUL. A file without that last word is
// not whole and decodes to nothing, so that a record that is still being written, or was cut by a
// power failure, is harmless. (`tr '\0' '\n' < FILE` shows one to people.) The code uses nothing
// but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_RECORD_H_
#define MUSTER_AGENTS_MACHINES_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::machines {

class Record {
 public:
  // Names hold no '='; neither names nor values hold a NUL byte. A name may be added several times.
  void Add(std::string_view name, std::string_view value);
  void Add(std::string_view name, int64_t value);

  // Returns the first value of that name; empty or 0 if there is none.
  std::string Text(std::string_view name) const;
  int64_t Number(std::string_view name) const;
  bool Has(std::string_view name) const;
  std::vector<std::string> All(std::string_view name) const;

  std::string Encode() const;
  // Bytes after the end are ignored.
  static std::optional<Record> Decode(std::string_view bytes);

 private:
  const std::string* Find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RECORD_H_
