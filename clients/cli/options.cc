#include "clients/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "clients/cli/slurm/array_jobs.h"
#include "contract/characters.h"
#include "contract/nearest.h"
#include "contract/parts.h"
#include "contract/states.h"
#include "muster/v1/job.pb.h"

namespace muster::cli {
namespace {

template <typename Number>
bool ParseNumber(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Range(int64_t min, int64_t max) {
  return max == kUnlimited ? fmt::format("{} or more", min) : fmt::format("{} to {}", min, max);
}

// "42", "42_5" for the task 5 of the array 42, "42_[1-3]" for three of them, "42_*" for all. Empty:
// it is none of these.
std::vector<JobRef> ParseJobs(std::string_view text) {
  const bool is_every_task = text.ends_with("_*");
  std::vector<JobRef> refs;
  for (const JobName& name : ParseJobNames(text))
    refs.push_back({.job = name.number, .task = name.task, .is_every_task = is_every_task});
  return refs;
}

// "42-47": the jobs with these numbers. Empty: it is no range, or has more than kMaxRange numbers.
std::vector<JobRef> ParseRange(std::string_view text) {
  constexpr uint64_t kMaxRange = 10'000;  // a slip of a digit names no million of jobs
  std::vector<JobRef> refs;
  const size_t dash = text.find('-');
  uint64_t first = 0;
  uint64_t last = 0;
  const bool is_range = dash != text.npos && ParseNumber(text.substr(0, dash), &first) &&
                        ParseNumber(text.substr(dash + 1), &last);
  if (!is_range || first == 0 || last < first || last - first >= kMaxRange) return refs;
  for (uint64_t job = first; job <= last; ++job) refs.push_back({.job = job});
  return refs;
}

// "42[3-9]" may mean the jobs 423 to 429, or tasks of the array 42: the words say how to write
// each. Empty: it is something else.
std::string AmbiguityOf(std::string_view text) {
  const size_t open = text.find('[');
  uint64_t number = 0;
  if (open == text.npos || !ParseNumber(text.substr(0, open), &number)) return "";
  return fmt::format(
      "{} is not a job; for tasks of the array {} write '{}_{}', for jobs with numbers in a row "
      "423-429",
      contract::Quoted(text), number, number, text.substr(open));
}

std::vector<JobRef> ParseJobRefs(const std::string& text, bool runs) {
  const size_t dot = text.find('.');
  uint32_t run = 0;
  std::vector<JobRef> refs = ParseJobs(std::string_view(text).substr(0, dot));
  if (refs.empty()) refs = ParseRange(std::string_view(text).substr(0, dot));
  bool good = !refs.empty();
  if (good && dot != std::string::npos) {
    good = ParseNumber(std::string_view(text).substr(dot + 1), &run) && run > 0;
  }
  if (const std::string twofold = AmbiguityOf(text); !good && !twofold.empty())
    throw CLI::ValidationError("ID", twofold);
  if (!good) {
    throw CLI::ValidationError(
        "ID", fmt::format("{} is not a job; write its number, e.g. 42{}, several in a row as 42-47 "
                          "(10000 at most), or of a job array 42_5, '42_[1-3]' or '42_*'",
                          contract::Quoted(text), runs ? ", or 42.1 for its first run" : ""));
  }
  if (run > 0 && !runs) {
    throw CLI::ValidationError("ID", fmt::format("{} is one run, and this verb takes whole jobs; "
                                                 "write {}",
                                                 text, text.substr(0, dot)));
  }
  for (JobRef& ref : refs) ref.run = run;
  return refs;
}

}  // namespace

void CheckNotEmpty(const std::string& flag, const std::string& value) {
  if (value.empty()) throw CLI::ValidationError(flag, "is empty; give it a value or leave it out");
}

CLI::Option* AddText(CLI::App* verb, const std::string& flag, const std::string& type,
                     const std::string& description, std::function<void(const std::string&)> set) {
  return verb
      ->add_option_function<std::string>(
          flag,
          [flag, set = std::move(set)](const std::string& value) {
            CheckNotEmpty(flag, value);
            set(value);
          },
          description)
      ->type_name(type);
}

CLI::Option* AddOptional(CLI::App* verb, const std::string& flag, const std::string& type,
                         const std::string& description, std::optional<std::string>* out) {
  return AddText(verb, flag, type, description, [out](const std::string& value) { *out = value; });
}

void AddRepeated(CLI::App* verb, const std::string& flag, const std::string& type,
                 const std::string& description, std::vector<std::string>* values) {
  AddText(verb, flag, type, description, [values](const std::string& value) {
    values->push_back(value);
  })->trigger_on_parse();
}

CLI::Option* AddNumber(CLI::App* verb, const std::string& flag, int64_t min, int64_t max,
                       const std::string& description, std::function<void(int64_t)> set) {
  return verb
      ->add_option_function<std::string>(
          flag,
          [=, set = std::move(set)](const std::string& text) {
            int64_t number = 0;
            if (!ParseNumber(text, &number) || number < min || number > max) {
              throw CLI::ValidationError(
                  flag, fmt::format("{} is not a whole number of {}", contract::Quoted(text),
                                    Range(min, max)));
            }
            set(number);
          },
          description)
      ->type_name("NUMBER");
}

std::vector<std::string_view> StateWords() {
  // Held is not a state, but people look for it as one.
  std::vector<std::string_view> known = {kHeldState};
  for (int i = v1::JobState_MIN + 1; i <= v1::JobState_MAX; ++i) {
    if (v1::JobState_IsValid(i)) known.push_back(contract::Name(static_cast<v1::JobState>(i)));
  }
  return known;
}

void AddStates(CLI::App* verb, const std::string& flag, const std::string& description,
               std::vector<std::string>* states) {
  AddText(verb, flag, "STATE[,STATE...]", description, [=](const std::string& text) {
    const std::vector<std::string_view> known = StateWords();
    for (const std::string_view part : contract::Split(text, ',')) {
      std::string name(part);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      // As JSON has it.
      constexpr std::string_view kPrefix = "JOB_STATE_";
      if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string_view nearest = contract::Nearest(name, known);
        throw CLI::ValidationError(
            flag, fmt::format("{} is not a state of jobs; {}there are: {}", contract::Quoted(part),
                              nearest.empty() ? "" : fmt::format("did you mean {}? Else ", nearest),
                              fmt::join(known, ", ")));
      }
      states->push_back(name);
    }
  })->trigger_on_parse();
}

void AddJobPath(CLI::App* verb, std::vector<JobRef>* jobs, std::string* path) {
  verb->add_option_function<std::string>(
          "JOB:PATH",
          [=](const std::string& text) {
            const size_t colon = text.find(':');
            if (colon == std::string::npos) {
              throw CLI::ValidationError(
                  "JOB:PATH", fmt::format("{} names no file of a job; write its number, ':' and a "
                                          "path in its working directory, as in 42:results "
                                          "(cp only copies from a job to here; to give a job "
                                          "files, use --workdir or file_mounts)",
                                          contract::Quoted(text)));
            }
            *jobs = ParseJobRefs(text.substr(0, colon), /*runs=*/true);
            *path = text.substr(colon + 1);
            while (path->starts_with("./")) path->erase(0, 2);
            while (path->ends_with('/') && path->size() > 1) path->pop_back();
            if (*path == ".") path->clear();
          },
          "A job by its number, or a run (42.1), and a file or directory in its working directory; "
          "without a path: the whole directory")
      ->type_name("")
      ->required();
}

void AddJobs(CLI::App* verb, bool runs, std::vector<JobRef>* jobs) {
  verb->add_option_function<std::vector<std::string>>(
          "ID",
          [=](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const std::vector<JobRef> named = ParseJobRefs(text, runs);
              jobs->insert(jobs->end(), named.begin(), named.end());
            }
          },
          runs ? "Jobs by their numbers, or their runs: 42, 42-47, 42.1; of a job array 42_5, "
                 "'42_[1-3]', or '42_*' for all tasks"
               : "Jobs by their numbers: 42, 42-47; of a job array 42_5, '42_[1-3]', or '42_*' for "
                 "all tasks")
      ->type_name("");
}

