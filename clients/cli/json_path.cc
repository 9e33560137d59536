#include "clients/cli/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/status/status.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

bool IsNameCharacter(char c) {
  return contract::IsLetter(c) || contract::IsDigit(c) || c == '_' || c == '-';
}

std::optional<double> AsNumber(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string text = value.get<std::string>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <typename Value>
bool Compares(const Value& left, std::string_view comparison, const Value& right) {
  if (comparison == "==") return left == right;
  if (comparison == "!=") return left != right;
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  if (comparison == ">") return left > right;
  return left >= right;
}

// The values in an object or a list.
void AddInner(const Json& value, std::vector<const Json*>* found) {
  if (!value.is_structured()) return;
  for (const Json& inner : value) found->push_back(&inner);
}

void AddDescendants(const Json& value, std::vector<const Json*>* found) {
  if (!value.is_structured()) return;
  for (const Json& inner : value) {
    found->push_back(&inner);
    AddDescendants(inner, found);
  }
}

}  // namespace

// Reads a path from left to right. Problems are told once, with the rest of the text.
class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : all_(text), rest_(text) {}

  absl::StatusOr<JsonPath> Path() {
    JsonPath path;
    if (!Take("$")) Take("@");
    while (!rest_.empty()) {
      if (absl::Status status = OneStep(&path); !status.ok()) return status;
    }
    return path;
  }

 private:
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  absl::Status Problem(std::string_view expected) const {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("{}: expected {} at {}", contract::Quoted(all_), expected,
                           rest_.empty() ? std::string("the end") : contract::Quoted(rest_))));
  }

  std::string Name() {
    std::string name;
    while (!rest_.empty() && (IsNameCharacter(rest_[0]) || rest_.starts_with("\\."))) {
      if (rest_[0] == '\\') rest_.remove_prefix(1);
      name += rest_[0];
      rest_.remove_prefix(1);
    }
    return name;
  }

  absl::Status OneStep(JsonPath* path) {
    if (Take("..")) {
      path->steps_.push_back({.kind = Step::Kind::kDescend, .name = Take("*") ? "" : Name()});
      return absl::OkStatus();
    }
    if (Take("[")) return Bracket(path);
    const bool is_dot = Take(".");
    // A path may begin with a name.
    if (!is_dot && !path->steps_.empty()) return Problem("\".\" or \"[\"");
    if (is_dot && rest_.empty() && path->steps_.empty()) return absl::OkStatus();
    if (is_dot && rest_.starts_with("[")) return absl::OkStatus();
    if (Take("*")) {
      path->steps_.push_back({.kind = Step::Kind::kEveryField});
      return absl::OkStatus();
    }
    std::string name = Name();
    if (name.empty()) return Problem("the name of a field");
    path->steps_.push_back({.kind = Step::Kind::kField, .name = std::move(name)});
    return absl::OkStatus();
  }

  absl::Status Bracket(JsonPath* path) {
    if (Take("?(")) return Condition(path);
    if (rest_.starts_with("'") || rest_.starts_with("\"")) {
      auto name = Text();
      if (!name.ok()) return name.status();
      path->steps_.push_back({.kind = Step::Kind::kField, .name = *std::move(name)});
      return Take("]") ? absl::OkStatus() : Problem("\"]\"");
    }
    Step step{.kind = Step::Kind::kElements};
    if (Take("*")) {
      step.is_range = true;
    } else {
      step.begin = Number();
      step.is_range = Take(":");
      if (step.is_range) step.end = Number();
      if (!step.is_range && !step.begin) return Problem("a number, \"*\", a name in quotes or ?(");
    }
    path->steps_.push_back(std::move(step));
    return Take("]") ? absl::OkStatus() : Problem("\"]\"");
  }

  std::optional<int64_t> Number() {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }

  absl::StatusOr<std::string> Text() {
    const char quote = rest_[0];
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_[0] != quote) {
      if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      text += rest_[0];
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return Problem(fmt::format("{}", quote));
    rest_.remove_prefix(1);
    return text;
  }

  void SkipBlanks() {
    while (Take(" ")) continue;
  }

  // "@.state == "FAILED")]", behind "[?(".
  absl::Status Condition(JsonPath* path) {
    Step step{.kind = Step::Kind::kCondition};
    SkipBlanks();
    const size_t end = std::min(rest_.find_first_of("=!<> )"), rest_.size());
    absl::StatusOr<JsonPath> left = Parse(rest_.substr(0, end));
    if (!left.ok()) return left.status();
    step.left.push_back(*std::move(left));
    rest_.remove_prefix(end);
    SkipBlanks();
    for (const std::string_view comparison : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (step.comparison.empty() && Take(comparison)) step.comparison = comparison;
    }
    SkipBlanks();
    if (!step.comparison.empty()) {
      if (absl::Status status = Literal(&step.right); !status.ok()) return status;
      SkipBlanks();
    }
    path->steps_.push_back(std::move(step));
    return Take(")]") ? absl::OkStatus() : Problem("==, !=, <, <=, >, >= or \")]\"");
  }

  absl::Status Literal(Json* out) {
    if (rest_.starts_with("'") || rest_.starts_with("\"")) {
      auto text = Text();
      if (!text.ok()) return text.status();
      *out = *std::move(text);
      return absl::OkStatus();
    }
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" )"));
    *out = Json::parse(word, nullptr, /*allow_exceptions=*/false);
    if (out->is_discarded()) return Problem("a number, true, false or a text in quotes");
    rest_.remove_prefix(word.size());
    return absl::OkStatus();
  }

  const std::string_view all_;
  std::string_view rest_;
};

