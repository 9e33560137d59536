#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/cli/completion.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/grammar.h"
#include "clients/cli/invocation.h"
#include "clients/cli/man_page.h"
#include "clients/cli/names_behind_dashes.h"
#include "clients/cli/own_verbs.h"
#include "clients/cli/report.h"
#include "clients/cli/usage_error.h"
#include "contract/characters.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

// sbatch can answer in any form; the others print the columns that they are asked for.
bool HasOwnForm(Verb verb) {
  return verb == Verb::kSqueue || verb == Verb::kScancel || verb == Verb::kSacct ||
         verb == Verb::kSinfo || verb == Verb::kSky;
}

std::string ChoiceProblem(const Invocation& call) {
  if (call.jobs.empty() != call.filter.empty()) return "";
  return call.jobs.empty() ? "name at least one job by its number, or give --filter"
                           : "give either jobs or --filter";
}

bool IsFormOfLogs(std::optional<Format> format) {
  return !format || *format == Format::kTable || *format == Format::kWide ||
         *format == Format::kJson || *format == Format::kJsonLines;
}

// Returns whether the verb's text is one table.
bool PrintsTable(const Invocation& call) {
  constexpr Verb kTables[] = {Verb::kList,       Verb::kCount,     Verb::kEvents,
                              Verb::kWait,       Verb::kTokenList, Verb::kProjectList,
                              Verb::kSecretList, Verb::kAuditList, Verb::kUsage};
  const bool lists_clusters = call.verb == Verb::kClusters && call.cluster_words.empty();
  return lists_clusters ||
         std::find(std::begin(kTables), std::end(kTables), call.verb) != std::end(kTables);
}

std::string BadLabel(const Invocation& call) {
  for (const std::string& label : call.spec.labels) {
    if (label.find('=') != std::string::npos && label[0] != '=') continue;
    return fmt::format("--label: {} is not KEY=VALUE", contract::Quoted(label));
  }
  return "";
}

// Finds errors that CLI11 cannot see. Empty: nothing is wrong.
std::string Inconsistency(const Invocation& call, bool has_command) {
  switch (call.verb) {
    case Verb::kRun:
      if (!has_command) return std::string(kDashes);
      if (call.command.empty()) return "there is no command after --";
      break;
    case Verb::kPlan:
      if (call.files.empty() == call.command.empty()) {
        return "give either a job file or, after --, a command";
      }
      break;
    case Verb::kLogs:
      if (std::string problem = ChoiceProblem(call); !problem.empty()) return problem;
      if (call.run > 0 && call.jobs.size() != 1)
        return "--run is for one job; of several, name the runs as 42.1 43.2";
      break;
    case Verb::kCopy:
      if (call.jobs.size() > 1) return "one job at a time";
      [[fallthrough]];
    case Verb::kShow:
    case Verb::kWait:
    case Verb::kWhy:
    case Verb::kUpdate:
      if (call.jobs.empty()) return "name at least one job by its number";
      if (call.verb == Verb::kUpdate && !call.spec.priority && call.spec.labels.empty() &&
          call.remove_labels.empty()) {
        return "say what to change: --priority, --label or --remove-label";
      }
      if (const std::string bad = BadLabel(call); !bad.empty()) return bad;
      break;
    case Verb::kCancel:
    case Verb::kHold:
    case Verb::kRelease:
    case Verb::kMove:
    case Verb::kRerun:
      if (std::string problem = ChoiceProblem(call); !problem.empty()) return problem;
      break;
    case Verb::kList:
    case Verb::kCount:
      if (std::string bad = BadLabel(call); !bad.empty()) return bad;
      break;
    case Verb::kEvents:
      if (!call.jobs.empty() && !call.filter.empty()) return "give either jobs or --filter";
      if (call.jobs.empty() && !call.follow) return "name jobs by their numbers, or add -f";
      break;
    default:
      break;
  }
  if (HasOwnForm(call.verb) && (call.format.has_value() || call.quiet)) {
    return fmt::format(
        "this verb takes {} options, behind it; for other forms use muster list or muster clusters",
        call.verb == Verb::kSky ? "SkyPilot's" : "Slurm's");
  }
  if (call.verb == Verb::kLogs && !IsFormOfLogs(call.format))
    return "logs has no -o yaml and no -o name; use json, an object for each line";
  const bool is_text =
      !call.format || *call.format == Format::kTable || *call.format == Format::kWide;
  if (call.verb == Verb::kTop && (!is_text || call.quiet))
    return "top is for people; for programs there are clusters, projects, usage and list";
  if (call.format == Format::kCsv && !PrintsTable(call))
    return "-o csv is for verbs that print a table; use json";
  if (call.wait && call.validate_only) return "--wait and --validate exclude each other";
  if (call.since_offset > 0 && !call.only_output && !call.only_error) {
    return "--since-offset needs --stdout or --stderr: each has bytes of its own";
  }
  return "";
}