void AddDependenciesAndLoss(CLI::App* verb, SpecFlags* spec) {
  AddRepeated(verb, "--after", "ID[,ID...]", "Start once these jobs have succeeded", &spec->after);
  AddRepeated(verb, "--after-failed", "ID[,ID...]",
              "Start once these jobs have failed or were canceled", &spec->after_failed);
  AddRepeated(verb, "--after-ended", "ID[,ID...]", "Start once these jobs have ended, in any way",
              &spec->after_ended);
  AddText(verb, "--on-cluster-loss", "POLICY",
          "If the job's cluster is lost: wait, fail_over_when_fenced or fail_over_now [wait]",
          [spec](const std::string& policy) { spec->on_cluster_loss = policy; });
  verb->add_flag("--preemptible", spec->preemptible,
                 "A job of a higher priority may take its room: its run ends, and another follows");
}

void AddCountBy(CLI::App* verb, std::vector<CountBy>* by) {
  AddText(verb, "--by", "WHAT[,WHAT...]", "Groups: state, cluster, user, project or label=KEY",
          [by](const std::string& text) {
            for (const std::string_view part : contract::Split(text, ',')) {
              constexpr std::string_view kLabel = "label=";
              CountBy one;
              if (part.starts_with(kLabel) && part.size() > kLabel.size()) {
                one = {v1::JOB_GROUPING_LABEL, std::string(part.substr(kLabel.size()))};
              } else if (part == "state") {
                one.grouping = v1::JOB_GROUPING_STATE;
              } else if (part == "cluster") {
                one.grouping = v1::JOB_GROUPING_CLUSTER;
              } else if (part == "user") {
                one.grouping = v1::JOB_GROUPING_USER;
              } else if (part == "project") {
                one.grouping = v1::JOB_GROUPING_PROJECT;
              } else {
                throw CLI::ValidationError(
                    "--by", fmt::format("cannot count by {}; use state, cluster, user, "
                                        "project or label=KEY",
                                        contract::Quoted(part)));
              }
              by->push_back(std::move(one));
            }
          })
      ->trigger_on_parse();
}

void AddChoice(CLI::App* verb, std::string_view state, const std::string& dry_run,
               Invocation* call) {
  AddJobs(verb, false, &call->jobs);
  AddText(
      verb, "--filter", "TEXT",
      fmt::format("The jobs of a filter instead of numbers, e.g. 'state = {} AND label.team = a'",
                  state),
      [call](const std::string& filter) { call->filter = filter; });
  verb->add_flag("--dry-run", call->validate_only, dry_run);
  verb->add_flag("-y,--yes", call->yes, "Do not ask before more than 1000 jobs change");
}

}  // namespace muster::cli
