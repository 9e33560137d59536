#include "clients/cli/people_flags.h"

#include <fmt/format.h>

#include <tuple>

#include "absl/strings/ascii.h"
#include "clients/cli/options.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

void AddRole(CLI::App* sub, IdentityFlags* flags) {
  AddText(sub, "--role", "ROLE", "member, viewer, submitter, operator or admin",
          [flags](const std::string& name) {
            const std::string upper = "ACCESS_ROLE_" + absl::AsciiStrToUpper(ToAbsl(name));
            if (v1::AccessRole_Parse(upper, &flags->role) &&
                flags->role != v1::ACCESS_ROLE_UNSPECIFIED) {
              return;
            }
            throw CLI::ValidationError(
                "--role", fmt::format("{} is not member, viewer, submitter, operator or admin",
                                      contract::Quoted(name)));
          })
      ->default_str("submitter");
}

CLI::Option* AddServiceAccount(CLI::App* sub, const std::string& help, IdentityFlags* flags) {
  return AddText(sub, "--service-account", "NAME", help, [flags](const std::string& name) {
    flags->user = std::string(kServiceAccountPrefix) + name;
  });
}

void AddTokenVerbs(CLI::App* app, Invocation* out) {
  IdentityFlags* const flags = &out->identity;
  CLI::App* group =
      AddGroup(app, "token", "Make, list and revoke tokens", "token create laptop --expires 30d");
  CLI::App* create =
      AddVerb(group, out, "create", Verb::kTokenCreate,
              "Make a token and print it, which is the only time that anybody sees it",
              "token create ci --role submitter --user build --expires 30d --file ci.token");
  AddText(create, "NAME", "", "A name: letters, digits, '-', '_' and '.'",
          [flags](const std::string& name) { flags->name = name; })
      ->required();
  AddRole(create, flags);
  CLI::Option* user = AddText(create, "--user", "TEXT", "The user for whom it speaks; default: you",
                              [flags](const std::string& user) { flags->user = user; });
  AddServiceAccount(create, "The service account for which it speaks: no person", flags)
      ->excludes(user);
  AddText(create, "--expires", "DURATION", "It ends after this time, 1s to 366d",
          [flags](const std::string& text) {
            const auto parsed = contract::ParseDuration(text);
            if (!parsed.ok()) {
              throw CLI::ValidationError("--expires", fmt::format("{} is not a duration, e.g. 30d",
                                                                  contract::Quoted(text)));
            }
            flags->lifetime = *parsed;
          })
      ->default_str("90d");
  AddText(create, "--file", "PATH",
          "Write it into this new file, for you alone, and do not print it",
          [flags](const std::string& path) { flags->file = path; });
  create->add_flag("--bundle", flags->bundle,
                   "Write the broker's network address and its CA beside it: all that muster "
                   "context import takes on another machine");
  CLI::App* list = AddVerb(group, out, "list", Verb::kTokenList, "List your tokens; an admin, all",
                           "token list --all");
  CLI::Option* of_user = AddText(list, "--user", "TEXT", "Only those of this user",
                                 [flags](const std::string& user) { flags->user = user; });
  AddServiceAccount(list, "Only those of this service account", flags)->excludes(of_user);
  list->add_flag("--service-accounts", flags->service_accounts, "Only those of service accounts")
      ->excludes(of_user);
  list->add_flag("--all", flags->all, "Also those that have ended");
  CLI::App* revoke =
      AddVerb(group, out, "revoke", Verb::kTokenRevoke,
              "End a token, and those that were made with it, at once", "token revoke 3");
  AddText(revoke, "ID", "", "The token's number, or its name", [flags](const std::string& name) {
    flags->name = name;
  })->required();
}

