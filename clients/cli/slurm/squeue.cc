// muster squeue: jobs that have not ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/slurm/format.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/query.h"
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
    {"Format", "name the columns with --format, as in -o '%.8i %.20j %.2t %R'"},
    {"hide", "all partitions are shown"},
    {"iterate", "use watch(1), or muster events -f"},
    {"json", "use: muster list -o json"},
    {"licenses", "leave it out"},
    {"reservation", "leave it out"},
    {"steps", "Muster knows jobs, not their steps; ask squeue itself with the number of %A"},
    {"yaml", "use: muster list -o yaml"},
};

std::string OrNull(std::string text) { return text.empty() ? "(null)" : Harmless(text); }

// Returns the known facts of the run; without one the value is `absent`.
std::string NodeListOf(const JobRecord& record) {
  if (record.run() == nullptr) return "";
  const auto& nodes = record.run()->nodes();
  return Harmless(HostList({nodes.begin(), nodes.end()}));
}

std::string ArrayOf(const v1::Job& job) {
  const std::string name = NameOf(job);
  return name.substr(0, name.find('_'));
}

std::string ArrayTaskOf(const v1::Job& job) {
  const std::string name = NameOf(job);
  const size_t bar = name.find('_');
  return bar == name.npos ? "N/A" : name.substr(bar + 1);
}

std::string StartTime(const JobRecord& record) {
  if (record.job.has_start_time()) return LocalTime(record.job.start_time(), "N/A");
  return record.run() == nullptr ? "N/A" : LocalTime(record.run()->estimated_start_time(), "N/A");
}

std::string TimeLeft(const JobRecord& record, absl::Time now) {
  if (!record.time_limit.has_value()) return "UNLIMITED";
  return SqueueTime(std::max(absl::ZeroDuration(), *record.time_limit - Elapsed(record, now)));
}

std::string EndTime(const JobRecord& record) {
  if (record.job.has_end_time()) return LocalTime(record.job.end_time(), "N/A");
  if (!record.job.has_start_time() || !record.time_limit.has_value()) return "N/A";
  google::protobuf::Timestamp end = record.job.start_time();
  end.set_seconds(end.seconds() + absl::ToInt64Seconds(*record.time_limit));
  return LocalTime(end, "N/A");
}

std::string NodesOrReason(const JobRecord& record) {
  const std::string nodes = NodeListOf(record);
  const bool waits = StateWord(record) == "PENDING";
  if (!waits && !nodes.empty()) return nodes;
  // "(None)" would say that nothing keeps it; it is only that nobody has said yet what does.
  const std::string word = ReasonWord(record);
  return word == kNoReason ? "" : fmt::format("({})", word);
}

