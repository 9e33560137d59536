#include "clients/cli/look_flags.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/tail.h"
#include "contract/characters.h"
#include "contract/units.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

// Adds the options that choose the jobs to list or to count.
void AddConditions(CLI::App* sub, Invocation* out) {
  AddStates(sub, "--state", "Only these states, or held; several times: any of them", &out->states);
  AddOptional(sub, "--name", "TEXT", "Only jobs of this name; * stands for any characters",
              &out->spec.name);
  AddRepeated(sub, "--cluster", "NAME", "Only on this cluster; several times: any of them",
              &out->spec.clusters);
  AddOptional(sub, "--project", "TEXT", "Only of this project", &out->spec.project);
  AddRepeated(sub, "--label", "KEY=VALUE", "Only with this label", &out->spec.labels);
  AddText(sub, "--filter", "TEXT",
          "More conditions, e.g. 'state = FAILED AND end_time > -1d', 'user = ada exit_code = "
          "75', 'NOT cluster = lab AND name = train OR label.team:*' (OR binds tighter than AND)",
          [out](const std::string& filter) { out->filter = filter; });
}

void AddOrderAndLimit(CLI::App* sub, Invocation* out) {
  AddText(sub, "--order-by", "FIELD",
          "id, create_time, start_time, end_time, priority or name, as in 'priority desc'",
          [out](const std::string& order) { out->order_by = order; });
  AddNumber(sub, "--limit", 0, kUnlimited, "At most this many; 0: all", [out](int64_t limit) {
    out->limit = static_cast<uint64_t>(limit);
  })->default_str("100");
  sub->add_flag("-w,--watch", out->watch,
                "Go on: on a terminal refresh the list every 2 s, else print jobs that change");
}

// As docker's and Unix's ps, it lists what is at work unless it is asked for more.
void AddPs(CLI::App* app, Invocation* out) {
  CLI::App* sub = AddVerb(app, out, "ps", Verb::kList,
                          "List the jobs that have not ended, the newest first", "ps");
  sub->callback([out] {
    out->verb = Verb::kList;
    out->only_active = !out->also_ended && out->states.empty();
  });
  sub->add_flag("-a,--all", out->also_ended, "Also those that have ended, as muster list");
  AddConditions(sub, out);
  AddOrderAndLimit(sub, out);
}

void AddLogs(CLI::App* app, Invocation* out) {
  CLI::App* sub = AddVerb(app, out, "logs", Verb::kLogs, "Print the logs of jobs",
                          "logs -f 42\n  muster logs --tail 5 '43_*'\n  muster logs -f --filter "
                          "'state = RUNNING AND label.team = a'");
  AddJobs(sub, true, &out->jobs);
  sub->add_flag("-f,--follow", out->follow,
                "Follow the jobs to their ends, run after run; with a run: its log only");
  AddText(sub, "--filter", "TEXT",
          "The jobs of a filter instead of numbers, the oldest first; at most 1000",
          [out](const std::string& filter) { out->filter = filter; });
  AddNumber(sub, "--run", 1, std::numeric_limits<uint32_t>::max(), "The run; default: the latest",
            [out](int64_t run) { out->run = static_cast<uint32_t>(run); });
  AddNumber(sub, "--rank", 0, contract::kMaxNodes - 1, "The node rank", [out](int64_t rank) {
    out->rank = static_cast<uint32_t>(rank);
  })->default_str("0");
  sub->add_flag("--all-ranks", out->all_ranks, "The logs of all ranks")->excludes("--rank");
  sub->add_flag("--no-prefix", out->no_prefix,
                "Of several logs, do not begin each line with the job and the rank");
  auto* output = sub->add_flag("--stdout", out->only_output, "Only standard output");
  sub->add_flag("--stderr", out->only_error, "Only standard error")->excludes(output);
  auto* tail = AddNumber(sub, "--tail", 0, kMaxTailLines, "Only this many last lines; 0: all",
                         [out](int64_t lines) { out->tail_lines = static_cast<uint32_t>(lines); });
  tail->default_str("0");
  AddNumber(sub, "--since-offset", 0, kUnlimited,
            "The offset in bytes at which to begin; needs --stdout or --stderr",
            [out](int64_t offset) { out->since_offset = static_cast<uint64_t>(offset); })
      ->excludes(tail)
      ->default_str("0");
  sub->add_flag("--raw", out->raw, "Show terminal escapes as they are");
  sub->parse_complete_callback([out] {
    if (out->run > 0 && !out->jobs.empty()) out->jobs[0].run = out->run;
  });
}

