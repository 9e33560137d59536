#include "clients/cli/slurm/given.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace muster::cli {
namespace {

using client::slurm::CommandWords;
using client::slurm::Option;
using client::slurm::OptionTable;
using client::slurm::Setting;
using client::slurm::Settings;

const std::pair<std::string_view, std::string_view>* FindRefused(Refused refused,
                                                                 std::string_view name) {
  const auto found = std::find_if(refused.begin(), refused.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == refused.end() ? nullptr : &*found;
}

// Adds the variables below the words that were typed, because the last setting counts.
void AddVariables(OptionTable table, Settings* given) {
  std::vector<Setting> settings;
  for (const Option& option : table) {
    if (option.variable.empty()) continue;
    const std::string name(option.variable);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    const bool is_flag = option.argument == Option::Argument::kNone;
    settings.push_back({&option, is_flag ? "" : value, name});
  }
  given->settings.insert(given->settings.begin(), std::make_move_iterator(settings.begin()),
                         std::make_move_iterator(settings.end()));
}

// The options in a line or several, as getopt's users write them.
std::string UsageText(std::string_view verb, OptionTable table, Refused refused) {
  constexpr size_t kWidth = 79;
  std::string flags;
  std::vector<std::string> parts;
  for (const Option& option : table) {
    if (FindRefused(refused, option.name) != nullptr) continue;
    const bool has_value = option.argument != Option::Argument::kNone;
    if (option.letter != 0 && !has_value) {
      flags += option.letter;
    } else if (option.letter != 0) {
      parts.push_back(fmt::format("[-{} {}]", option.letter, option.name));
    } else {
      parts.push_back(fmt::format("[--{}{}]", option.name, has_value ? "=..." : ""));
    }
  }
  parts.insert(parts.begin(), fmt::format("[-{}]", flags));
  std::string text = fmt::format("Usage: muster {}", verb);
  const std::string indent(text.size(), ' ');
  size_t used = text.size();
  for (const std::string& part : parts) {
    const bool is_full = used + 1 + part.size() > kWidth;
    if (is_full) text += "\n" + indent;
    used = (is_full ? indent.size() : used) + 1 + part.size();
    text += " " + part;
  }
  return text + "\n";
}

}  // namespace

absl::Status CheckRefused(const Settings& given, Refused refused) {
  for (const Setting& setting : given.settings) {
    const auto* found = FindRefused(refused, setting.option->name);
    if (found == nullptr) continue;
    const std::string what = IsTyped(setting) ? fmt::format("--{}", setting.option->name)
                                              : fmt::format("the variable {}", setting.where);
    return absl::InvalidArgumentError(fmt::format("{} is not taken; {}", what, found->second));
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandWords> ReadGiven(OptionTable table, const std::vector<std::string>& words,
                                       Refused refused) {
  absl::StatusOr<CommandWords> read = client::slurm::ReadCommandWords(table, words);
  if (!read.ok()) return read;
  AddVariables(table, &read->options);
  if (absl::Status status = CheckRefused(read->options, refused); !status.ok()) return status;
  return read;
}

bool IsTyped(const Setting& setting) { return setting.where == client::slurm::kCommandLine; }

std::string AboutText(std::string_view verb, OptionTable table, Refused refused,
                      const std::vector<std::string>& words) {
  const auto read = client::slurm::ReadCommandWords(table, words);
  if (!read.ok()) return "";
  if (read->options.Find("version") != nullptr) return "muster " MUSTER_VERSION "\n";
  const bool asks = read->options.Find("usage") != nullptr || read->options.Find("help") != nullptr;
  if (!asks) return "";
  return UsageText(verb, table, refused) + fmt::format("Try: muster {} --help\n", verb);
}

}  // namespace muster::cli