// A column: its letter, its heading, and its value.
struct SqueueColumn {
  char letter;
  std::string_view heading;
  std::string (*value)(const JobRecord& record, absl::Time now);
};
using R = JobRecord;
using T = absl::Time;
constexpr std::array kSqueueColumns = {
    SqueueColumn{'i', "JOBID", [](const R& r, T) { return NameOf(r.job); }},
    SqueueColumn{'F', "ARRAY_JOB_ID", [](const R& r, T) { return ArrayOf(r.job); }},
    SqueueColumn{'K', "ARRAY_TASK_ID", [](const R& r, T) { return ArrayTaskOf(r.job); }},
    SqueueColumn{'A', "SLURM_ID",
                 [](const R& r, T) {
                   return r.run() == nullptr || r.is_on_slurm ? OrNull(SlurmNumber(r)) : "N/A";
                 }},
    SqueueColumn{'j', "NAME", [](const R& r, T) { return Harmless(r.job.name()); }},
    SqueueColumn{'u', "USER", [](const R& r, T) { return Harmless(r.job.user()); }},
    SqueueColumn{'a', "ACCOUNT",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().account()); }},
    SqueueColumn{'P', "PARTITION", [](const R& r, T) { return OrNull(r.partition); }},
    SqueueColumn{'q', "QOS", [](const R& r, T) { return OrNull(r.job.spec().slurm().qos()); }},
    SqueueColumn{'t', "ST", [](const R& r, T) { return std::string(StateCode(StateWord(r))); }},
    SqueueColumn{'T', "STATE", [](const R& r, T) { return std::string(StateWord(r)); }},
    SqueueColumn{'M', "TIME", [](const R& r, T now) { return SqueueTime(Elapsed(r, now)); }},
    SqueueColumn{'l', "TIME_LIMIT",
                 [](const R& r, T) {
                   return r.time_limit ? SqueueTime(*r.time_limit) : std::string("UNLIMITED");
                 }},
    SqueueColumn{'L', "TIME_LEFT", [](const R& r, T now) { return TimeLeft(r, now); }},
    SqueueColumn{
        'D', "NODES",
        [](const R& r, T) { return fmt::format("{}", std::max(1u, r.job.spec().nodes())); }},
    SqueueColumn{'C', "CPUS",
                 [](const R& r, T) { return fmt::format("{}", TotalCpus(r.job.spec())); }},
    SqueueColumn{'c', "MIN_CPUS",
                 [](const R& r, T) {
                   const uint64_t millis = r.job.spec().resources().cpu_millis();
                   return fmt::format("{}", std::max<uint64_t>(1, (millis + 999) / 1000));
                 }},
    SqueueColumn{'m', "MIN_MEMORY", [](const R& r, T) { return MemoryText(r.job.spec()); }},
    SqueueColumn{'b', "TRES_PER_NODE", [](const R& r, T) { return GresText(r.job.spec()); }},
    SqueueColumn{'p', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job.priority()); }},
    SqueueColumn{'Q', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job.priority()); }},
    SqueueColumn{'r', "REASON", [](const R& r, T) { return ReasonWord(r); }},
    SqueueColumn{'R', "NODELIST(REASON)", [](const R& r, T) { return NodesOrReason(r); }},
    SqueueColumn{'N', "NODELIST", [](const R& r, T) { return NodeListOf(r); }},
    SqueueColumn{'B', "EXEC_HOST",
                 [](const R& r, T) {
                   const bool has = r.run() != nullptr && !r.run()->nodes().empty();
                   return has ? Harmless(r.run()->nodes(0)) : std::string("n/a");
                 }},
    SqueueColumn{'S', "START_TIME", [](const R& r, T) { return StartTime(r); }},
    SqueueColumn{'e', "END_TIME", [](const R& r, T) { return EndTime(r); }},
    SqueueColumn{'V', "SUBMIT_TIME",
                 [](const R& r, T) { return LocalTime(r.job.create_time(), "N/A"); }},
    SqueueColumn{'k', "COMMENT",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().comment()); }},
    SqueueColumn{'Z', "WORK_DIR",
                 [](const R& r, T) { return OrNull(r.job.spec().working_directory()); }},
    SqueueColumn{'v', "RESERVATION",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().reservation()); }},
    SqueueColumn{'f', "FEATURES",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().constraint()); }},
    SqueueColumn{'x', "EXC_NODES",
                 [](const R& r, T) { return Harmless(r.job.spec().slurm().exclude()); }},
    SqueueColumn{'n', "REQ_NODES",
                 [](const R& r, T) { return OrNull(r.job.spec().slurm().nodelist()); }},
    SqueueColumn{'y', "NICE",
                 [](const R& r, T) { return fmt::format("{}", r.job.spec().slurm().nice()); }},
};

const SqueueColumn& SqueueColumnOf(char letter) {
  return *std::find_if(kSqueueColumns.begin(), kSqueueColumns.end(),
                       [&](const SqueueColumn& column) { return column.letter == letter; });
}

std::string Letters() {
  std::string letters;
  for (const SqueueColumn& column : kSqueueColumns) letters += column.letter;
  return letters;
}

