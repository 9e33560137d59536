// Paths into JSON, in the form of kubectl's -o jsonpath.
#ifndef MUSTER_CLIENTS_CLI_JSON_PATH_H_
#define MUSTER_CLIENTS_CLI_JSON_PATH_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

using Json = nlohmann::ordered_json;

// One or several steps from a value to values inside it.
class JsonPath {
 public:
  // "$.jobs[*].id", ".runs[-1].nodes[0:2]", "..message", ".jobs[?(@.state=="FAILED")].id",
  // "['a.b']". The "$" or "@" before it may be left out. INVALID_ARGUMENT names the place.
  static absl::StatusOr<JsonPath> Parse(std::string_view text);

  // The values that the path leads to; none where there is none. They live as long as `value`.
  std::vector<const Json*> Find(const Json& value) const;

 private:
  struct Step {
    enum class Kind { kField, kEveryField, kDescend, kElements, kCondition };
    Kind kind = Kind::kField;
    std::string name = {};              // kField; kDescend: empty is all of them
    std::optional<int64_t> begin = {};  // kElements: both of one element alone, none of all
    std::optional<int64_t> end = {};
    bool is_range = false;            // kElements
    std::vector<JsonPath> left = {};  // kCondition: one path
    std::string comparison = {};      // kCondition; empty: that it is there
    Json right = {};                  // kCondition
  };
  class Parser;

  static void Take(const Step& step, const Json& value, std::vector<const Json*>* found);
  static bool Fulfils(const Step& step, const Json& value);

  std::vector<Step> steps_;
};

// "text", "7", "true", or an object on one line: as a shell wants a value.
std::string PlainText(const Json& value);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_JSON_PATH_H_
