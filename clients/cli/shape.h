// Results in a form that the user writes: -o jsonpath=TEXT and -o template=TEXT.
#ifndef MUSTER_CLIENTS_CLI_SHAPE_H_
#define MUSTER_CLIENTS_CLI_SHAPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/json_path.h"
#include "google/protobuf/message.h"

namespace muster::cli {

class Shape {
 public:
  // kubectl's: text with {PATH}, {"TEXT"} and {range PATH}...{end}. A text without braces is one
  // path.
  static absl::StatusOr<Shape> ParseJsonPath(std::string_view text);
  // Text with {{PATH}}; \n and \t are a line end and a tab.
  static absl::StatusOr<Shape> ParseTemplate(std::string_view text);

  // The text for a message, with a line end. Several values of a path have blanks between them. The
  // names of states and the like are written as filters take them, without the prefix of the API.
  std::string Apply(const google::protobuf::Message& message) const;

 private:
  struct Part {
    std::string text = {};            // if there is no path
    std::vector<JsonPath> path = {};  // one or none
    std::vector<Part> repeated = {};  // for each value of the path
    bool is_range = false;
  };
  class Parser;

  static void Append(const std::vector<Part>& parts, const Json& value, std::string* out);

  std::vector<Part> parts_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SHAPE_H_