void AddEvents(CLI::App* app, Invocation* out) {
  CLI::App* sub =
      AddVerb(app, out, "events", Verb::kEvents,
              "Print the steps of jobs with their evidence; TIME is when Muster learned of a step",
              "events -f 42");
  AddJobs(sub, false, &out->jobs);
  sub->add_flag("-f,--follow", out->follow, "Follow the steps until the jobs have ended");
  AddText(sub, "--filter", "TEXT", "The jobs of a filter instead of numbers; needs -f",
          [out](const std::string& filter) { out->filter = filter; });
  AddNumber(sub, "--since", 0, kUnlimited, "Only after this sequence number", [out](int64_t since) {
    out->since = since;
  })->default_str("0");
}

void AddCopy(CLI::App* app, Invocation* out) {
  CLI::App* sub =
      AddVerb(app, out, "cp", Verb::kCopy, "Copy files that a job has made to this machine",
              "cp 42:results .\n  muster cp --rank 1 42:log.txt - | tail");
  AddJobPath(sub, &out->jobs, &out->path);
  AddText(sub, "TARGET", "", "A directory of yours, or a new name; - is standard output",
          [out](const std::string& target) { out->target = target; })
      ->required();
  AddNumber(sub, "--rank", 0, contract::kMaxNodes - 1, "The node rank", [out](int64_t rank) {
    out->rank = static_cast<uint32_t>(rank);
  })->default_str("0");
}

void AddWait(CLI::App* app, Invocation* out) {
  CLI::App* sub =
      AddVerb(app, out, "wait", Verb::kWait,
              "Wait until jobs have ended; exit with the code of the first that did not succeed",
              "wait --timeout 1h 42 43");
  AddJobs(sub, false, &out->jobs);
  sub->add_option_function<std::string>(
         "--timeout",
         [out](const std::string& text) {
           const auto parsed = contract::ParseDuration(text);
           if (!parsed.ok()) {
             throw CLI::ValidationError(
                 "--timeout",
                 fmt::format("{} is not a duration, e.g. 90s or 4h", contract::Quoted(text)));
           }
           out->timeout = *parsed;
         },
         "Give up after this time, with exit code 8; the jobs go on")
      ->type_name("DURATION");
}

}  // namespace

void AddListVerbs(CLI::App* app, Invocation* out) {
  CLI::App* list = AddVerb(app, out, "list", Verb::kList, "List jobs, the newest first",
                           "list --state running --label team=vision -o wide");
  list->alias("ls");
  AddConditions(list, out);
  AddOrderAndLimit(list, out);
  AddPs(app, out);
  CLI::App* count = AddVerb(app, out, "count", Verb::kCount, "Count jobs",
                            "count --by state,label=team --filter 'create_time > -7d'");
  AddCountBy(count, &out->count_by);
  AddConditions(count, out);
  AddVerb(app, out, "top", Verb::kTop,
          "Show clusters, projects and the jobs that use most, anew every 2 s on a terminal",
          "top");
}

void AddFollowVerbs(CLI::App* app, Invocation* out) {
  AddLogs(app, out);
  AddEvents(app, out);
  AddCopy(app, out);
  AddWait(app, out);
}

}  // namespace muster::cli