absl::StatusOr<JsonPath> JsonPath::Parse(std::string_view text) { return Parser(text).Path(); }

bool JsonPath::Fulfils(const Step& step, const Json& value) {
  const std::vector<const Json*> found = step.left[0].Find(value);
  if (found.empty()) return false;
  if (step.comparison.empty()) return true;
  const std::optional<double> left = AsNumber(*found[0]);
  const std::optional<double> right = AsNumber(step.right);
  // Numbers of 64 bits are texts in JSON.
  if (left && right) return Compares(*left, step.comparison, *right);
  return Compares(PlainText(*found[0]), step.comparison, PlainText(step.right));
}

void JsonPath::Take(const Step& step, const Json& value, std::vector<const Json*>* found) {
  switch (step.kind) {
    case Step::Kind::kField: {
      if (!value.is_object()) return;
      const auto field = value.find(step.name);
      if (field != value.end()) found->push_back(&*field);
      return;
    }
    case Step::Kind::kEveryField:
      return AddInner(value, found);
    case Step::Kind::kDescend: {
      std::vector<const Json*> all = {&value};
      AddDescendants(value, &all);
      if (step.name.empty()) {
        found->insert(found->end(), all.begin() + 1, all.end());
        return;
      }
      for (const Json* one : all) Take({.name = step.name}, *one, found);
      return;
    }
    case Step::Kind::kElements: {
      if (!value.is_array()) return;
      const auto size = static_cast<int64_t>(value.size());
      const auto place = [size](int64_t at) { return at < 0 ? at + size : at; };
      const int64_t begin = std::max<int64_t>(0, place(step.begin.value_or(0)));
      const int64_t end = step.is_range            ? std::min(size, place(step.end.value_or(size)))
                          : place(*step.begin) < 0 ? 0
                                                   : std::min(size, begin + 1);
      for (int64_t at = begin; at < end; ++at) found->push_back(&value[static_cast<size_t>(at)]);
      return;
    }
    case Step::Kind::kCondition:
      if (!value.is_array()) return;
      for (const Json& inner : value) {
        if (Fulfils(step, inner)) found->push_back(&inner);
      }
      return;
  }
}

std::vector<const Json*> JsonPath::Find(const Json& value) const {
  std::vector<const Json*> values = {&value};
  for (const Step& step : steps_) {
    std::vector<const Json*> next;
    for (const Json* one : values) Take(step, *one, &next);
    values = std::move(next);
  }
  return values;
}

std::string PlainText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace muster::cli
