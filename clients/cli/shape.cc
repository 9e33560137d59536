#include "clients/cli/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "clients/cli/render.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "google/protobuf/descriptor.h"

namespace muster::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// "JOB_STATE_" for JobState.
std::string PrefixOf(const EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper && !prefix.empty()) prefix += '_';
    prefix += is_upper || contract::IsDigit(c) ? c : static_cast<char>(c - 'a' + 'A');
  }
  return prefix + "_";
}

void Shorten(const Descriptor& type, Json* value);

void ShortenField(const FieldDescriptor& field, Json* value) {
  if (field.is_map()) {
    const FieldDescriptor* inner = field.message_type()->FindFieldByNumber(2);
    for (Json& one : *value) ShortenField(*inner, &one);
  } else if (value->is_array()) {
    for (Json& one : *value) ShortenField(field, &one);
  } else if (field.type() == FieldDescriptor::TYPE_ENUM && value->is_string()) {
    const std::string prefix = PrefixOf(*field.enum_type());
    std::string name = value->get<std::string>();
    if (name.starts_with(prefix)) *value = name.substr(prefix.size());
  } else if (field.type() == FieldDescriptor::TYPE_MESSAGE && value->is_object()) {
    Shorten(*field.message_type(), value);
  }
}

// Takes the API's prefixes from the names of enum values.
void Shorten(const Descriptor& type, Json* value) {
  for (auto& [name, inner] : value->items()) {
    if (const FieldDescriptor* field = type.FindFieldByName(name); field != nullptr)
      ShortenField(*field, &inner);
  }
}

// With the escapes that a text in a shell's single quotes may have.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    if (!is_escape) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    const bool is_known = c == 'n' || c == 't' || c == '\\' || c == '"' || c == '\'';
    if (!is_known) out.insert(out.size() - 1, 1, '\\');
  }
  return out;
}

std::string_view WithoutBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

absl::Status Problem(std::string_view text, std::string_view problem) {
  return absl::InvalidArgumentError(ToAbsl(fmt::format("{}: {}", contract::Quoted(text), problem)));
}

}  // namespace

class Shape::Parser {
 public:
  explicit Parser(std::string_view text) : all_(text), rest_(text) {}

  // `inside`: of {range}, up to its {end}.
  absl::Status Parts(bool inside, std::vector<Part>* parts) {
    while (!rest_.empty()) {
      const size_t open = std::min(rest_.find('{'), rest_.size());
      if (open > 0) parts->push_back({.text = Unescaped(rest_.substr(0, open))});
      rest_.remove_prefix(open);
      if (rest_.empty()) break;
      const size_t close = Close();
      if (close == rest_.npos) return Problem(all_, "a { has no }");
      const std::string_view inner = WithoutBlanks(rest_.substr(1, close - 1));
      rest_.remove_prefix(close + 1);
      if (inner == "end") {
        return inside ? absl::OkStatus() : Problem(all_, "{end} has no {range PATH} before it");
      }
      if (absl::Status status = Inner(inner, parts); !status.ok()) return status;
    }
    return inside ? Problem(all_, "{range PATH} has no {end}") : absl::OkStatus();
  }

 private:
  // The brace that ends the expression; one in quotes does not.
  size_t Close() const {
    char quote = '\0';
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (quote != '\0' && rest_[i] == '\\') {
        ++i;
      } else if (quote != '\0') {
        if (rest_[i] == quote) quote = '\0';
      } else if (rest_[i] == '"' || rest_[i] == '\'') {
        quote = rest_[i];
      } else if (rest_[i] == '}') {
        return i;
      }
    }
    return rest_.npos;
  }

  absl::Status Inner(std::string_view inner, std::vector<Part>* parts) {
    constexpr std::string_view kRange = "range ";
    const bool is_text = inner.size() > 1 && (inner[0] == '"' || inner[0] == '\'');
    if (is_text) {
      parts->push_back({.text = Unescaped(inner.substr(1, inner.size() - 2))});
      return absl::OkStatus();
    }
    const bool is_range = inner.starts_with(kRange);
    auto path = JsonPath::Parse(WithoutBlanks(is_range ? inner.substr(kRange.size()) : inner));
    if (!path.ok()) return path.status();
    Part part{.is_range = is_range};
    part.path.push_back(*std::move(path));
    if (is_range) {
      if (absl::Status status = Parts(/*inside=*/true, &part.repeated); !status.ok()) return status;
    }
    parts->push_back(std::move(part));
    return absl::OkStatus();
  }

  const std::string_view all_;
  std::string_view rest_;
};

absl::StatusOr<Shape> Shape::ParseJsonPath(std::string_view text) {
  if (text.empty()) return Problem(text, "there is no path");
  const std::string braced =
      text.find('{') == text.npos ? fmt::format("{{{}}}", text) : std::string(text);
  Shape shape;
  if (absl::Status status = Parser(braced).Parts(/*inside=*/false, &shape.parts_); !status.ok())
    return status;
  return shape;
}

absl::StatusOr<Shape> Shape::ParseTemplate(std::string_view text) {
  if (text.empty()) return Problem(text, "there is no text");
  Shape shape;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find("{{"), rest.size());
    if (open > 0) shape.parts_.push_back({.text = Unescaped(rest.substr(0, open))});
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const size_t close = rest.find("}}");
    if (close == rest.npos) return Problem(text, "a {{ has no }}");
    auto path = JsonPath::Parse(WithoutBlanks(rest.substr(2, close - 2)));
    if (!path.ok()) return path.status();
    Part part;
    part.path.push_back(*std::move(path));
    shape.parts_.push_back(std::move(part));
    rest.remove_prefix(close + 2);
  }
  return shape;
}

void Shape::Append(const std::vector<Part>& parts, const Json& value, std::string* out) {
  for (const Part& part : parts) {
    if (part.path.empty()) {
      *out += part.text;
      continue;
    }
    bool is_first = true;
    for (const Json* found : part.path[0].Find(value)) {
      if (part.is_range) {
        Append(part.repeated, *found, out);
        continue;
      }
      if (!std::exchange(is_first, false)) *out += ' ';
      *out += PlainText(*found);
    }
  }
}

std::string Shape::Apply(const google::protobuf::Message& message) const {
  Json json = Json::parse(ToJsonLine(message), nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) Shorten(*message.GetDescriptor(), &json);
  std::string out;
  Append(parts_, json, &out);
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out;
}

}  // namespace muster::cli
