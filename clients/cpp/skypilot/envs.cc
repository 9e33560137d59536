#include "clients/cpp/skypilot/envs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "clients/cpp/skypilot/scalar.h"
#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
#include "contract/secrets.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::client::skypilot {
namespace {

constexpr const char* kRegistry[] = {"SKYPILOT_DOCKER_USERNAME", "SKYPILOT_DOCKER_PASSWORD",
                                     "SKYPILOT_DOCKER_SERVER"};

bool CheckName(YamlReader& in, const YamlValue& value, const std::string& name) {
  if (contract::IsVariableName(name)) return true;
  in.Problem(value, fmt::format("{} cannot name a variable; use letters, digits and '_', not a "
                                "digit first",
                                contract::Quoted(name)));
  return false;
}

// A name that YAML takes for something else would become another one.
void CheckKeys(YamlReader& in, const YamlValue& value) {
  if (!value.node.IsMap()) return;
  for (const auto& entry : value.node) {
    const Scalar key = ReadScalar(entry.first);
    if (key.kind != ScalarKind::kBool) continue;
    in.Problem(YamlValue{entry.first, value.path},
               fmt::format("the name {} without quotes is {} in YAML; write it in quotes",
                           entry.first.Scalar(), key.text));
  }
}

// All or none of what a registry wants to know.
void RemarkOnRegistry(YamlReader& in, Ignored& ignored, const YamlValue& value,
                      const std::vector<std::string_view>& missing) {
  if (missing.size() == std::size(kRegistry)) return;
  if (!missing.empty()) {
    return in.Problem(value,
                      fmt::format("the registry's credentials are incomplete; {} {} missing",
                                  fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"));
  }
  ignored.Remark(in, value,
                 "SKYPILOT_DOCKER_* is left out, because the credentials of registries "
                 "are the cluster's own here");
}

void TakeRegistry(YamlReader& in, Ignored& ignored, const YamlValue& value, v1::JobSpec* spec) {
  std::vector<std::string_view> missing;
  for (const char* name : kRegistry) {
    if (spec->env().count(name) == 0) missing.emplace_back(name);
  }
  RemarkOnRegistry(in, ignored, value, missing);
  if (!missing.empty()) return;
  for (const char* name : kRegistry) spec->mutable_env()->erase(name);
}

void AddUse(const std::string& variable, const std::string& name, v1::JobSpec* spec) {
  v1::SecretUse* use = spec->add_secrets();
  use->set_variable(variable);
  use->set_name(name);
}

void AddValue(const std::string& variable, std::string text, size_t job, v1::JobSpec* spec,
              std::vector<LocalSecret>* local) {
  local->push_back({job, spec->secrets_size(), std::move(text)});
  AddUse(variable, std::string(kUnsetSecret), spec);
}

// Adds "secrets:NAME", a secret that the server has; SkyPilot's scopes before the name are left
// out.
void AddReference(YamlReader& in, const YamlValue& item, v1::JobSpec* spec) {
  constexpr std::string_view kPrefix = "secrets:";
  std::string text;
  if (!ReadText(in, item, &text)) return;
  if (!text.starts_with(kPrefix)) {
    return in.Problem(item, fmt::format("{} is not secrets:NAME", contract::Quoted(text)));
  }
  std::string name = text.substr(kPrefix.size());
  for (const std::string_view scope : {"personal.", "workspace.", "global."}) {
    if (name.starts_with(scope)) name.erase(0, scope.size());
  }
  if (CheckName(in, item, name)) AddUse(name, name, spec);
}

// Returns the value that the command line, the file or the caller has for a secret; nothing if
// nobody has one.
std::optional<std::string> ValueOf(YamlReader& in, const YamlValue& value, const std::string& name,
                                   const JobFileOptions& options) {
  if (const auto given = options.secrets.find(name); given != options.secrets.end())
    return given->second;
  if (value.node.IsNull()) {
    const char* own =
        options.own_variable == nullptr ? nullptr : options.own_variable(name.c_str());
    return own == nullptr ? std::nullopt : std::optional<std::string>(own);
  }
  const absl::StatusOr<std::string> text = PythonText(value.node);
  if (!text.ok()) in.ProblemOf(value, text.status());
  return text.value_or("");
}

// Does as TakeRegistry.
void LeaveRegistry(YamlReader& in, Ignored& ignored, const YamlValue& value,
                   std::map<std::string, std::optional<std::string>>* values) {
  std::vector<std::string_view> missing;
  for (const char* name : kRegistry) {
    if (!values->contains(name)) missing.emplace_back(name);
  }
  RemarkOnRegistry(in, ignored, value, missing);
  if (missing.empty()) {
    for (const char* name : kRegistry) values->erase(name);
  }
}

}  // namespace

void ReadEnvs(YamlReader& in, Ignored& ignored, const YamlValue& value,
              const std::map<std::string, std::string>& given, v1::JobSpec* spec) {
  if (value.node.IsNull()) return in.Problem(value, "is empty; write {} or leave it out");
  CheckKeys(in, value);
  in.StandsFor(value, "env");
  in.Entries(value, [&](const std::string& name, const YamlValue& inner) {
    if (!CheckName(in, inner, name)) return;
    in.StandsFor(inner, fmt::format("env[{}]", contract::Quoted(name)));
    if (spec->env_size() == contract::kMaxEnvVars) {
      return in.Problem(inner, fmt::format("{} variables are the most", contract::kMaxEnvVars));
    }
    if (const auto own = given.find(name); own != given.end()) {
      (*spec->mutable_env())[name] = own->second;
      return;
    }
    if (inner.node.IsNull()) {
      return in.Problem(inner, fmt::format("has no value; give it one with --env {}=VALUE, or "
                                           "write \"\" for an empty one",
                                           name));
    }
    const absl::StatusOr<std::string> text = PythonText(inner.node);
    if (!text.ok()) return in.ProblemOf(inner, text.status());
    (*spec->mutable_env())[name] = *text;
  });
  TakeRegistry(in, ignored, value, spec);
}

void ReadSecrets(YamlReader& in, Ignored& ignored, const YamlValue& value,
                 const JobFileOptions& options, size_t job, v1::JobSpec* spec,
                 std::vector<LocalSecret>* local) {
  if (value.node.IsSequence()) {
    return in.List(value, [&](const YamlValue& item) { AddReference(in, item, spec); });
  }
  CheckKeys(in, value);
  std::map<std::string, std::optional<std::string>> values;
  in.Entries(value, [&](const std::string& name, const YamlValue& inner) {
    if (!CheckName(in, inner, name)) return;
    std::optional<std::string> own = ValueOf(in, inner, name, options);
    if (own.has_value() && own->size() > contract::kMaxSecretBytes) {
      return in.Problem(inner, fmt::format("has {} bytes; a secret has at most {}", own->size(),
                                           contract::kMaxSecretBytes));
    }
    values[name] = std::move(own);
  });
  LeaveRegistry(in, ignored, value, &values);
  for (auto& [name, text] : values) {
    spec->mutable_env()->erase(name);
    if (text.has_value() && text->empty()) {
      (*spec->mutable_env())[name] = "";  // there is nothing to keep
    } else if (text.has_value()) {
      AddValue(name, *std::move(text), job, spec, local);
    } else {
      AddUse(name, name, spec);
    }
  }
}

void AddGivenSecrets(const JobFileOptions& options, size_t job, v1::JobSpec* spec,
                     std::vector<LocalSecret>* local) {
  for (const auto& [name, text] : options.secrets) {
    const bool is_there =
        std::any_of(spec->secrets().begin(), spec->secrets().end(),
                    [&](const v1::SecretUse& use) { return use.variable() == name; });
    if (is_there) continue;
    spec->mutable_env()->erase(name);
    AddValue(name, text, job, spec, local);
  }
}

}  // namespace muster::client::skypilot
