#include "clients/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "clients/cli/options.h"
#include "clients/cli/own_verbs.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

using Source = Completion::Source;

// A value of one of several words, or the place that has it.
struct Values {
  std::string_view name;  // of a flag without its dashes, or the verb of a positional
  Source source = Source::kNone;
  std::string_view words = {};   // with blanks between them
  std::string_view filter = {};  // of jobs
  bool is_list = false;          // several, with commas between them
};

constexpr std::string_view kNotEnded =
    "state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED";
constexpr std::string_view kEnded = "state = SUCCEEDED OR state = FAILED OR state = CANCELED";

constexpr Values kFlagValues[] = {
    {"after", Source::kJobs, "", kNotEnded, true},
    {"after-ended", Source::kJobs, "", kNotEnded, true},
    {"after-failed", Source::kJobs, "", kNotEnded, true},
    {"as", Source::kNone, "muster sky"},
    {"by", Source::kNone, "state cluster user project label=", "", true},
    {"ca-file", Source::kFiles},
    {"cluster", Source::kClusters},
    {"context", Source::kContexts},
    {"file", Source::kFiles},
    {"from-file", Source::kFiles},
    {"kind", Source::kNone, "slurm kubernetes machines"},
    {"on-cluster-loss", Source::kNone, "wait fail_over_when_fenced fail_over_now"},
    {"order-by", Source::kNone, "id create_time start_time end_time priority name"},
    {"output", Source::kNone, "table wide csv json jsonl yaml name jsonpath= template="},
    {"project", Source::kProjects},
    {"role", Source::kNone, "member viewer submitter operator admin"},
    {"signal", Source::kNone, "TERM INT KILL HUP USR1 USR2 STOP CONT"},
    {"token-file", Source::kFiles},
    {"workdir", Source::kDirectories},
};

constexpr Values kWordValues[] = {
    {"submit", Source::kFiles},
    {"plan", Source::kFiles},
    {"sbatch", Source::kFiles},
    {"init", Source::kFiles},
    {"show", Source::kJobs},
    {"why", Source::kJobs},
    {"logs", Source::kJobs},
    {"events", Source::kJobs},
    {"cp", Source::kJobs},
    {"wait", Source::kJobs, "", kNotEnded},
    {"cancel", Source::kJobs, "", kNotEnded},
    {"update", Source::kJobs, "", kNotEnded},
    {"signal", Source::kJobs, "", "state = RUNNING"},
    {"hold", Source::kJobs, "", "held = false AND state = QUEUED OR state = PENDING"},
    {"release", Source::kJobs, "", "held = true"},
    {"move", Source::kJobs, "", "state = PENDING"},
    {"rerun", Source::kJobs, "", kEnded},
    {"clusters", Source::kClusters, "invite cordon drain uncordon revoke"},
    {"check", Source::kClusters},
    {"forget", Source::kClusters},
    {"completion", Source::kNone, "bash zsh fish"},
    {"project show", Source::kProjects},
    {"project set", Source::kProjects},
    {"project add", Source::kProjects},
    {"project remove", Source::kProjects},
    {"project archive", Source::kProjects},
    {"context use", Source::kContexts},
    {"context set", Source::kContexts},
    {"context delete", Source::kContexts},
};

template <size_t kSize>
const Values* Find(const Values (&table)[kSize], std::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [name](const Values& one) { return one.name == name; });
  return found == std::end(table) ? nullptr : found;
}

const CLI::Option* OptionOf(const CLI::App* app, const std::string& flag) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(flag); option != nullptr)
      return option;
  }
  return nullptr;
}

bool TakesValue(const CLI::Option* option) {
  return option != nullptr && !option->get_type_name().empty();
}

const CLI::App* VerbBelow(const CLI::App* app, std::string_view word) {
  for (const CLI::App* verb : app->get_subcommands({})) {
    if (verb->check_name(std::string(word))) return verb;
  }
  return nullptr;
}

// "project show".
std::string NameOf(const CLI::App* verb) {
  if (verb->get_parent() == nullptr) return "";
  const std::string above = NameOf(verb->get_parent());
  return above.empty() ? verb->get_name() : above + " " + verb->get_name();
}

// The flags that say which broker, as the line has them so far.
void TakeConnection(const CLI::Option* option, const std::string& value, Invocation* out) {
  const std::string name = option->get_lnames().empty() ? "" : option->get_lnames()[0];
  if (name == "broker") out->broker = value;
  if (name == "context") out->context = value;
  if (name == "token-file") out->token_file = value;
  if (name == "ca-file") out->ca_file = value;
}

