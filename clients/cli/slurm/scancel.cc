// muster scancel: asks that jobs end, or that they get a signal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clients/cli/exit_code.h"
#include "clients/cli/signals.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/given.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/verbs.h"
#include "contract/characters.h"
#include "contract/signal_number.h"
#include "contract/slurm_signal.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using enum Option::Argument;

constexpr size_t kMaxAtOnce = 1000;  // what one request may name

constexpr std::array kScancelOptions = {
    Option{"account", 'A', kRequired, "SCANCEL_ACCOUNT"},
    Option{"batch", 'b', kNone, "SCANCEL_BATCH"},
    Option{"clusters", 'M', kRequired, "SLURM_CLUSTERS"},
    Option{"cron", 0, kNone},
    Option{"ctld", 0, kNone},
    Option{"full", 'f', kNone, "SCANCEL_FULL"},
    Option{"help", 0, kNone},
    Option{"hurry", 'H', kNone},
    Option{"interactive", 'i', kNone, "SCANCEL_INTERACTIVE"},
    Option{"local", 0, kNone},
    Option{"me", 0, kNone},
    Option{"name", 'n', kRequired, "SCANCEL_NAME", "jobname"},
    Option{"nodelist", 'w'},
    Option{"partition", 'p', kRequired, "SCANCEL_PARTITION"},
    Option{"qos", 'q', kRequired, "SCANCEL_QOS"},
    Option{"quiet", 'Q', kNone},
    Option{"reservation", 'R'},
    Option{"sibling", 0},
    Option{"signal", 's'},
    Option{"state", 't', kRequired, "SCANCEL_STATE"},
    Option{"usage", 0, kNone},
    Option{"user", 'u', kRequired, "SCANCEL_USER"},
    Option{"verbose", 'v', kNone, "SCANCEL_VERBOSE"},
    Option{"version", 'V', kNone},
    Option{"wckey", 0},
};
constexpr std::pair<std::string_view, std::string_view> kScancelRefused[] = {
    {"cron", "Muster has no such jobs"},
    {"ctld", "leave it out"},
    {"hurry", "leave it out"},
    {"interactive", "look first, with muster squeue and the same options"},
    {"sibling", "Muster has no such jobs"},
    {"wckey", "leave it out"},
};

// An empty list would leave its choice out, and so choose more jobs than any list that names some.
absl::Status CheckLists(const client::slurm::Settings& given) {
  for (const Setting& setting : given.settings) {
    const bool has_list = setting.option->argument == kRequired;
    if (!has_list || setting.value.find_first_not_of(", ") != std::string::npos) continue;
    return absl::InvalidArgumentError(fmt::format(
        "--{}: {} names nothing; name what to cancel, or leave the option out. No job is canceled",
        setting.option->name, contract::Quoted(setting.value)));
  }
  return absl::OkStatus();
}

struct AskedScancel {
  JobQuery query;
  std::optional<SignalFlags> signal = {};  // none: the jobs are canceled
  bool is_selection = false;               // it names jobs otherwise than by their numbers
  bool is_verbose = false;
  bool is_quiet = false;
};

// Reads -s, -b and -f. As with scancel, KILL is the default, and ends a job unless it is for the
// batch script alone.
absl::StatusOr<std::optional<SignalFlags>> ReadSignal(const client::slurm::Settings& given) {
  const Setting* named = given.Find("signal");
  SignalFlags signal{.name = std::string(contract::kKill)};
  if (named != nullptr) {
    signal.name = named->value;
    if (!contract::SignalNumber(signal.name).has_value())
      return absl::InvalidArgumentError("Unknown job signal: " + contract::Quoted(signal.name));
  }
  const bool is_kill =
      contract::SignalNumber(signal.name) == contract::SignalNumber(contract::kKill);
  if (given.Find("batch") != nullptr) {
    signal.target = v1::SIGNAL_TARGET_BATCH;
  } else if (is_kill) {
    return std::optional<SignalFlags>();
  } else if (given.Find("full") != nullptr) {
    signal.target = v1::SIGNAL_TARGET_ALL;
  }
  return std::optional<SignalFlags>(std::move(signal));
}

