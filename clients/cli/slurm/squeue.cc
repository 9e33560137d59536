// muster squeue: jobs that have not ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/repeat.h"
#include "clients/cli/slurm/sort_keys.h"
#include "clients/cli/slurm/squeue_columns.h"
#include "clients/cli/slurm/squeue_json.h"
#include "clients/cli/slurm/squeue_times.h"
#include "clients/cli/slurm/verbs.h"
#include "clients/cli/text.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using client::slurm::Settings;
using enum Option::Argument;

constexpr std::string_view kSqueueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kSqueueLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
// squeue forgets a job so long after its end (MinJobAge of most clusters).
constexpr absl::Duration kMinJobAge = absl::Seconds(300);
constexpr std::string_view kSqueueActive =
    "(state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";

constexpr std::array kSqueueOptions = {
    Option{"account", 'A', kRequired, "SQUEUE_ACCOUNT"},
    Option{"all", 'a', kNone, "SQUEUE_ALL"},
    Option{"array", 'r', kNone, "SQUEUE_ARRAY"},
    Option{"array-unique", 0, kNone, "SQUEUE_ARRAY_UNIQUE"},
    Option{"clusters", 'M', kRequired, "SLURM_CLUSTERS"},
    Option{"federation", 0, kNone, "SQUEUE_FEDERATION"},
    Option{"format", 'o', kRequired, "SQUEUE_FORMAT"},
    Option{"Format", 'O', kRequired, "SQUEUE_FORMAT2"},
    Option{"help", 0, kNone},
    Option{"hide", 0, kNone},
    Option{"iterate", 'i'},
    Option{"jobs", 'j'},
    Option{"json", 0, kNone},
    Option{"licenses", 'L', kRequired, "SQUEUE_LICENSES"},
    Option{"local", 0, kNone, "SQUEUE_LOCAL"},
    Option{"long", 'l', kNone},
    Option{"me", 0, kNone},
    Option{"name", 'n', kRequired, "SQUEUE_NAMES"},
    Option{"noheader", 'h', kNone},
    Option{"nodelist", 'w'},
    Option{"partition", 'p', kRequired, "SQUEUE_PARTITION"},
    Option{"priority", 'P', kNone, "SQUEUE_PRIORITY"},
    Option{"qos", 'q', kRequired, "SQUEUE_QOS"},
    Option{"reservation", 'R'},
    Option{"sibling", 0, kNone, "SQUEUE_SIB"},
    Option{"sort", 'S', kRequired, "SQUEUE_SORT"},
    Option{"start", 0, kNone},
    Option{"states", 't', kRequired, "SQUEUE_STATES"},
    Option{"steps", 's', kOptional},
    Option{"usage", 0, kNone},
    Option{"user", 'u', kRequired, "SQUEUE_USERS", "users"},
    Option{"verbose", 'v', kNone},
    Option{"version", 'V', kNone},
    Option{"yaml", 0, kNone},
};
constexpr std::pair<std::string_view, std::string_view> kSqueueRefused[] = {
    {"licenses", "leave it out; the column %W has them"},
    {"steps",
     "Muster knows jobs and their runs; the steps within a job are Slurm's alone, and agents do "
     "not "
     "tell of them: ask squeue itself with the number of %A"},
    {"yaml", "use --json, or: muster list -o yaml"},
};

// States go by their order in a job's life, times by their length, numbers of jobs by Muster's own.
SortValue ValueOf(const JobRecord& record, char letter, absl::Time now) {
  if (letter == 't' || letter == 'T') return {static_cast<int64_t>(record.job().state()), ""};
  if (letter == 'i') return {static_cast<int64_t>(record.job().id()), ""};
  if (const auto seconds = SecondsOf(letter, record, now); seconds.has_value())
    return {seconds, ""};
  return ToSortValue(SqueueValue(letter, record, now));
}

