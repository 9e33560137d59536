// Reads YAML strictly: every field is known, given once and of the right form, and each problem is
// named with its line and column. Private to the client library and the command.
//
// A reader belongs to one thread. No exception of yaml-cpp leaves it.
#ifndef MUSTER_CLIENTS_CPP_YAML_READER_H_
#define MUSTER_CLIENTS_CPP_YAML_READER_H_

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::client {

// At most this many problems are told, as more help nobody; the rest is counted.
inline constexpr size_t kMaxYamlProblems = 20;
// Bounds the memory: of more problems, those that are told need not be the first ones of the file.
inline constexpr size_t kMaxKeptProblems = 1000;
// A mapping that is merged may merge another one, and so on. Deeper, it is likely to merge itself.
inline constexpr int kMaxMergeDepth = 8;

// Tells whether "<<" is a name like any other, or takes the fields of other mappings, as YAML 1.1
// has it.
enum class MergeKeys { kPlain, kRead };

// Returns the documents of a YAML text. INVALID_ARGUMENT "FILE:LINE:COLUMN: ..." if it is not YAML,
// not UTF-8 or longer than max_bytes.
absl::StatusOr<std::vector<YAML::Node>> LoadYaml(std::string_view file, std::string_view text,
                                                 size_t max_bytes);

// A value and where it is.
struct YamlValue {
  YAML::Node node;
  std::string path;  // "resources.memory"; empty for the document
  // The place of the value. Nothing: the place that its node says. An empty value has no text of
  // its own, and yaml-cpp places it at whatever follows, which may be many lines further down.
  std::optional<YAML::Mark> place = {};
};

class YamlReader {
 public:
  // A field of a mapping. Names that mean the same are separated by '|', the preferred one first:
  // giving two of them is a problem.
  struct Field {
    std::string names;
    std::function<void(const YamlValue&)> read;
    // Adds one more name for the last of the names, which is taken and not advertised: "cpuMillis",
    // as the JSON form of protobuf has it. Places and problems name the field by that last name.
    // Empty: none.
    std::string json_name = {};
    // False: it is taken, to be refused with words of its own, and not listed among the fields.
    bool is_listed = true;
  };

  // `text` is what the documents were read from; it must outlive the reader.
  YamlReader(std::string_view file, std::string_view text, MergeKeys merge_keys = MergeKeys::kPlain)
      : file_(file), text_(text), merge_keys_(merge_keys) {}

  // Reads a mapping field by field; whatever is not among the fields is a problem. `hints` says for
  // names that people try, or miss by a letter or two, what to write instead.
  void Mapping(const YamlValue& value, const std::vector<Field>& fields,
               const std::map<std::string_view, std::string_view>& hints = {});
  // Calls `read` for each key with its value.
  void Entries(const YamlValue& value,
               const std::function<void(const std::string& key, const YamlValue&)>& read);
  // Calls `read` for each item of a list.
  void List(const YamlValue& value, const std::function<void(const YamlValue&)>& read);

  // Scalars as they are written. On a problem they note it and return false.
  bool Text(const YamlValue& value, std::string* out);
  bool Integer(const YamlValue& value, int64_t min, int64_t max, int64_t* out);
  bool Bool(const YamlValue& value, bool* out);

  // Reads the text of a scalar with `parse`, a StatusOr function, and gives the result to `set`.
  template <typename Parse, typename Set>
  void Parsed(const YamlValue& value, Parse parse, Set set) {
    std::string text;
    if (!Text(value, &text)) return;
    auto parsed = parse(text);
    if (parsed.ok()) {
      set(*parsed);
    } else {
      ProblemOf(value, parsed.status());
    }
  }

  void Problem(const YamlValue& value, std::string_view message);
  // Adds a problem from a status about a field, said of this value.
  void ProblemOf(const YamlValue& value, const absl::Status& status);
  // Takes a problem of a field by the name that the API has for it, or of one inside of it: at its
  // place and by its name in the file if it was read, else at the document's. Leaves it out if it
  // may come of a problem that was noted when the document was read.
  void ProblemAt(std::string_view api_path, std::string_view message);
  // Counts problems that nobody can name.
  void AddUnnamed(size_t problems) { unnamed_ += problems; }
  // The fields and problems that follow are those of another document. Earlier problems stay.
  void BeginDocument();
  // Names the field of the API that a value stands for, where the names differ.
  void StandsFor(const YamlValue& value, std::string_view api_path);

  // "FILE:LINE:COLUMN" of each field that was read, by the name that the API has for it.
  std::map<std::string, std::string, std::less<>> Places() const;

  // OK, or INVALID_ARGUMENT with one line for each problem, in the order of the text.
  absl::Status status() const;

 private:
  struct Found {
    YamlValue value;
    YAML::Mark key_mark;
  };

  struct Noted {
    YAML::Mark mark;
    std::string text;
  };

  // Tells a problem of the text itself. Note is for those of what was read from it, too.
  void ProblemAtMark(const YAML::Mark& mark, std::string_view path, std::string_view message);
  void Note(const YAML::Mark& mark, std::string_view path, std::string_view message);
  bool IsMisread(std::string_view path) const;
  bool IsMapping(const YamlValue& value);
  bool CollectKeys(const YamlValue& value, std::map<std::string, Found>* found);
  void Merge(YAML::Node node, const std::string& path, int depth);

  const std::string file_;
  const std::string_view text_;
  const MergeKeys merge_keys_;
  std::vector<Noted> problems_;
  size_t unnamed_ = 0;                // problems that are counted only
  std::vector<std::string> misread_;  // paths in the document that have a problem of the text
  struct Place {
    YAML::Mark mark;
    std::string path;  // in the file
  };
  std::map<std::string, Place, std::less<>> places_;  // by API path
};

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_YAML_READER_H_
