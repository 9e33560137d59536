#include "clients/cli/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "clients/cli/names_behind_dashes.h"
#include "clients/cli/own_verbs.h"
#include "contract/characters.h"
#include "contract/nearest.h"

namespace muster::cli {
namespace {

// Words that a hint shows: enough to see which command is meant.
constexpr size_t kMaxHintWords = 8;

// Programs of Slurm that are no verbs here, and what to use instead.
constexpr std::string_view kSlurmsOwn =
    "use Slurm's own, with the number of: muster squeue -t all -o '%i %A'";
constexpr std::pair<std::string_view, std::string_view> kSlurmPrograms[] = {
    {"salloc", "use Slurm's own"},
    {"sacctmgr", "Muster keeps no accounts: use Slurm's own"},
    {"sattach", "use: muster logs -f 42"},
    {"scontrol",
     "for show job 42 use muster show 42; for hold and release, muster hold 42 and muster release "
     "42; for update, muster update 42 --priority 5; for show node, muster sinfo -N -l; for all "
     "else Slurm's own"},
    {"seff", "use: muster show 42, or: muster sacct -j 42"},
    {"sprio", "use: muster why 42"},
    {"sreport", "use muster count, or Slurm's own"},
    {"sshare", "Muster keeps no accounts: use Slurm's own"},
    {"srun",
     "use muster run --wait -- COMMAND; inside a batch script srun works as usual; for srun --pty "
     "use Slurm's own"},
    {"sstat", kSlurmsOwn},
};

// Words that people know from other programs, and what to use here. None of them ends a job by
// surprise: to others, rm takes away what has ended already.
constexpr std::string_view kCancel = "to end a job, use: muster cancel 42";
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"rm", "jobs that have ended are kept; to end one that runs or waits, use: muster cancel 42"},
    {"delete",
     "jobs that have ended are kept; to end one that runs or waits, use: muster cancel 42"},
    {"kill", kCancel},
    {"stop", kCancel},
    {"get", "use: muster list, or: muster show 42"},
    {"status", "use: muster list, or: muster show 42"},
    {"queue", "use: muster ps"},
    {"apply", "use: muster submit job.yaml"},
    {"create", "use: muster submit job.yaml"},
    {"attach", "use: muster logs -f 42"},
    {"tail", "use: muster logs -f 42"},
    {"history", "use: muster events 42"},
    {"nodes", "use: muster clusters NAME"},
};

// The first word that is neither a flag nor its value.
std::string_view FirstWord(const std::vector<const char*>& typed) {
  for (size_t i = 1; i < typed.size(); ++i) {
    const std::string_view word = typed[i];
    if (TakesNextWord(word)) {
      ++i;
    } else if (!word.starts_with('-')) {
      return word;
    }
  }
  return "";
}

// "--cpu is not a flag of muster run; did you mean --cpus?"
std::string UnknownFlag(const CLI::App& verb, std::string_view written) {
  const std::string_view flag = written.substr(0, written.find('='));
  std::vector<std::string> names;
  for (const CLI::App* app : {&verb, static_cast<const CLI::App*>(verb.get_parent())}) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  // tail's -n.
  if (verb.get_name() == "logs" && flag == "-n")
    return fmt::format("{} is not a flag of muster logs; did you mean --tail?",
                       contract::Quoted(flag));
  const std::string_view nearest =
      contract::Nearest(flag, std::vector<std::string_view>(names.begin(), names.end()));
  return fmt::format("{} is not a flag of muster {}; {}", contract::Quoted(flag), verb.get_name(),
                     nearest.empty() ? fmt::format("see: muster {} --help", verb.get_name())
                                     : fmt::format("did you mean {}?", nearest));
}

