#include "clients/cli/audit_flags.h"

#include <fmt/format.h>

#include <string>

#include "absl/time/clock.h"
#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// A time in RFC 3339, or a duration before now.
absl::Time ReadTime(const std::string& flag, const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  const absl::StatusOr<absl::Duration> before = contract::ParseDuration(text);
  if (before.ok()) return absl::Now() - *before;
  throw CLI::ValidationError(
      flag, fmt::format("{} is neither a duration, e.g. 2d, nor a time, e.g. 2026-01-31T09:00:00Z",
                        contract::Quoted(text)));
}

void AddTime(CLI::App* sub, const std::string& flag, const std::string& description,
             absl::Time* out) {
  AddText(sub, flag, "TIME", description,
          [flag, out](const std::string& text) { *out = ReadTime(flag, text); });
}

void AddVerify(CLI::App* audit, Invocation* out) {
  CLI::App* verify = audit->add_subcommand(
      "verify",
      "Compare every record with the chain; exit code 1: the log is not what was written");
  verify->footer(Footer("audit verify --known 4711:9f86d081..."));
  AddText(verify, "--known", "SEQ:HASH",
          "A record that was noted elsewhere, as the broker's log has it in audit_head: it must be "
          "in the log",
          [out](const std::string& text) { out->audit.known = text; });
}

}  // namespace

void AddAuditVerbs(CLI::App* app, Invocation* out) {
  AuditFlags* const flags = &out->audit;
  CLI::App* sub = app->add_subcommand(
      "audit", "List who did what, the oldest first; for admins. -o jsonl is for export");
  sub->footer(Footer("audit --since 7d --user ada --action JobsService.CancelJobs -o jsonl"));
  AddTime(sub, "--since", "From this time on, or from so long ago; default: 1d", &flags->since);
  AddTime(sub, "--until", "Before this time, or up to so long ago", &flags->until);
  AddText(sub, "--user", "TEXT", "Only what this user did",
          [flags](const std::string& text) { flags->user = text; });
  AddText(sub, "--action", "TEXT", "Only this call, as JobsService.CancelJobs, or this service",
          [flags](const std::string& text) { flags->action = text; });
  AddText(sub, "--result", "TEXT", "Only this result: OK, or the reason of an error",
          [flags](const std::string& text) { flags->result = text; });
  AddNumber(sub, "--job", 1, kUnlimited, "Only what concerns this job",
            [flags](int64_t job) { flags->job = static_cast<uint64_t>(job); });
  AddVerify(sub, out);
  sub->callback([sub, out] {
    const bool is_list = sub->get_subcommands().empty();
    out->verb = is_list ? Verb::kAuditList : Verb::kAuditVerify;
  });
}

}  // namespace muster::cli