void Sort(const std::vector<SortKey>& keys, absl::Time now, std::vector<JobRecord>* records) {
  // Each value is made once, not for each comparison.
  using Place = std::pair<std::vector<SortValue>, size_t>;
  std::vector<Place> places;
  for (size_t i = 0; i < records->size(); ++i) {
    Place& place = places.emplace_back(std::vector<SortValue>(), i);
    for (const SortKey& key : keys) place.first.push_back(ValueOf((*records)[i], key.letter, now));
  }
  std::stable_sort(places.begin(), places.end(), [&](const Place& a, const Place& b) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const int order = Compare(a.first[i], b.first[i]);
      if (order != 0) return (order < 0) != keys[i].descending;
    }
    return false;
  });
  std::vector<JobRecord> sorted;
  for (const Place& place : places) sorted.push_back(std::move((*records)[place.second]));
  *records = std::move(sorted);
}

struct AskedSqueue {
  JobQuery query;
  ColumnFormat format;
  std::vector<SortKey> sort;
  bool with_heading = true;
  bool with_date = false;
  bool each_task = false;
  bool is_json = false;
  std::vector<std::string> unknown;             // columns that there are not
  absl::Duration pause = absl::ZeroDuration();  // between two looks; zero: one look
};

// The last one typed counts, then the option that brings columns of its own, then the variables.
ColumnFormat ReadSqueueFormat(const Settings& given, std::vector<std::string>* unknown) {
  const auto parse = [&](const Setting& setting) {
    return setting.option->name == "Format"
               ? ParseLongFormat(setting.value, SqueueLongNames(), unknown)
               : ParseColumnFormat(setting.value, SqueueLetters(), kSqueueWhole, unknown);
  };
  const auto is_format = [](const Setting& setting) {
    return setting.option->name == "format" || setting.option->name == "Format";
  };
  const auto typed =
      std::find_if(given.settings.rbegin(), given.settings.rend(),
                   [&](const Setting& setting) { return is_format(setting) && IsTyped(setting); });
  if (typed != given.settings.rend()) return parse(*typed);
  const bool is_start = given.Find("start") != nullptr;
  const bool is_long = given.Find("long") != nullptr;
  const auto variable = std::find_if(given.settings.begin(), given.settings.end(), is_format);
  if (!is_start && !is_long && variable != given.settings.end()) return parse(*variable);
  const std::string_view own = is_start  ? kStartFormat
                               : is_long ? kSqueueLongFormat
                                         : kSqueueFormat;
  return ParseColumnFormat(own, SqueueLetters(), kSqueueWhole, unknown);
}

absl::StatusOr<AskedSqueue> ReadSqueue(const std::vector<std::string>& words) {
  const auto read = ReadGiven(kSqueueOptions, words, kSqueueRefused);
  if (!read.ok()) return read.status();
  const Settings& given = read->options;
  if (!read->operands.empty()) {
    return absl::InvalidArgumentError(fmt::format("unrecognized argument {}; name jobs with -j",
                                                  contract::Quoted(read->operands.front())));
  }
  AskedSqueue asked;
  if (absl::Status status = ReadSelection(given, &asked.query); !status.ok()) return status;
  if (absl::Status status = ReadJobs(given, Steps::kAsJob, &asked.query); !status.ok())
    return status;
  const Setting* states = given.Find("states");
  if (states != nullptr) {
    const absl::Status status = ReadStates(states->value, &asked.query.states);
    if (!status.ok()) return status;
    const bool has_word = states->value.find_first_not_of(',') != std::string::npos;
    asked.query.is_none = asked.query.is_none || !has_word;
  } else if (given.Find("start") != nullptr) {
    asked.query.states = {"PENDING"};
  } else {
    asked.query.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  }
  const bool only_active =
      !asked.query.states.empty() &&
      std::all_of(asked.query.states.begin(), asked.query.states.end(), IsActiveState);
  if (only_active) asked.query.filter = kSqueueActive;
  asked.format = ReadSqueueFormat(given, &asked.unknown);
  const Setting* sort = given.Find("sort");
  auto keys = ReadSortKeys(sort == nullptr ? "P,t,-p" : sort->value, SqueueLetters());
  if (!keys.ok()) return keys.status();
  asked.sort = *std::move(keys);
  const absl::StatusOr<absl::Duration> pause = ReadPause(given);
  if (!pause.ok()) return pause.status();
  asked.pause = *pause;
  asked.with_heading = given.Find("noheader") == nullptr;
  asked.with_date = given.Find("long") != nullptr || given.Find("iterate") != nullptr;
  asked.each_task = given.Find("array") != nullptr;
  asked.is_json = given.Find("json") != nullptr;
  return asked;
}

