#include "clients/cli/audit_flags.h"

#include <string>

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/time_flag.h"

namespace muster::cli {
namespace {

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