// "muster help VERB" and "muster help" as what they mean: the verb, or nothing, and --help.
std::vector<const char*> HelpArguments(char** begin, char** end) {
  std::vector<const char*> arguments(begin, end);
  if (arguments.size() >= 2 && std::string_view(arguments[1]) == "help") {
    arguments.erase(arguments.begin() + 1);
    arguments.push_back("--help");
  }
  return arguments;
}

// Returns whether the line asks for JSON, as far as it could be read.
bool AsksForJson(const std::vector<const char*>& typed) {
  for (size_t i = 0; i < typed.size(); ++i) {
    std::string_view word = typed[i];
    const bool is_alone = word == "-o" || word == "--output";
    if (is_alone && i + 1 < typed.size()) word = typed[i + 1];
    for (const std::string_view flag : {"--output=", "-o="}) {
      if (word.starts_with(flag)) word.remove_prefix(flag.size());
    }
    const bool is_json = word == "json" || word == "jsonl" || word == "-ojson" || word == "-ojsonl";
    const bool is_given = is_alone || word != typed[i] || word.starts_with("-o");
    if (is_json && is_given) return true;
  }
  return false;
}

int UsageError(std::string_view message, bool as_json) {
  if (as_json) {
    fmt::print(stderr, "{}", ErrorJson(absl::InvalidArgumentError(ToAbsl(message))));
    return kUsage;
  }
  fmt::print(stderr, "muster: {}\nTry: muster --help\n", message);
  return kUsage;
}

// The first "--", if the verb takes a command behind it; `end`: there is none. With other verbs it
// only ends the flags, so that a file's name may begin with a dash.
char** Dashes(char** begin, char** end) {
  char** const verb = FindVerb(std::min(begin + 1, end), end);
  if (verb == end) return std::find(begin, end, kEndOfFlags);
  const std::string_view name = *verb;
  const bool takes_command = name == "run" || name == "plan" || name == "help";
  return takes_command ? std::find(begin, end, kEndOfFlags) : end;
}

}  // namespace

std::variant<Invocation, int> ParseCommandLine(int argc, char** argv) {
  // Everything after the first "--" of run and plan is the user's, byte for byte; CLI11 must not
  // look at it.
  char** const end = argv + argc;
  // Some verbs read what is behind them themselves.
  char** const own = OwnWords(argv + 1, end);
  char** const dashes = Dashes(argv, own);
  Invocation call;
  CLI::App app("Submit jobs to Muster and follow them.", "muster");
  AddGrammar(&app, own == end ? VerbsOf::kAll : VerbsOf::kOwnWords, &call);
  const std::vector<std::string> given(std::min(argv + 1, end), end);
  if (given.size() > 1 && given[0] == "help" && given[1].starts_with("--man"))
    return ManPages(app, {given.begin() + 1, given.end()});
  if (!given.empty() && given[0] == kCompleteVerb) {
    const bool is_line = given.size() == 3 && given[1] == "--line";
    std::vector<std::string> words =
        is_line ? SplitCommandLine(given[2]) : std::vector(given.begin() + 1, given.end());
    // The line begins with the name of the program.
    if (is_line) words.erase(words.begin());
    Complete(app, words, &call);
    return call;
  }
  const std::vector<const char*> arguments = HelpArguments(argv, dashes);
  const bool as_json = AsksForJson(arguments);
  try {
    std::vector<std::string> words = MarkNames(arguments);
    if (words.size() < arguments.size()) TakeMarks(&app);
    // CLI11 takes them from the end on, without the program's name.
    std::reverse(words.begin(), words.end());
    if (!words.empty()) words.pop_back();
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return UsageError(ExplainUsage(app, error, arguments, dashes != own), as_json);
  }
  const bool has_command = dashes != own;
  call.words.assign(own, end);
  if (has_command) call.command.assign(dashes + 1, own);
  // The API carries UTF-8 only. A file's name may be anything, and what describes a job is checked
  // with the job.
  char** const last = HasOwnForm(call.verb) ? end : dashes;
  char** const odd = std::find_if(argv, last, [](char* text) { return !contract::IsUtf8(text); });
  if (odd != last && call.verb != Verb::kSubmit && call.verb != Verb::kRun &&
      call.verb != Verb::kPlan) {
    return UsageError(fmt::format("{} is not UTF-8", contract::Quoted(*odd)), as_json);
  }
  if (std::string problem = Inconsistency(call, has_command); !problem.empty())
    return UsageError(problem, as_json);
  return call;
}

}  // namespace muster::cli
