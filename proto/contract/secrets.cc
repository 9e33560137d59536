#include "contract/secrets.h"

#include <algorithm>
#include <set>
#include <string>

#include "contract/characters.h"
#include "contract/program.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

bool IsInEnv(const v1::JobSpec& spec, const std::string& variable) {
  return spec.env().contains(variable) ||
         std::any_of(spec.roles().begin(), spec.roles().end(),
                     [&](const v1::Role& role) { return role.env().contains(variable); });
}

}  // namespace

bool IsSecretName(std::string_view name) {
  const auto is_first = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; };
  return !name.empty() && name.size() <= kMaxSecretNameBytes && is_first(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_first(c) || c == '-' || c == '.'; });
}

void CheckSecretName(std::string_view field, std::string_view name, FieldErrors* errors) {
  if (IsSecretName(name)) return;
  errors->Add(field, fmt::format("{} is not a secret's name; use 1 to {} letters, digits, '-', '_' "
                                 "and '.', with a letter, a digit or '_' first",
                                 Quoted(name), kMaxSecretNameBytes));
}

void CheckSecrets(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.secrets_size() > static_cast<int>(kMaxJobSecrets)) {
    errors->Add("secrets",
                fmt::format("{} secrets; use at most {}", spec.secrets_size(), kMaxJobSecrets));
    return;
  }
  std::set<std::string_view> seen;
  for (int i = 0; i < spec.secrets_size(); ++i) {
    const v1::SecretUse& use = spec.secrets(i);
    const std::string field = fmt::format("secrets[{}].variable", i);
    google::protobuf::Map<std::string, std::string> alone;
    alone[use.variable()] = "";
    CheckEnv(field, alone, errors);
    if (!seen.insert(use.variable()).second) {
      errors->Add(field, fmt::format("{} is there twice; give each secret a variable of its own",
                                     Quoted(use.variable())));
    } else if (IsInEnv(spec, use.variable())) {
      errors->Add(field, fmt::format("{} is in env, too; take it out of one of them",
                                     Quoted(use.variable())));
    }
    CheckSecretName(fmt::format("secrets[{}].name", i), use.name(), errors);
  }
}

}  // namespace muster::contract
