// API messages as JSON and YAML.
#ifndef MUSTER_CLIENTS_CLI_RENDER_H_
#define MUSTER_CLIENTS_CLI_RENDER_H_

#include <optional>
#include <string>
#include <string_view>

#include "google/protobuf/message.h"

namespace muster::cli {

enum class Format { kTable, kWide, kCsv, kJson, kJsonLines, kYaml, kName, kJsonPath, kTemplate };

// The names of those that need nothing else.
inline constexpr std::string_view kFormatNames = "table, wide, csv, json, jsonl, yaml or name";
std::optional<Format> ParseFormat(std::string_view name);

// proto3 JSON with the names of the .proto files. As in proto3 JSON, 64-bit numbers are strings and
// fields without a value are left out, except for the exit code 0 of what has ended. Indented over
// several lines, or one line; both end with a line end.
std::string ToJson(const google::protobuf::Message& message);
std::string ToJsonLine(const google::protobuf::Message& message);
// The same data as YAML, with a line end. Every text that another reader could take for something
// else is quoted.
std::string ToYaml(const google::protobuf::Message& message);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_RENDER_H_
