#include "clients/cli/secret_flags.h"

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"

namespace muster::cli {
namespace {

void AddName(CLI::App* sub, SecretFlags* flags) {
  AddText(sub, "NAME", "", "The secret's name: letters, digits, '-', '_' and '.'",
          [flags](const std::string& name) { flags->name = name; })
      ->required();
}

void AddProject(CLI::App* sub, SecretFlags* flags, const std::string& description) {
  AddText(sub, "--project", "TEXT", description,
          [flags](const std::string& project) { flags->project = project; });
}

}  // namespace

void AddSecretUses(CLI::App* sub, SpecFlags* spec) {
  AddRepeated(sub, "--secret", "VAR=NAME",
              "An environment variable with the value of a secret (muster secret set NAME)",
              &spec->secrets);
  AddRepeated(sub, "--secret-file", "VAR=NAME",
              "An environment variable with the path of a file that has the secret's value",
              &spec->secret_files);
}

void AddSecretVerbs(CLI::App* app, Invocation* out) {
  SecretFlags* const flags = &out->secret;
  CLI::App* group =
      AddGroup(app, "secret", "Set, list and remove secrets for jobs", "secret set hf <hf.token");
  CLI::App* set = AddVerb(
      group, out, "set", Verb::kSecretSet,
      "Set a secret to what standard input has, less a newline at its end; a terminal is asked",
      "secret set hf --from-file hf.token");
  AddName(set, flags);
  AddProject(set, flags, "For all jobs of this project, in place of your own");
  AddText(set, "--from-file", "PATH", "Take this file, byte by byte, in place of standard input",
          [flags](const std::string& path) { flags->from_file = path; });
  CLI::App* list = AddVerb(group, out, "list", Verb::kSecretList,
                           "List your secrets and those of projects, without their values",
                           "secret list --project vision");
  AddProject(list, flags, "Only those of this project");
  CLI::App* remove =
      AddVerb(group, out, "rm", Verb::kSecretDelete, "Remove a secret", "secret rm hf");
  AddName(remove, flags);
  AddProject(remove, flags, "That of this project, in place of your own");
}

}  // namespace muster::cli
