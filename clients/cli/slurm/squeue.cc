// muster squeue: jobs that have not ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/repeat.h"
#include "clients/cli/slurm/squeue_columns.h"
#include "clients/cli/slurm/squeue_json.h"
#include "clients/cli/slurm/verbs.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using client::slurm::Settings;
using enum Option::Argument;

constexpr std::string_view kSqueueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kSqueueLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20n %R";
constexpr std::string_view kSqueueActive =
    "(state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";

constexpr std::array kSqueueOptions = {
    Option{"account", 'A'},
    Option{"all", 'a', kNone},
    Option{"array", 'r', kNone},
    Option{"clusters", 'M'},
    Option{"format", 'o'},
    Option{"Format", 'O'},
    Option{"hide", 0, kNone},
    Option{"iterate", 'i'},
    Option{"jobs", 'j'},
    Option{"json", 0, kNone},
    Option{"licenses", 'L'},
    Option{"long", 'l', kNone},
    Option{"me", 0, kNone},
    Option{"name", 'n'},
    Option{"noheader", 'h', kNone},
    Option{"nodelist", 'w'},
    Option{"partition", 'p'},
    Option{"qos", 'q'},
    Option{"reservation", 'R'},
    Option{"sort", 'S'},
    Option{"start", 0, kNone},
    Option{"states", 't'},
    Option{"steps", 's', kOptional},
    Option{"user", 'u'},
    Option{"verbose", 'v', kNone},
    Option{"yaml", 0, kNone},
};
constexpr std::pair<std::string_view, std::string_view> kSqueueRefused[] = {
    {"hide", "all partitions are shown"},
    {"licenses", "the column %W has them"},
    {"steps", "Muster knows jobs, not their steps; ask squeue itself with the number of %A"},
    {"yaml", "use --json, or: muster list -o yaml"},
};

// A column to sort by, and whether its greatest comes first.
struct SortKey {
  char letter;
  bool descending;
};

// "P,-i".
absl::StatusOr<std::vector<SortKey>> ReadSort(std::string_view keys) {
  std::vector<SortKey> read;
  for (std::string_view key : contract::Split(keys, ',')) {
    const bool descending = key.starts_with('-');
    if (descending || key.starts_with('+')) key.remove_prefix(1);
    if (key.size() != 1 || SqueueLetters().find(key[0]) == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("--sort: {} is not a column that muster has; it has: {}",
                      contract::Quoted(key), SqueueLetters()));
    }
    read.push_back({key[0], descending});
  }
  return read;
}

// A value to sort by: numbers by their size, all else as text.
struct SortValue {
  std::optional<int64_t> number;
  std::string text;
};

// States go by their order in a job's life, numbers of jobs by Muster's own.
SortValue ValueOf(const JobRecord& record, char letter, absl::Time now) {
  if (letter == 't' || letter == 'T') return {static_cast<int64_t>(record.job.state()), ""};
  if (letter == 'i') return {static_cast<int64_t>(record.job.id()), ""};
  std::string text = SqueueColumnOf(letter).value(record, now);
  const auto number = contract::ParseNumber<int64_t>(text);
  return {number, std::move(text)};
}

int Compare(const SortValue& a, const SortValue& b) {
  if (a.number.has_value() && b.number.has_value())
    return *a.number < *b.number ? -1 : *a.number > *b.number ? 1 : 0;
  return a.text.compare(b.text);
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
  absl::Duration pause = absl::ZeroDuration();  // between two looks; zero: one look
};

absl::Status ReadJobs(const client::slurm::CommandWords& words, JobQuery* query) {
  if (!words.operands.empty()) {
    return absl::InvalidArgumentError(fmt::format("unrecognized argument {}; name jobs with -j",
                                                  contract::Quoted(words.operands.front())));
  }
  const Setting* jobs = words.options.Find("jobs");
  return jobs == nullptr ? absl::OkStatus() : ReadIds(jobs->value, &query->ids);
}

