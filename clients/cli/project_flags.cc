#include "clients/cli/project_flags.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/quotas.h"
#include "clients/cli/usage_flags.h"
#include "contract/characters.h"
#include "contract/project_shares.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

CLI::App* AddProjectVerb(CLI::App* group, Invocation* out, const std::string& name, Verb verb,
                         const std::string& description, std::string_view example) {
  CLI::App* sub = group->add_subcommand(name, description);
  sub->footer(Footer(example));
  sub->callback([out, verb] { out->verb = verb; });
  AddText(sub, "NAME", "", "The project's name", [out](const std::string& text) {
    out->project.name = text;
  })->required();
  return sub;
}

// A list of what a project may use; "any" alone makes it empty.
void AddAllowed(CLI::App* sub, const std::string& flag, const std::string& description,
                std::optional<std::vector<std::string>>* list) {
  AddText(sub, flag, "TEXT", description + "; again for more of them; any: no limit",
          [list](const std::string& value) {
            if (!list->has_value()) list->emplace();
            if (value != "any") (*list)->push_back(value);
          })
      ->trigger_on_parse();
}

// A quota; what is wrong with it is said before anything is sent.
void AddQuota(CLI::App* sub, const std::string& flag, const std::string& description,
              std::optional<std::string>* quota) {
  AddText(sub, flag, "BOUNDS", description, [flag, quota](const std::string& text) {
    const auto parsed = ParseQuota(text);
    if (!parsed.ok())
      throw CLI::ValidationError(flag, std::string(ToStd(parsed.status().message())));
    *quota = text;
  });
}

void AddShare(CLI::App* sub, ProjectFlags* flags) {
  AddNumber(sub, "--weight", 1, contract::kMaxWeight,
            "The weight of its share beside other projects; 1 unless given",
            [flags](int64_t weight) { flags->weight = static_cast<uint32_t>(weight); });
  AddText(sub, "--parent", "PROJECT", "Its share is a part of that project's; none: of its own",
          [flags](const std::string& name) { flags->parent = name == "none" ? "" : name; });
  AddQuota(sub, "--quota",
           "The most that its jobs may have at the same time, e.g. "
           "queued=100,active=10,gpus=8,gpus:h100=4; none: no bound",
           &flags->quota);
  AddQuota(sub, "--user-quota", "The same for the jobs of each user in it", &flags->user_quota);
}

void AddDescription(CLI::App* sub, ProjectFlags* flags) {
  AddText(sub, "--description", "TEXT", "A text for people",
          [flags](const std::string& text) { flags->description = text; });
  AddAllowed(sub, "--cluster", "Its jobs may use this cluster only", &flags->clusters);
  AddAllowed(sub, "--pool",
             "This pool only: a partition of Slurm, a namespace of Kubernetes, a pool of machines",
             &flags->pools);
  AddAllowed(sub, "--account", "This account of Slurm only", &flags->accounts);
  AddAllowed(sub, "--image", "Images only whose names begin so, e.g. nvcr.io/nvidia",
             &flags->images);
  AddShare(sub, flags);
}

void AddMember(CLI::App* sub, ProjectFlags* flags) {
  AddText(sub, "MEMBER", "", "A user, as muster whoami says it", [flags](const std::string& text) {
    flags->member = text;
  })->required();
  sub->add_flag("--group", flags->is_group, "The member is a group");
}

void AddMemberRole(CLI::App* sub, ProjectFlags* flags) {
  AddText(
      sub, "--role", "ROLE", "viewer, submitter, operator or admin, of this project's jobs",
      [flags](const std::string& name) {
        const std::string upper = "ACCESS_ROLE_" + absl::AsciiStrToUpper(ToAbsl(name));
        if (v1::AccessRole_Parse(upper, &flags->role) &&
            flags->role != v1::ACCESS_ROLE_UNSPECIFIED && flags->role != v1::ACCESS_ROLE_MEMBER) {
          return;
        }
        throw CLI::ValidationError(
            "--role",
            fmt::format("{} is not viewer, submitter, operator or admin", contract::Quoted(name)));
      })
      ->required();
}

}  // namespace

void AddProjectVerbs(CLI::App* app, Invocation* out) {
  AddUsageVerb(app, out);
  ProjectFlags* const flags = &out->project;
  CLI::App* list = app->add_subcommand("projects", "List the projects that you may see");
  list->footer(Footer("projects"));
  list->callback([out] { out->verb = Verb::kProjectList; });
  list->add_flag("--all", flags->all, "Also archived ones");
  CLI::App* group =
      app->add_subcommand("project", "Make and change projects, and say who is a member");
  group->footer(Footer("project add vision ada --role submitter"));
  group->require_subcommand(1);
  AddDescription(AddProjectVerb(group, out, "create", Verb::kProjectCreate, "Make a project",
                                "project create vision --cluster lab --pool gpu"),
                 flags);
  AddProjectVerb(group, out, "show", Verb::kProjectShow, "Show a project and its members",
                 "project show vision");
  CLI::App* set = AddProjectVerb(group, out, "set", Verb::kProjectSet,
                                 "Change what a project's jobs may use; each list that is given "
                                 "replaces the old one",
                                 "project set vision --cluster lab --cluster lab2 --image any");
  AddDescription(set, flags);
  set->add_flag("--restore", flags->restore, "An archived project takes jobs again");
  CLI::App* add = AddProjectVerb(group, out, "add", Verb::kProjectAdd,
                                 "Make a user or a group a member, or give a member another role",
                                 "project add vision ada --role submitter");
  AddMember(add, flags);
  AddMemberRole(add, flags);
  AddMember(AddProjectVerb(group, out, "remove", Verb::kProjectRemove, "End a membership",
                           "project remove vision ada"),
            flags);
  AddProjectVerb(group, out, "archive", Verb::kProjectArchive,
                 "Let a project take no more jobs; delete it if the broker has no job of it",
                 "project archive vision");
}

}  // namespace muster::cli