// Returns whether a column needs what only the job's run tells.
bool NeedsRuns(const ColumnFormat& format) {
  constexpr std::string_view kOfRuns = "ARNBStTr";
  return std::any_of(kOfRuns.begin(), kOfRuns.end(),
                     [&](char letter) { return format.Has(letter); });
}

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
    if (key.size() != 1 || Letters().find(key[0]) == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("--sort: {} is not a column that muster has; it has: {}",
                      contract::Quoted(key), Letters()));
    }
    read.push_back({key[0], descending});
  }
  return read;
}

// Numbers by their value, states by their order in a job's life, all else as text.
int Compare(const JobRecord& a, const JobRecord& b, char letter, absl::Time now) {
  if (letter == 't' || letter == 'T') {
    return static_cast<int>(a.job.state()) - static_cast<int>(b.job.state());
  }
  if (letter == 'i') return a.job.id() < b.job.id() ? -1 : a.job.id() > b.job.id() ? 1 : 0;
  const std::string left = SqueueColumnOf(letter).value(a, now);
  const std::string right = SqueueColumnOf(letter).value(b, now);
  const auto left_number = contract::ParseNumber<int64_t>(left);
  const auto right_number = contract::ParseNumber<int64_t>(right);
  if (left_number.has_value() && right_number.has_value()) {
    return *left_number < *right_number ? -1 : *left_number > *right_number ? 1 : 0;
  }
  return left.compare(right);
}

void Sort(const std::vector<SortKey>& keys, absl::Time now, std::vector<JobRecord>* records) {
  std::stable_sort(records->begin(), records->end(), [&](const JobRecord& a, const JobRecord& b) {
    for (const SortKey& key : keys) {
      const int order = Compare(a, b, key.letter, now);
      if (order != 0) return (order < 0) != key.descending;
    }
    return false;
  });
}

struct AskedSqueue {
  JobQuery query;
  ColumnFormat format;
  std::vector<SortKey> sort;
  bool with_heading = true;
  bool with_runs = false;
};

absl::Status ReadJobs(const client::slurm::CommandWords& words, JobQuery* query) {
  if (!words.operands.empty()) {
    return absl::InvalidArgumentError(fmt::format("unrecognized argument {}; name jobs with -j",
                                                  contract::Quoted(words.operands.front())));
  }
  const Setting* jobs = words.options.Find("jobs");
  return jobs == nullptr ? absl::OkStatus() : ReadIds(jobs->value, &query->ids);
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
  std::string_view format = given.Find("long") != nullptr ? kSqueueLongFormat : kSqueueFormat;
  if (given.Find("start") != nullptr) format = kStartFormat;
  if (const Setting* own = given.Find("format"); own != nullptr) format = own->value;
  auto columns = ParseColumnFormat(format, Letters());
  if (!columns.ok()) return columns.status();
  asked.format = *std::move(columns);
  const Setting* sort = given.Find("sort");
  auto keys = ReadSort(sort == nullptr ? "P,t,-p" : sort->value);
  if (!keys.ok()) return keys.status();
  asked.sort = *std::move(keys);
  asked.with_heading = given.Find("noheader") == nullptr;
  // Some states only the run tells.
  asked.with_runs = states != nullptr || NeedsRuns(asked.format);
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

}  // namespace

int Squeue(Session& session) {
  const absl::StatusOr<AskedSqueue> asked = ReadSqueue(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  auto records = FindJobs(session.client, asked->query, asked->with_runs);
  if (!records.ok()) return Fail(session, records.status());
  NoteUnknownUsers(session, asked->query, *records);
  const absl::Time now = absl::Now();
  Sort(asked->sort, now, &*records);
  std::vector<std::vector<std::string>> rows;
  if (asked->with_heading) {
    auto& heading = rows.emplace_back();
    for (const FormatField& field : asked->format.fields) {
      heading.emplace_back(SqueueColumnOf(field.letter).heading);
    }
  }
  for (const JobRecord& record : *records) {
    auto& row = rows.emplace_back();
    for (const FormatField& field : asked->format.fields) {
      row.push_back(SqueueColumnOf(field.letter).value(record, now));
    }
  }
  session.terminal.Out(asked->format.Lines(rows));
  return kOk;
}

}  // namespace muster::cli