void Offer(const std::string& value, std::string_view description, Completion* completion) {
  if (value.starts_with(completion->begun))
    completion->candidates.push_back({value, std::string(description)});
}

void OfferWords(std::string_view words, Completion* completion) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    Offer(std::string(word), "", completion);
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
}

void OfferVerbs(const CLI::App* app, Completion* completion) {
  for (const CLI::App* verb : app->get_subcommands({}))
    Offer(verb->get_name(), verb->get_description(), completion);
  if (app->get_parent() == nullptr)
    Offer("help", "Print the help of a verb, or of all", completion);
}

void OfferFlags(const CLI::App* verb, Completion* completion) {
  for (const CLI::App* app = verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (app != verb && option->get_name() == "--help") continue;
      for (const std::string& name : option->get_lnames())
        Offer("--" + name, option->get_description(), completion);
    }
  }
}

// Leaves of the unfinished word the part behind what stays as it is.
void KeepBefore(size_t size, Completion* completion) {
  completion->before += completion->begun.substr(0, size);
  completion->begun.erase(0, size);
}

void OfferStates(Completion* completion) {
  for (const std::string_view state : StateWords()) {
    std::string lower(state);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    Offer(lower, "", completion);
  }
}

void OfferValues(const Values* values, Completion* completion) {
  if (values == nullptr) return;
  if (values->is_list) KeepBefore(completion->begun.rfind(',') + 1, completion);
  completion->source = values->source;
  completion->filter = values->filter;
  OfferWords(values->words, completion);
}

// The value of a flag. Its file is the shell's to complete.
void OfferValueOf(const CLI::Option* option, Completion* completion) {
  const std::string name = option->get_lnames().empty() ? "" : option->get_lnames()[0];
  if (name == "state") {
    KeepBefore(completion->begun.rfind(',') + 1, completion);
    return OfferStates(completion);
  }
  OfferValues(Find(kFlagValues, name), completion);
}

}  // namespace

std::vector<std::string> SplitCommandLine(std::string_view line) {
  std::vector<std::string> words(1);
  bool is_word = false;  // the last word has begun
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
      is_word = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
      is_word = true;
    } else if (quote == '\0' && (c == ' ' || c == '\t')) {
      if (is_word) words.emplace_back();
      is_word = false;
    } else {
      words.back() += c;
      is_word = true;
    }
  }
  return words;
}

void Complete(const CLI::App& app, const std::vector<std::string>& words, Invocation* out) {
  out->verb = Verb::kComplete;
  Completion& completion = out->completion;
  if (words.empty()) return;
  completion.begun = words.back();
  const CLI::App* verb = &app;
  const CLI::Option* waiting = nullptr;  // the flag whose value comes next
  size_t positionals = 0;
  bool is_help = false;
  bool only_names = false;  // all flags are before the word
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (waiting != nullptr) {
      TakeConnection(std::exchange(waiting, nullptr), word, out);
    } else if (only_names) {
      ++positionals;
    } else if (word == kEndOfFlags) {
      // The command of a job is not ours.
      if (verb->get_name() == "run" || verb->get_name() == "plan") return;
      only_names = true;
    } else if (word.starts_with('-') && word.size() > 1) {
      const size_t equals = word.find('=');
      const CLI::Option* option = OptionOf(verb, word.substr(0, equals));
      if (!TakesValue(option)) continue;
      if (equals == word.npos) {
        waiting = option;
      } else {
        TakeConnection(option, word.substr(equals + 1), out);
      }
    } else if (verb == &app && word == "help") {
      is_help = true;
    } else if (const CLI::App* below = VerbBelow(verb, word); below != nullptr) {
      verb = below;
    } else {
      ++positionals;
    }
  }
  if (waiting != nullptr) return OfferValueOf(waiting, &completion);
  if (completion.begun.starts_with('-') && !only_names) {
    const size_t equals = completion.begun.find('=');
    if (equals == completion.begun.npos) return OfferFlags(verb, &completion);
    const CLI::Option* option = OptionOf(verb, completion.begun.substr(0, equals));
    KeepBefore(equals + 1, &completion);
    if (TakesValue(option)) OfferValueOf(option, &completion);
    return;
  }
  if (!verb->get_subcommands({}).empty()) return OfferVerbs(verb, &completion);
  if (is_help) return;
  const std::string name = NameOf(verb);
  if (name == "cp" && positionals > 0) {
    completion.source = Source::kFiles;
    return;
  }
  if (name == "cp") completion.after = ":";
  // All others take one word, or several of the same kind.
  const bool takes_one = name == "completion" || name == "check" || name == "forget";
  if (takes_one && positionals > 0) return;
  OfferValues(Find(kWordValues, name), &completion);
}

}  // namespace muster::cli
