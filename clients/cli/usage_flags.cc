#include "clients/cli/usage_flags.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/time_flag.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

v1::UsageGrouping ReadGrouping(std::string_view text) {
  constexpr std::pair<std::string_view, v1::UsageGrouping> kGroupings[] = {
      {"project", v1::USAGE_GROUPING_PROJECT},
      {"user", v1::USAGE_GROUPING_USER},
      {"cluster", v1::USAGE_GROUPING_CLUSTER},
      {"day", v1::USAGE_GROUPING_DAY}};
  for (const auto& [name, grouping] : kGroupings) {
    if (name == text) return grouping;
  }
  throw CLI::ValidationError(
      "--by", fmt::format("cannot tell usage by {}; use project, user, cluster or day",
                          contract::Quoted(text)));
}

}  // namespace

void AddUsageVerb(CLI::App* app, Invocation* out) {
  UsageFlags* const flags = &out->usage;
  CLI::App* sub = app->add_subcommand(
      "usage", "Show the hours of GPUs and cores that runs have used, by whole days in UTC");
  sub->footer(Footer("usage --by project,user --since 30d --cluster lab"));
  AddText(sub, "--by", "WHAT[,WHAT...]", "Rows: project, user, cluster or day; default: project",
          [flags](const std::string& text) {
            for (const std::string_view part : contract::Split(text, ','))
              flags->by.push_back(ReadGrouping(part));
          });
  AddTime(sub, "--since", "From the day of this time on, or of so long ago; default: 30d",
          &flags->since);
  AddTime(sub, "--until", "Up to the day of this time, or of so long ago; default: today",
          &flags->until);
  AddText(sub, "--project", "NAME", "Only of this project",
          [flags](const std::string& text) { flags->project = text; });
  AddText(sub, "--user", "NAME", "Only of this user",
          [flags](const std::string& text) { flags->user = text; });
  AddText(sub, "--cluster", "NAME", "Only on this cluster",
          [flags](const std::string& text) { flags->cluster = text; });
  sub->callback([out] { out->verb = Verb::kUsage; });
}

}  // namespace muster::cli
