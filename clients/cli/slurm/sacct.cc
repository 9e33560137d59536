// muster sacct: jobs and how they ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/sacct_columns.h"
#include "clients/cli/slurm/sacct_time.h"
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

// The broker chooses by when jobs were submitted. One that ended in the window, but was submitted
// longer before it than this, is not found; time limits are seldom longer.
constexpr absl::Duration kLookBack = absl::Hours(24 * 30);
constexpr std::string_view kSacctActive =
    "state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED";
constexpr std::string_view kSacctFormat =
    "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr std::string_view kBriefFormat = "JobID,State,ExitCode";
constexpr std::string_view kLongFormat =
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,"
    "AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,"
    "TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,"
    "TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutMax,TRESUsageOutMaxNode,"
    "TRESUsageOutMaxTask,TRESUsageOutAve,TRESUsageOutTot";

constexpr std::array kSacctOptions = {
    Option{"accounts", 'A'},
    Option{"allclusters", 'L', kNone},
    Option{"allocations", 'X', kNone},
    Option{"allusers", 'a', kNone},
    Option{"associations", 'x'},
    Option{"batch-script", 'B', kNone},
    Option{"brief", 'b', kNone},
    Option{"clusters", 'M'},
    Option{"completion", 'c', kNone},
    Option{"delimiter", 0},
    Option{"duplicates", 'D', kNone},
    Option{"endtime", 'E'},
    Option{"env-vars", 0, kNone},
    Option{"file", 'f'},
    Option{"flags", 'F'},
    Option{"format", 'o', kRequired, "SACCT_FORMAT"},
    Option{"gid", 'g'},
    Option{"help", 'h', kNone},
    Option{"helpformat", 'e', kNone},
    Option{"jobs", 'j'},
    Option{"json", 0, kNone},
    Option{"local", 0, kNone, "SACCT_LOCAL"},
    Option{"long", 'l', kNone},
    Option{"me", 0, kNone},
    Option{"name", 0},
    Option{"ncpus", 'I'},
    Option{"nnodes", 'i'},
    Option{"nodelist", 'N'},
    Option{"noconvert", 0, kNone},
    Option{"noheader", 'n', kNone},
    Option{"parsable", 'p', kNone},
    Option{"parsable2", 'P', kNone},
    Option{"partition", 'r'},
    Option{"qos", 'q'},
    Option{"starttime", 'S'},
    Option{"state", 's'},
    Option{"timelimit-max", 'K'},
    Option{"timelimit-min", 'k'},
    Option{"truncate", 'T', kNone},
    Option{"uid", 'u', kRequired, "", "user"},
    Option{"units", 0},
    Option{"usage", 0, kNone},
    Option{"verbose", 'v', kNone},
    Option{"version", 'V', kNone},
    Option{"wckeys", 'W'},
    Option{"yaml", 0, kNone},
};
constexpr std::pair<std::string_view, std::string_view> kSacctRefused[] = {
    {"associations", "choose by --accounts and --user"},
    {"batch-script", "use: muster show ID"},
    {"completion", "leave it out"},
    {"duplicates", "the runs of a job are in: muster show ID"},
    {"env-vars", "use: muster show ID"},
    {"file", "leave it out"},
    {"flags", "leave it out"},
    {"gid", "choose by --user"},
    {"json", "use: muster list -o json"},
    {"ncpus", "leave it out"},
    {"nnodes", "leave it out"},
    {"timelimit-max", "leave it out; the column Timelimit has it"},
    {"timelimit-min", "leave it out; the column Timelimit has it"},
    {"truncate", "leave it out"},
    {"wckeys", "leave it out"},
    {"yaml", "use: muster list -o yaml"},
};