absl::StatusOr<AskedScancel> ReadScancel(const std::vector<std::string>& words) {
  const auto read = ReadGiven(kScancelOptions, words, kScancelRefused);
  if (!read.ok()) return read.status();
  const client::slurm::Settings& given = read->options;
  AskedScancel asked;
  if (absl::Status status = CheckLists(given); !status.ok()) return status;
  if (absl::Status status = ReadSelection(given, &asked.query); !status.ok()) return status;
  absl::StatusOr<std::optional<SignalFlags>> signal = ReadSignal(given);
  if (!signal.ok()) return signal.status();
  asked.signal = *std::move(signal);
  if (const Setting* states = given.Find("state"); states != nullptr) {
    const absl::Status status = ReadStates(states->value, &asked.query.states);
    if (!status.ok()) return status;
    const bool is_all = asked.query.states.empty();
    if (is_all ||
        !std::all_of(asked.query.states.begin(), asked.query.states.end(), IsActiveState)) {
      return absl::InvalidArgumentError(
          "--state: only jobs that have not ended can be canceled; use PENDING, RUNNING or "
          "SUSPENDED");
    }
  }
  for (const std::string& operand : read->operands) {
    if (absl::Status status = ReadIds(operand, Steps::kRefused, &asked.query.ids); !status.ok())
      return status;
  }
  asked.is_quiet = given.Find("quiet") != nullptr;
  asked.is_verbose = given.Find("verbose") != nullptr;
  bool is_choice = false;
  for (const Setting& setting : given.settings) {
    const std::string_view name = setting.option->name;
    constexpr std::string_view kHow[] = {"verbose", "quiet", "local", "signal", "batch", "full"};
    if (std::find(std::begin(kHow), std::end(kHow), name) != std::end(kHow)) continue;
    asked.is_selection = true;
    is_choice = is_choice || name != "clusters";  // a cluster alone says too little
  }
  if (!asked.query.ids.empty()) return asked;
  if (!is_choice) return absl::InvalidArgumentError("No job identification provided");
  // Slurm lets nobody cancel what is others'; here they must be named.
  if (asked.query.users.empty()) {
    const absl::StatusOr<std::string> own = OwnUser();
    if (!own.ok()) return own.status();
    asked.query.users.push_back(*own);
  }
  return asked;
}

void NoteUnknown(Session& session, const AskedScancel& asked, const std::string& name) {
  if (asked.is_quiet) return;
  session.terminal.Err(
      fmt::format("scancel: error: Kill job error on job id {}: Invalid job id specified\n", name));
}

// The jobs that are named and that there are. Like scancel, this goes on if one is not known.
absl::StatusOr<std::vector<uint64_t>> Named(Session& session, const AskedScancel& asked) {
  std::vector<uint64_t> ids;
  for (const JobName& name : asked.query.ids) {
    const auto numbers = NumbersOf(session.client, {name});
    if (!numbers.ok() && !absl::IsNotFound(numbers.status())) return numbers.status();
    if (numbers.ok()) {
      ids.insert(ids.end(), numbers->begin(), numbers->end());
    } else {
      NoteUnknown(session, asked, fmt::format("{}_{}", name.number, name.task.value_or(0)));
    }
  }
  return ids;
}

