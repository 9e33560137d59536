#include "clients/cli/sky/env_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "contract/characters.h"
#include "contract/validate.h"

namespace muster::cli::sky {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

char Escaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c; }

// The value up to its closing quote; `rest` gets what is behind that. False: it has none.
bool TakeQuoted(std::string_view text, std::string* value, std::string_view* rest) {
  const char quote = text[0];
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      *rest = Trimmed(text.substr(i + 1));
      return true;
    }
    const bool is_escape = text[i] == '\\' && i + 1 < text.size() &&
                           (quote == '"' || text[i + 1] == '\'' || text[i + 1] == '\\');
    *value += is_escape ? Escaped(text[++i]) : text[i];
  }
  return false;
}

// Up to a comment, which a blank must go before.
std::string_view Plain(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '#' && kBlanks.find(text[i - 1]) != std::string_view::npos) {
      return Trimmed(text.substr(0, i));
    }
  }
  return text.starts_with('#') ? std::string_view() : text;
}

// Returns the fault of the value; empty: none.
std::string_view ReadValue(std::string_view text, std::string* value) {
  if (text.starts_with('"') || text.starts_with('\'')) {
    std::string_view rest;
    if (!TakeQuoted(text, value, &rest)) return "has a quote that does not end with the line";
    if (!rest.empty() && !rest.starts_with('#')) return "has more behind the closing quote";
  } else {
    *value = Plain(text);
  }
  if (value->find("${") != std::string::npos) {
    return "has a variable in its value, which is not expanded; write the value itself";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseEnvFile(std::string_view file,
                                                                std::string_view text) {
  constexpr std::string_view kExport = "export ";
  std::map<std::string, std::string> variables;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with(kExport)) line = Trimmed(line.substr(kExport.size()));
    const size_t equals = line.find('=');
    const std::string_view name = Trimmed(line.substr(0, equals));
    std::string_view problem;
    std::string value;
    if (equals == line.npos || !contract::IsVariableName(name)) {
      problem = "is not NAME=VALUE";
    } else {
      problem = ReadValue(Trimmed(line.substr(equals + 1)), &value);
    }
    if (!problem.empty()) {
      // The error does not show the line, which may hold a password.
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: the line of {} {}", file, number, contract::Quoted(name), problem));
    }
    variables[std::string(name)] = std::move(value);
  }
  return variables;
}

}  // namespace muster::cli::sky
