#include "contract/program.h"

#include <algorithm>

#include "contract/characters.h"
#include "contract/validate.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

using Words = google::protobuf::RepeatedPtrField<std::string>;

bool HasNul(std::string_view text) { return text.find('\0') != text.npos; }

void CheckWords(std::string_view field, const Words& words, FieldErrors* errors) {
  if (words.size() > static_cast<int>(kMaxArgs)) {
    errors->Add(field, fmt::format("{} arguments; use at most {}", words.size(), kMaxArgs));
  }
  for (int i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    // The place is written for errors alone, because every job that is submitted comes here.
    const auto place = [&] { return fmt::format("{}[{}]", field, i); };
    if (word.size() > kMaxArgBytes) {
      errors->Add(place(),
                  fmt::format("{} bytes; Linux takes at most {} for one argument, put more "
                              "into a file",
                              word.size(), kMaxArgBytes));
    }
    if (HasNul(word)) errors->Add(place(), "holds a NUL byte, which no argument can carry");
    if (!IsUtf8(word)) errors->Add(place(), "is not UTF-8");
  }
}

}  // namespace

void CheckScriptText(std::string_view field, std::string_view script, FieldErrors* errors) {
  if (HasNul(script)) errors->Add(field, "holds a NUL byte; scripts are text");
  if (!IsUtf8(script)) errors->Add(field, "is not UTF-8; scripts are text");
}

void CheckCommand(std::string_view field, const v1::Command& command, FieldErrors* errors) {
  const auto arguments = [field] { return fmt::format("{}.script_arguments", field); };
  const auto& words = command.argv().args();
  switch (command.form_case()) {
    case v1::Command::kArgv:
      if (words.empty() || words[0].empty()) {
        errors->Add(fmt::format("{}.argv.args", field),
                    "names no program; give at least the program");
      }
      CheckWords(fmt::format("{}.argv.args", field), words, errors);
      if (command.script_arguments_size() > 0) {
        errors->Add(arguments(),
                    fmt::format("only a script has them; put them into {}.argv.args", field));
      }
      return;
    case v1::Command::kScript:
      if (command.script().find_first_not_of(" \t\r\n") == std::string::npos) {
        errors->Add(fmt::format("{}.script", field), "is empty; give the script's text");
      }
      CheckScriptText(fmt::format("{}.script", field), command.script(), errors);
      CheckWords(arguments(), command.script_arguments(), errors);
      return;
    default:
      errors->Add(field,
                  fmt::format("is missing; in a job file give run (a script) or command (words), "
                              "in the API {0}.argv or {0}.script",
                              field));
  }
}

void CheckEnv(std::string_view field, const google::protobuf::Map<std::string, std::string>& env,
              FieldErrors* errors, bool (*is_free)(std::string_view)) {
  if (env.size() > kMaxEnvVars) {
    errors->Add(field, fmt::format("{} variables; use at most {}", env.size(), kMaxEnvVars));
  }
  for (const auto& [name, value] : env) {
    const std::string place = fmt::format("{}[{}]", field, Quoted(name));
    if (!IsVariableName(name)) {
      errors->Add(place, "not a variable's name; use [A-Za-z_][A-Za-z0-9_]*");
    }
    for (std::string_view prefix : {"LD_", "SLURM_", "MUSTER_"}) {
      if (std::string_view(name).starts_with(prefix) && !is_free(name)) {
        errors->Add(place, fmt::format("{}* is set by the cluster and Muster; set it in the "
                                       "command if you must",
                                       prefix));
      }
    }
    if (name.size() + 1 + value.size() > kMaxArgBytes) {
      errors->Add(place, fmt::format("{} bytes; Linux takes at most {} for one variable, put more "
                                     "into a file",
                                     name.size() + 1 + value.size(), kMaxArgBytes));
    }
    if (HasNul(value)) errors->Add(place, "holds a NUL byte, which no variable can carry");
    if (!IsUtf8(value)) errors->Add(place, "is not UTF-8");
  }
}

}  // namespace muster::contract