absl::StatusOr<ColumnFormat> ReadFormat(const Settings& given) {
  // The last one given counts.
  for (auto setting = given.settings.rbegin(); setting != given.settings.rend(); ++setting) {
    if (setting->option->name == "format")
      return ParseColumnFormat(setting->value, SqueueLetters());
    if (setting->option->name == "Format") return ParseLongSqueueFormat(setting->value);
  }
  if (given.Find("start") != nullptr) return ParseColumnFormat(kStartFormat, SqueueLetters());
  return ParseColumnFormat(given.Find("long") != nullptr ? kSqueueLongFormat : kSqueueFormat,
                           SqueueLetters());
}

absl::StatusOr<AskedSqueue> ReadSqueue(const std::vector<std::string>& words) {
  const auto read = client::slurm::ReadCommandWords(kSqueueOptions, words);
  if (!read.ok()) return read.status();
  const Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kSqueueRefused); !status.ok()) return status;
  AskedSqueue asked;
  if (absl::Status status = ReadSelection(given, &asked.query); !status.ok()) return status;
  if (absl::Status status = ReadJobs(*read, &asked.query); !status.ok()) return status;
  const Setting* states = given.Find("states");
  if (states != nullptr) {
    const absl::Status status = ReadStates(states->value, &asked.query.states);
    if (!status.ok()) return status;
  } else if (given.Find("start") != nullptr) {
    asked.query.states = {"PENDING"};
  } else {
    asked.query.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  }
  const bool only_active =
      !asked.query.states.empty() &&
      std::all_of(asked.query.states.begin(), asked.query.states.end(), IsActiveState);
  if (only_active) asked.query.filter = kSqueueActive;
  auto columns = ReadFormat(given);
  if (!columns.ok()) return columns.status();
  asked.format = *std::move(columns);
  const Setting* sort = given.Find("sort");
  auto keys = ReadSort(sort == nullptr ? "P,t,-p" : sort->value);
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

// Like squeue, this goes on all the same. Users of other machines may have jobs, too.
void NoteUnknownUsers(Session& session, const JobQuery& query,
                      const std::vector<JobRecord>& records) {
  for (const std::string& user : query.users) {
    const bool has_jobs = std::any_of(records.begin(), records.end(), [&](const JobRecord& record) {
      return record.job.user() == user;
    });
    if (has_jobs || IsKnownUser(user)) continue;
    session.terminal.Err(fmt::format("squeue: error: Invalid user: {}\n", Harmless(user)));
  }
}

std::string TableOf(const std::vector<JobRecord>& records, const AskedSqueue& asked,
                    absl::Time now) {
  std::vector<std::vector<std::string>> rows;
  if (asked.with_heading) {
    auto& heading = rows.emplace_back();
    for (const FormatField& field : asked.format.fields) {
      heading.emplace_back(SqueueColumnOf(field.letter).heading);
    }
  }
  for (SqueueRow& row : SqueueRows(records, asked.format, asked.each_task, now)) {
    rows.push_back(std::move(row.values));
  }
  return asked.format.Lines(rows);
}

int ShowQueue(Session& session, const AskedSqueue& asked) {
  auto records = FindJobs(session.client, asked.query);
  if (!records.ok()) return Fail(session, records.status());
  NoteUnknownUsers(session, asked.query, *records);
  const absl::Time now = absl::Now();
  Sort(asked.sort, now, &*records);
  if (asked.is_json) {
    session.terminal.Out(SqueueJson(*records, now));
    return kOk;
  }
  if (asked.with_date && asked.with_heading) session.terminal.Out(DateLine(now));
  if (asked.query.clusters.empty()) {
    session.terminal.Out(TableOf(*records, asked, now));
    return kOk;
  }
  for (const std::string& cluster : asked.query.clusters) {
    std::vector<JobRecord> there;
    std::copy_if(records->begin(), records->end(), std::back_inserter(there),
                 [&](const JobRecord& record) { return record.job.cluster() == cluster; });
    if (asked.with_heading) session.terminal.Out(fmt::format("CLUSTER: {}\n", Harmless(cluster)));
    session.terminal.Out(TableOf(there, asked, now));
  }
  return kOk;
}

}  // namespace

int Squeue(Session& session) {
  const absl::StatusOr<AskedSqueue> asked = ReadSqueue(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  return Repeat(session, asked->pause, [&] { return ShowQueue(session, *asked); });
}

}  // namespace muster::cli
