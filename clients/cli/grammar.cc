#include "clients/cli/grammar.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "clients/cli/audit_flags.h"
#include "clients/cli/change_flags.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/completion_scripts.h"
#include "clients/cli/look_flags.h"
#include "clients/cli/options.h"
#include "clients/cli/own_verbs.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/project_flags.h"
#include "clients/cli/secret_flags.h"
#include "clients/cli/shape.h"
#include "clients/cli/signal_flags.h"
#include "clients/cli/slurm/sbatch_help.h"
#include "clients/cli/submit_flags.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

constexpr std::string_view kFooter = R"(
Results go to standard output, everything else to standard error.
Exit codes: 0 ok, 1 error, 2 usage, 4 not allowed, 8 time-out; of a job that was waited for:
10 failed (muster show prints the program's exit code), 11 canceled, 12 failed because of its cluster; 13 no cluster can run it, or it names an unknown one.)";

void SetFormat(const std::string& name, Invocation* out) {
  constexpr std::string_view kJsonPath = "jsonpath=";
  constexpr std::string_view kTemplate = "template=";
  const bool is_path = name.starts_with(kJsonPath);
  if (is_path || name.starts_with(kTemplate)) {
    const std::string_view text = std::string_view(name).substr(kJsonPath.size());
    static_assert(kJsonPath.size() == kTemplate.size());
    auto shape = is_path ? Shape::ParseJsonPath(text) : Shape::ParseTemplate(text);
    if (!shape.ok()) throw CLI::ValidationError("--output", std::string(shape.status().message()));
    out->format = is_path ? Format::kJsonPath : Format::kTemplate;
    out->shape = std::make_shared<Shape>(*std::move(shape));
    return;
  }
  out->format = ParseFormat(name);
  if (out->format) return;
  throw CLI::ValidationError("--output", fmt::format("{} is not {}, jsonpath=TEXT or template=TEXT",
                                                     contract::Quoted(name), kFormatNames));
}

void AddClusters(CLI::App* app, Invocation* out) {
  const auto name = [out](const std::string& text) { out->cluster = text; };
  AddClusterFlags(
      AddVerb(app, out, "clusters", Verb::kClusters,
              "Show the clusters, or one in detail; invite or revoke its agent; cordon it",
              "clusters -o wide\n  muster clusters cordon lab --reason 'new drivers'"),
      out);
  AddText(AddVerb(app, out, "check", Verb::kCheck,
                  "Check everything that jobs need on a cluster; exit with 1 if a check fails",
                  "check lab"),
          "NAME", "", "The cluster's name", name)
      ->required();
  AddText(AddVerb(app, out, "forget", Verb::kForget,
                  "Forget a cluster that is gone; its agent must be stopped, and its runs ended",
                  "forget lab"),
          "NAME", "", "The cluster's name", name)
      ->required();
}

void AddOwnVerbs(CLI::App* app, Invocation* out) {
  for (const OwnVerb& verb : OwnVerbs()) {
    CLI::App* sub =
        AddVerb(app, out, std::string(verb.name), verb.verb, std::string(verb.description), "");
    sub->footer([&verb] {
      return std::string(verb.help) + (verb.verb == Verb::kSbatch ? "\n\n" + SbatchHelp() : "");
    });
    sub->footer("\nAlso, before the verb: --broker ADDRESS; see muster --help.");
  }
}

void AddCompletion(CLI::App* app, Invocation* out) {
  CLI::App* sub = AddVerb(app, out, "completion", Verb::kCompletion,
                          "Print what makes a shell complete verbs, flags, jobs and clusters",
                          "completion bash >~/.local/share/bash-completion/completions/muster");
  AddText(sub, "SHELL", "", "bash, zsh or fish", [out](const std::string& shell) {
    if (CompletionScript(shell).empty()) {
      throw CLI::ValidationError(
          "SHELL", fmt::format("{} is not bash, zsh or fish", contract::Quoted(shell)));
    }
    out->shell = shell;
  })->required();
}

}  // namespace

void AddGrammar(CLI::App* app, VerbsOf verbs, Invocation* out) {
  app->footer(std::string(kFooter));
  app->require_subcommand(1);
  app->fallthrough();
  app->set_version_flag("--version", std::string("muster " MUSTER_VERSION));
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddConnectionFlags(app, out);
  app->add_option_function<std::string>(
         "-o,--output", [out](const std::string& name) { SetFormat(name, out); },
         std::string(kFormatNames) + "; jsonpath=TEXT, template=TEXT")
      ->type_name("FORMAT");
  app->add_flag("-q,--quiet", out->quiet, "Print only ids, without remarks");
  if (verbs == VerbsOf::kOwnWords) return AddOwnVerbs(app, out);
  AddSubmitVerbs(app, out);
  AddListVerbs(app, out);
  AddChangeVerbs(app, out);
  AddFollowVerbs(app, out);
  AddClusters(app, out);
  AddPlanVerb(app, out);
  AddPeopleVerbs(app, out);
  AddSecretVerbs(app, out);
  AddSignalVerb(app, out);
  AddProjectVerbs(app, out);
  AddAuditVerbs(app, out);
  AddOwnVerbs(app, out);
  AddFileVerbs(app, out);
  AddCompletion(app, out);
  AddVerb(app, out, "version", Verb::kVersion, "Print this program's version", "version");
}

}  // namespace muster::cli
