#include "clients/cpp/skypilot/envs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "clients/cpp/skypilot/scalar.h"
#include "clients/cpp/skypilot/values.h"
#include "contract/characters.h"
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
void TakeRegistry(YamlReader& in, Ignored& ignored, const YamlValue& value, v1::JobSpec* spec) {
  std::vector<std::string_view> missing;
  for (const char* name : kRegistry) {
    if (spec->env().count(name) == 0) missing.emplace_back(name);
  }
  if (missing.size() == std::size(kRegistry)) return;
  if (!missing.empty()) {
    return in.Problem(value,
                      fmt::format("the registry's credentials are incomplete; {} {} missing",
                                  fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"));
  }
  for (const char* name : kRegistry) spec->mutable_env()->erase(name);
  ignored.Remark(in, value,
                 "SKYPILOT_DOCKER_* is left out, because the credentials of registries "
                 "are the cluster's own here");
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

void RefuseSecrets(YamlReader& in, const YamlValue& value) {
  in.Problem(
      value,
      "Muster keeps no secrets yet, and a value in the file would be kept in clear text; let "
      "the command read it from a file of the cluster that you alone may read, or write it "
      "under envs if everybody may see it");
}

}  // namespace muster::client::skypilot