// The numbers that jobs have.
absl::StatusOr<std::vector<uint64_t>> Known(Session& session, const AskedScancel& asked,
                                            const std::vector<uint64_t>& ids) {
  JobQuery query;
  for (const uint64_t id : ids) query.ids.push_back({id, std::nullopt});
  auto records = FindJobs(session.client, query);
  if (absl::IsNotFound(records.status())) records = std::vector<JobRecord>();
  if (!records.ok()) return records.status();
  std::set<uint64_t> there;
  for (const JobRecord& record : *records) there.insert(record.job().id());
  std::vector<uint64_t> known;
  for (const uint64_t id : ids) {
    if (there.contains(id)) {
      known.push_back(id);
    } else {
      NoteUnknown(session, asked, fmt::format("{}", id));
    }
  }
  return known;
}

// The jobs that are named or, if others are meant than by their numbers, that are what was asked.
absl::StatusOr<std::vector<uint64_t>> Chosen(Session& session, AskedScancel* asked) {
  if (!asked->is_selection) return Named(session, *asked);
  asked->query.filter =
      "(state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";
  if (asked->query.states.empty()) {
    asked->query.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  }
  const auto records = FindJobs(session.client, asked->query);
  if (!records.ok()) return records.status();
  std::vector<uint64_t> ids;
  for (const JobRecord& record : *records) ids.push_back(record.job().id());
  if (!ids.empty()) return ids;
  if (const auto unknown = UnknownUsers(asked->query, *records); !unknown.empty())
    return absl::InvalidArgumentError("Invalid user name: " + contract::Quoted(unknown.front()));
  return ids;
}

absl::Status CancelAll(Session& session, const AskedScancel& asked,
                       const std::vector<uint64_t>& ids) {
  for (size_t begin = 0; begin < ids.size(); begin += kMaxAtOnce) {
    v1::CancelJobsRequest request;
    const size_t end = std::min(ids.size(), begin + kMaxAtOnce);
    for (size_t i = begin; i < end; ++i) request.add_job_ids(ids[i]);
    request.set_reason("scancel");
    const auto response = session.client.CancelJobs(request);
    if (!response.ok()) return response.status();
    for (const v1::Job& job : response->jobs()) {
      if (asked.is_verbose)
        session.terminal.Err(fmt::format("scancel: Terminating job {}\n", NameOf(job)));
    }
  }
  return absl::OkStatus();
}

// Sends the signal to each job by itself: like scancel, this goes on if one does not get it. Sets
// code if so.
absl::Status SignalAll(Session& session, const AskedScancel& asked,
                       const std::vector<uint64_t>& ids, int* code) {
  return SendSignals(
      session.client, ids, *asked.signal, [&](uint64_t job, const absl::Status& sent) {
        if (sent.ok()) {
          if (asked.is_verbose)
            session.terminal.Err(fmt::format("scancel: Signal {} to job {}\n",
                                             *contract::SignalNumber(asked.signal->name), job));
          return;
        }
        session.terminal.Err(fmt::format("scancel: error: Kill job error on job id {}: {}\n", job,
                                         ToStd(sent.message())));
        *code = kError;
      });
}

absl::Status EndOrSignal(Session& session, const AskedScancel& asked,
                         const std::vector<uint64_t>& ids, int* code) {
  return asked.signal.has_value() ? SignalAll(session, asked, ids, code)
                                  : CancelAll(session, asked, ids);
}

}  // namespace

int Scancel(Session& session) {
  const std::string about =
      AboutText("scancel", kScancelOptions, kScancelRefused, session.call.words);
  if (!about.empty()) {
    session.terminal.Out(about);
    return kOk;
  }
  absl::StatusOr<AskedScancel> asked = ReadScancel(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  const auto ids = Chosen(session, &*asked);
  if (!ids.ok()) return Fail(session, ids.status());
  int code = kOk;
  absl::Status status = EndOrSignal(session, *asked, *ids, &code);
  if (absl::IsNotFound(status)) {
    // One of them is not there, so none was canceled.
    const auto known = Known(session, *asked, *ids);
    status = known.ok() ? EndOrSignal(session, *asked, *known, &code) : known.status();
  }
  return status.ok() ? code : Fail(session, status);
}

}  // namespace muster::cli