void AddContextVerbs(CLI::App* app, Invocation* out) {
  CLI::App* group = AddGroup(app, "context", "Name brokers, and choose one", "context use lab");
  AddVerb(group, out, "list", Verb::kContextList, "List the contexts", "context list");
  const std::tuple<std::string, Verb, std::string, std::string_view> verbs[] = {
      {"use", Verb::kContextUse, "Talk to this broker from now on", "context use lab"},
      {"set", Verb::kContextSet,
       "Make or change a context: the values of --broker, --token-file and --ca-file",
       "context set lab --broker unix:/run/muster/broker.sock --token-file ~/.config/muster/lab"},
      {"import", Verb::kContextImport,
       "Make a context from a bundle of muster token create, and use it from now on",
       "context import lab <lab.bundle"},
      {"delete", Verb::kContextDelete, "Delete a context; its token stays in its file",
       "context delete lab"}};
  for (const auto& [name, verb, description, example] : verbs) {
    CLI::App* const sub = AddVerb(group, out, name, verb, description, example);
    AddText(sub, "NAME", "", "The context's name", [out](const std::string& text) {
      out->identity.name = text;
    })->required();
    if (verb == Verb::kContextSet) {
      AddText(sub, "--fingerprint", "SHA256",
              "Ask the broker at tls:HOST:PORT for the CA with this fingerprint, and keep it in "
              "place of --ca-file",
              [out](const std::string& text) { out->identity.fingerprint = text; });
    }
    if (verb == Verb::kContextImport) {
      AddText(sub, "--file", "PATH", "The bundle; default: standard input",
              [out](const std::string& text) { out->identity.file = text; });
    }
  }
}

}  // namespace

CLI::App* AddVerb(CLI::App* app, Invocation* out, const std::string& name, Verb verb,
                  const std::string& description, std::string_view example) {
  CLI::App* sub = app->add_subcommand(name, description);
  sub->footer(Footer(example));
  sub->callback([out, verb] { out->verb = verb; });
  return sub;
}

CLI::App* AddGroup(CLI::App* app, const std::string& name, const std::string& description,
                   std::string_view example) {
  CLI::App* group = app->add_subcommand(name, description);
  group->footer(Footer(example));
  group->require_subcommand(1);
  return group;
}

std::string Footer(std::string_view example) {
  return fmt::format(
      "For example:\n  muster {}\n\nAlso: --broker ADDRESS, -o FORMAT and -q; see muster "
      "--help.",
      example);
}

void AddConnectionFlags(CLI::App* app, Invocation* out) {
  CLI::Option* broker =
      app->add_option("--broker", out->broker,
                      "The broker: unix:PATH, HOST:PORT or tls:HOST:PORT. Default: MUSTER_BROKER, "
                      "else the current "
                      "context, else `broker` in ~/.config/muster/config.yaml, else "
                      "~/.local/state/muster/broker.sock")
          ->type_name("ADDRESS");
  app->add_option("--context", out->context,
                  "The broker and the token of this context. Default: MUSTER_CONTEXT, else that of "
                  "muster context use")
      ->type_name("NAME")
      ->excludes(broker);
  app->add_option("--token-file", out->token_file,
                  "The file with the token. Default: MUSTER_TOKEN, which is the token itself, else "
                  "MUSTER_TOKEN_FILE, else that of the context")
      ->type_name("PATH");
  app->add_option("--ca-file", out->ca_file,
                  "The CA by which the broker at tls:HOST:PORT is known, in PEM. Default: "
                  "MUSTER_CA_FILE, else that of the context")
      ->type_name("PATH");
}

void AddPeopleVerbs(CLI::App* app, Invocation* out) {
  AddVerb(app, out, "login", Verb::kLogin,
          "Log in at the broker's identity provider; you open a page in any browser", "login");
  AddVerb(app, out, "logout", Verb::kLogout, "Forget the login, and tell the provider", "logout");
  AddVerb(app, out, "whoami", Verb::kWhoAmI,
          "Show your user and your role, as the broker sees them", "whoami");
  AddTokenVerbs(app, out);
  AddContextVerbs(app, out);
}

}  // namespace muster::cli