// "lst is not a verb; did you mean list? Else there are: ...". Also of a verb that has verbs below
// it.
std::string UnknownVerb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  std::vector<std::string> known;  // with synonyms
  for (const CLI::App* verb : app.get_subcommands({})) {
    names.push_back(verb->get_name());
    known.push_back(verb->get_name());
    known.insert(known.end(), verb->get_aliases().begin(), verb->get_aliases().end());
  }
  const std::string_view nearest =
      contract::Nearest(word, std::vector<std::string_view>(known.begin(), known.end()));
  const bool is_below = app.get_parent() != nullptr;
  return fmt::format("{} is not a verb{}; {}there are: {}", contract::Quoted(word),
                     is_below ? " of muster " + app.get_name() : "",
                     nearest.empty() ? "" : fmt::format("did you mean {}? Else ", nearest),
                     fmt::join(names, ", "));
}

// Returns the typed words from the first one on that cannot be meant.
std::string UnknownWords(const CLI::App& verb, std::vector<std::string> words, bool has_command) {
  if (words[0].starts_with('-')) return UnknownFlag(verb, words[0]);
  if (!verb.get_subcommands({}).empty()) return UnknownVerb(verb, words[0]);
  if (verb.get_name() != "run" || has_command) {
    return fmt::format("{} is more than muster {} takes; see: muster {} --help",
                       contract::Quoted(words[0]), verb.get_name(), verb.get_name());
  }
  const bool is_cut = words.size() > kMaxHintWords;
  if (is_cut) words.resize(kMaxHintWords);
  for (std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_of(" \t\n\"'$`\\*?&|;<>()") == word.npos;
    if (!is_plain) word = contract::Quoted(word);
  }
  return fmt::format("put the command after --, as in: muster run -- {}{}", fmt::join(words, " "),
                     is_cut ? " ..." : "");
}

// "--gpus needs a value: TYPE:COUNT"; empty: the error is another one. CLI11 begins the text of
// this error with the option.
std::string LackingValue(const CLI::App& verb, const CLI::ParseError& error) {
  if (error.get_name() != "ArgumentMismatch") return "";
  const std::string_view said = error.what();
  const std::string name(said.substr(0, said.find(": ")));
  const CLI::Option* option = verb.get_option_no_throw(name);
  if (option == nullptr && verb.get_parent() != nullptr)
    option = verb.get_parent()->get_option_no_throw(name);
  if (option == nullptr || option->get_type_name().empty()) return "";
  return fmt::format("{} needs a value: {}", name, option->get_type_name());
}

}  // namespace

std::string ExplainUsage(CLI::App& app, const CLI::ParseError& error,
                         const std::vector<const char*>& typed, bool has_command) {
  const std::string_view word = FirstWord(typed);
  for (const auto& [program, instead] : kSlurmPrograms) {
    if (word == program) return fmt::format("{} is not a verb of muster; {}", program, instead);
  }
  for (const auto& [other, instead] : kElsewhere) {
    if (word == other && app.get_subcommands().empty())
      return fmt::format("{} is not a verb of muster; {}", other, instead);
  }
  const std::vector<std::string> rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty() && !rest[0].starts_with('-')) {
    return UnknownVerb(app, rest[0]);
  }
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  for (std::string& word : unknown) word = WithoutMark(std::move(word));
  // CLI11 tells flags and words apart, and not in which order they came.
  const auto first = std::find_if(typed.begin(), typed.end(), [&](const char* word) {
    return std::find(unknown.begin(), unknown.end(), word) != unknown.end();
  });
  const bool is_behind_dashes = std::find(typed.begin(), first, kEndOfFlags) != first;
  if (verbs.size() == 1 && first != typed.end() && is_behind_dashes)
    return fmt::format("{} is more than muster {} takes; only run and plan take a command after --",
                       contract::Quoted(*first), verbs[0]->get_name());
  if (verbs.size() == 1 && first != typed.end())
    return UnknownWords(*verbs[0], {first, typed.end()}, has_command);
  if (verbs.size() == 1) {
    if (std::string lacking = LackingValue(*verbs[0], error); !lacking.empty()) return lacking;
  }
  const bool lacks_dashes = app.got_subcommand("run") && !has_command;
  return lacks_dashes ? fmt::format("{}; {}", error.what(), kDashes) : error.what();
}

}  // namespace muster::cli
