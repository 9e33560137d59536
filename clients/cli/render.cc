#include "clients/cli/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "clients/cli/text.h"
#include "contract/characters.h"
#include "google/protobuf/util/json_util.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

// proto3 JSON leaves out an exit code of 0, which is what scripts ask for. A field's name is the
// only text with plain quotes before a colon and a brace, so that nothing else is taken for it.
std::string WithExitCodes(std::string_view json) {
  constexpr std::string_view kField = "\"exit\":";
  std::string out;
  while (true) {
    const size_t at = json.find(kField);
    if (at == json.npos) return out.append(json);
    const size_t open = json.find_first_not_of(' ', at + kField.size());
    const size_t inner = open == json.npos ? open : json.find_first_not_of(" \n", open + 1);
    if (inner == json.npos || json[open] != '{') {
      out.append(json.substr(0, at + kField.size()));
      json.remove_prefix(at + kField.size());
      continue;
    }
    out.append(json.substr(0, open + 1));
    const std::string_view blank = json.substr(open + 1, inner - open - 1);
    const std::string_view rest = json.substr(inner);
    // A program that a signal ended has no exit code.
    const bool is_told = rest.starts_with("\"code\"") || rest.starts_with("\"signal\"");
    if (!is_told) out.append(blank).append(rest[0] == '}' ? "\"code\": 0" : "\"code\": 0,");
    json.remove_prefix(open + 1);
  }
}

std::string Convert(const google::protobuf::Message& message, bool indented) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = indented;
  std::string json;
  // It can only fail for timestamps and durations out of range, which the broker does not send.
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return fmt::format("{{\"error\": \"{}\"}}\n", status.ToString());
  if (json.empty() || json.back() != '\n') json += '\n';
  return WithExitCodes(json);
}

// Returns whether YAML's readers, of version 1.1 too, take it for the text that it is.
bool IsPlain(const std::string& text) {
  constexpr std::array<std::string_view, 9> kWords = {"true", "false", "yes", "no", "on",
                                                      "off",  "null",  "y",   "n"};
  if (text.empty() || !contract::IsLetter(text[0])) return false;
  const bool safe = std::all_of(text.begin(), text.end(), [](char c) {
    return contract::IsLetter(c) || contract::IsDigit(c) ||
           std::string_view("_-./").find(c) != std::string_view::npos;
  });
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return safe && std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

// Returns whether it can be written line by line under a '|'.
bool IsBlock(const std::string& text) {
  const size_t first_line_end = text.find('\n');
  if (first_line_end == std::string::npos || text[0] == ' ' || text[0] == '\n') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte >= 0x7f) return false;
    if (byte == '\n' && i > 0 && text[i - 1] == ' ') return false;
  }
  return true;
}

// Writes a value as JSON, which escapes controls; other characters that could act on a terminal are
// escaped together with all that is not ASCII.
std::string Quoted(const Json& value) {
  const std::string json = value.dump();
  return Harmless(json) == json ? json : value.dump(-1, ' ', /*ensure_ascii=*/true);
}

void AppendBlock(const std::string& text, size_t indent, std::string* out) {
  // "-": no line end after the last line; "+": all of them.
  *out += text.back() == '\n' ? "|+\n" : "|-\n";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) *out += std::string(indent, ' ') + text.substr(at, end - at);
    *out += '\n';
    at = end + 1;
  }
}

// A value after "name:" or "-". JSON's strings, numbers and empty collections are YAML's too. The
// depth is that of our own messages.
void AppendValue(const Json& value, size_t indent, bool in_list, std::string* out) {
  const bool nested = (value.is_object() || value.is_array()) && !value.empty();
  if (!nested) {
    *out += ' ';
    const std::string* text = value.is_string() ? value.get_ptr<const std::string*>() : nullptr;
    if (text != nullptr && IsBlock(*text)) return AppendBlock(*text, indent, out);
    *out += text != nullptr && IsPlain(*text) ? *text : Quoted(value);
    *out += '\n';
    return;
  }
  // The first field of a list's item stands beside the dash.
  bool beside = in_list && value.is_object();
  *out += beside ? " " : "\n";
  const size_t depth = indent;
  for (const auto& [key, inner] : value.items()) {
    if (!std::exchange(beside, false)) *out += std::string(depth, ' ');
    if (value.is_array()) {
      *out += '-';
      AppendValue(inner, depth + 2, true, out);
    } else {
      *out += IsPlain(key) ? key + ":" : Quoted(key) + ":";
      AppendValue(inner, depth + 2, false, out);
    }
  }
}

}  // namespace

std::optional<Format> ParseFormat(std::string_view name) {
  if (name == "table") return Format::kTable;
  if (name == "wide") return Format::kWide;
  if (name == "csv") return Format::kCsv;
  if (name == "json") return Format::kJson;
  if (name == "jsonl") return Format::kJsonLines;
  if (name == "yaml") return Format::kYaml;
  if (name == "name") return Format::kName;
  return std::nullopt;
}

std::string ToJson(const google::protobuf::Message& message) { return Convert(message, true); }

std::string ToJsonLine(const google::protobuf::Message& message) { return Convert(message, false); }

std::string ToYaml(const google::protobuf::Message& message) {
  const Json json = Json::parse(ToJsonLine(message), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty()) return "{}\n";
  std::string out;
  AppendValue(json, 0, false, &out);
  // The document itself stands after no name.
  return out.substr(1);
}

}  // namespace muster::cli