// Notes the users that nobody knows. The command goes on all the same, as squeue does.
void NoteUnknownUsers(Session& session, const JobQuery& query,
                      const std::vector<JobRecord>& records) {
  for (const std::string& user : UnknownUsers(query, records)) {
    session.terminal.Err(fmt::format("squeue: error: Invalid user: {}\n", Harmless(user)));
  }
}

std::string TableOf(const std::vector<JobRecord>& records, const AskedSqueue& asked,
                    absl::Time now) {
  std::vector<std::vector<std::string>> rows;
  if (asked.with_heading) {
    auto& heading = rows.emplace_back();
    for (const FormatField& field : asked.format.fields) {
      heading.emplace_back(SqueueHeading(field.letter));
    }
  }
  for (SqueueRow& row : SqueueRows(records, asked.format, asked.each_task, now)) {
    rows.push_back(std::move(row.values));
  }
  return asked.format.Lines(rows, asked.with_heading);
}

// Tells whether the columns and the order need only a part of the specs.
bool IsLean(const AskedSqueue& asked) {
  constexpr std::string_view kLeanLetters = "iFKAjuaPqtTMlLDpQrRNBSeVvgGUosY";
  const auto is_lean = [&](char letter) { return kLeanLetters.find(letter) != kLeanLetters.npos; };
  return !asked.is_json &&
         std::all_of(asked.format.fields.begin(), asked.format.fields.end(),
                     [&](const FormatField& field) { return is_lean(field.letter); }) &&
         std::all_of(asked.sort.begin(), asked.sort.end(),
                     [&](const SortKey& key) { return is_lean(key.letter); });
}

// `shown` gets the jobs.
int ShowQueue(Session& session, const AskedSqueue& asked, std::vector<JobRecord>* shown) {
  JobQuery query = asked.query;
  query.is_lean = IsLean(asked);
  query.ended_since = absl::Now() - kMinJobAge;
  if (query.filter.empty()) {
    query.filter =
        fmt::format("({} OR end_time >= {})", kSqueueActive,
                    absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", query.ended_since, absl::UTCTimeZone()));
  }
  auto found = FindJobs(session.client, query);
  if (!found.ok()) return Fail(session, found.status());
  *shown = *std::move(found);
  NoteUnknownUsers(session, asked.query, *shown);
  const absl::Time now = absl::Now();
  Sort(asked.sort, now, shown);
  if (asked.is_json) {
    session.terminal.Out(SqueueJson(*shown, now));
    return kOk;
  }
  if (asked.with_date && asked.with_heading) session.terminal.Out(DateLine(now));
  if (asked.query.clusters.empty()) {
    session.terminal.Out(TableOf(*shown, asked, now));
    return kOk;
  }
  for (const std::string& cluster : asked.query.clusters) {
    std::vector<JobRecord> there;
    std::copy_if(shown->begin(), shown->end(), std::back_inserter(there),
                 [&](const JobRecord& record) { return record.job().cluster() == cluster; });
    if (asked.with_heading) session.terminal.Out(fmt::format("CLUSTER: {}\n", Harmless(cluster)));
    session.terminal.Out(TableOf(there, asked, now));
  }
  return kOk;
}

}  // namespace

int Squeue(Session& session) {
  const std::string about = AboutText("squeue", kSqueueOptions, kSqueueRefused, session.call.words);
  if (!about.empty()) {
    session.terminal.Out(about);
    return kOk;
  }
  const absl::StatusOr<AskedSqueue> asked = ReadSqueue(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  for (const std::string& column : asked->unknown) {
    session.terminal.Err(
        fmt::format("squeue: error: Invalid job format specification: {}\n", Harmless(column)));
  }
  // They live as long as the process: to take thousands of jobs apart would only take time.
  auto* const shown = new std::vector<JobRecord>;
  return Repeat(session, asked->pause, [&] { return ShowQueue(session, *asked, shown); });
}

}  // namespace muster::cli