struct Shown {
  const SacctColumn* column;
  size_t width;
  bool left;
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (contract::IsLetter(c) && !contract::IsLowerLetter(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// "JobID,JobName%30,State%-12".
absl::StatusOr<std::vector<Shown>> ReadFormat(std::string_view text) {
  std::vector<Shown> shown;
  for (std::string_view word : contract::Split(text, ',')) {
    if (Lower(word) == "all") {
      for (const SacctColumn& column : SacctColumns())
        shown.push_back({&column, column.width, column.left});
      continue;
    }
    const size_t percent = std::min(word.find('%'), word.size());
    const std::string name = Lower(word.substr(0, percent));
    const auto column =
        std::find_if(SacctColumns().begin(), SacctColumns().end(),
                     [&](const SacctColumn& one) { return Lower(one.name) == name; });
    const bool is_own = percent < word.size();
    const auto width =
        is_own ? contract::ParseNumber<int>(word.substr(percent + 1)) : std::optional<int>(0);
    if (column == SacctColumns().end() || !width.has_value()) {
      return absl::InvalidArgumentError(
          fmt::format("Invalid field requested: {}; muster sacct -e lists those that there are",
                      contract::Quoted(word)));
    }
    shown.push_back({&*column, is_own ? static_cast<size_t>(std::abs(*width)) : column->width,
                     is_own ? *width < 0 : column->left});
  }
  return shown;
}

// The variable counts less than the options that bring columns of their own.
std::string_view FormatOf(const Settings& given) {
  const Setting* format = given.Find("format");
  if (format != nullptr && IsTyped(*format)) return format->value;
  if (given.Find("long") != nullptr) return kLongFormat;
  if (given.Find("brief") != nullptr) return kBriefFormat;
  return format != nullptr ? std::string_view(format->value) : kSacctFormat;
}

// The form of the table: columns of a width, or parts between delimiters.
class Printer {
 public:
  Printer(std::vector<Shown> shown, const Settings& given) : shown_(std::move(shown)) {
    is_trailing_ = given.Find("parsable") != nullptr;
    is_parsable_ = is_trailing_ || given.Find("parsable2") != nullptr;
    if (const Setting* own = given.Find("delimiter"); own != nullptr) delimiter_ = own->value;
  }

  std::string Heading() const {
    std::vector<std::string> names;
    std::vector<std::string> rules;
    for (const Shown& one : shown_) {
      // A heading that is too long is cut without a mark.
      names.emplace_back(is_parsable_ ? one.column->name : one.column->name.substr(0, one.width));
      rules.emplace_back(one.width, '-');
    }
    return Line(names) + (is_parsable_ ? "" : Line(rules));
  }

  std::string Row(const JobRecord& record, absl::Time now) const {
    std::vector<std::string> values;
    for (const Shown& one : shown_) values.push_back(one.column->value(record, now));
    return Line(values);
  }

 private:
  std::string Line(const std::vector<std::string>& values) const {
    if (is_parsable_) {
      return fmt::format("{}{}\n", fmt::join(values, delimiter_), is_trailing_ ? delimiter_ : "");
    }
    std::string line;
    for (size_t i = 0; i < values.size(); ++i) {
      // A value that is too long ends in '+', as sacct has it.
      std::string text = values[i];
      const size_t width = shown_[i].width;
      if (Width(text) > width) text = width == 0 ? "" : text.substr(0, width - 1) + "+";
      const std::string padding(width - std::min(width, Width(text)), ' ');
      line += shown_[i].left ? text + padding + " " : padding + text + " ";
    }
    return line + "\n";
  }

  const std::vector<Shown> shown_;
  std::string delimiter_ = "|";
  bool is_parsable_ = false;
  bool is_trailing_ = false;
};

struct AskedSacct {
  Settings given;
  JobQuery query;
  std::vector<Shown> columns;
  absl::Time start, end;
};

// The window, and what the broker can choose of it.
absl::Status ReadWindow(const Settings& given, absl::Time now, AskedSacct* asked) {
  const bool by_ids = !asked->query.ids.empty();
  asked->start = by_ids ? absl::InfinitePast() : StartOfDay(now);
  asked->end = absl::InfiniteFuture();
  for (const auto& [option, time] :
       {std::pair("starttime", &asked->start), std::pair("endtime", &asked->end)}) {
    const Setting* setting = given.Find(option);
    if (setting == nullptr) continue;
    const auto read = ParseSacctTime(setting->value, now);
    if (!read.ok()) return read.status();
    *time = *read;
  }
  // Without an end it is the present time.
  const absl::Time latest = given.Find("endtime") == nullptr ? now : asked->end;
  if (asked->start > latest) {
    const auto local = [](absl::Time time) {
      return absl::FormatTime("%Y-%m-%dT%H:%M:%S", time, absl::LocalTimeZone());
    };
    return absl::InvalidArgumentError(
        fmt::format("Start time ({}) is after end time ({})", local(asked->start), local(latest)));
  }
  if (by_ids) return absl::OkStatus();
  const auto text = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
  };
  asked->query.filter =
      fmt::format("(create_time >= {} OR {})", text(asked->start - kLookBack), kSacctActive);
  if (asked->end != absl::InfiniteFuture()) {
    asked->query.filter += fmt::format(" AND create_time <= {}", text(asked->end));
  }
  return absl::OkStatus();
}

absl::Status ReadWho(const Settings& given, AskedSacct* asked) {
  const Setting* user = given.Find("uid");
  if (user != nullptr) AddUsers(user->value, &asked->query.users);
  // sacct shows one's own jobs unless somebody or some jobs are named; so does this.
  const bool is_open = user != nullptr || given.Find("allusers") != nullptr ||
                       !asked->query.ids.empty() || geteuid() == 0;
  if (is_open && given.Find("me") == nullptr) return absl::OkStatus();
  const absl::StatusOr<std::string> own = OwnUser();
  if (own.ok()) asked->query.users = {*own};
  return own.status();
}

absl::StatusOr<AskedSacct> ReadSacct(const std::vector<std::string>& words, absl::Time now) {
  const auto read = ReadGiven(kSacctOptions, words, kSacctRefused);
  if (!read.ok()) return read.status();
  AskedSacct asked;
  asked.given = read->options;
  const Settings& given = asked.given;
  if (!read->operands.empty()) {
    return absl::InvalidArgumentError(fmt::format("unrecognized argument {}; name jobs with -j",
                                                  contract::Quoted(read->operands.front())));
  }
  if (absl::Status status = ReadSelection(given, &asked.query); !status.ok()) return status;
  if (const Setting* accounts = given.Find("accounts"); accounts != nullptr) {
    for (std::string_view one : contract::Split(accounts->value, ',')) {
      asked.query.accounts.emplace_back(one);
    }
  }
  if (absl::Status status = ReadJobs(given, Steps::kAsNone, &asked.query); !status.ok())
    return status;
  // An empty list chooses none in squeue, and all here; a list of steps names no job.
  const Setting* jobs = given.Find("jobs");
  if (jobs != nullptr && jobs->value.find_first_not_of(',') == std::string::npos)
    asked.query.is_none = false;
  if (const Setting* states = given.Find("state"); states != nullptr) {
    const absl::Status status = ReadStates(states->value, &asked.query.states);
    if (!status.ok()) return status;
  }
  if (absl::Status status = ReadWho(given, &asked); !status.ok()) return status;
  if (absl::Status status = ReadWindow(given, now, &asked); !status.ok()) return status;
  auto shown = ReadFormat(FormatOf(given));
  if (!shown.ok()) return shown.status();
  asked.columns = *std::move(shown);
  return asked;
}

// Four in a line, each filled up with blanks, as sacct has them.
std::string FieldList() {
  constexpr size_t kInLine = 4;
  constexpr size_t kWidth = 19;
  std::string list;
  size_t place = 0;
  for (const SacctColumn& column : SacctColumns()) {
    const bool is_last = ++place % kInLine == 0 || place == SacctColumns().size();
    list += fmt::format("{:{}}{}", column.name, kWidth, is_last ? '\n' : ' ');
  }
  return list;
}

}  // namespace

int Sacct(Session& session) {
  const std::string about = AboutText("sacct", kSacctOptions, kSacctRefused, session.call.words);
  if (!about.empty()) {
    session.terminal.Out(about);
    return kOk;
  }
  const absl::Time now = absl::Now();
  const absl::StatusOr<AskedSacct> asked = ReadSacct(session.call.words, now);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  if (asked->given.Find("helpformat") != nullptr) {
    session.terminal.Out(FieldList());
    return kOk;
  }
  // They live as long as the process: to take thousands of jobs apart would only take time.
  auto& records =
      *new absl::StatusOr<std::vector<JobRecord>>(FindJobs(session.client, asked->query));
  // sacct has nothing to say of a job that it does not know.
  if (absl::IsNotFound(records.status())) records = std::vector<JobRecord>();
  if (!records.ok()) return Fail(session, records.status());
  if (const auto unknown = UnknownUsers(asked->query, *records); !unknown.empty()) {
    session.terminal.Err(
        fmt::format("sacct: error: Invalid user id: {}\n", Harmless(unknown.front())));
    return kError;
  }
  const Printer printer(asked->columns, asked->given);
  std::string out = asked->given.Find("noheader") == nullptr ? printer.Heading() : "";
  for (const JobRecord& record : *records) {
    const bool had_ended =
        record.job().has_end_time() && ToTime(record.job().end_time()) < asked->start;
    if (!had_ended) out += printer.Row(record, now);
  }
  session.terminal.Out(out);
  return kOk;
}

}  // namespace muster::cli
