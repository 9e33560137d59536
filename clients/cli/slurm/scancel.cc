// muster scancel: asks that jobs end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "clients/cli/exit_code.h"
#include "clients/cli/slurm/query.h"
#include "clients/cli/slurm/verbs.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::Setting;
using enum Option::Argument;

constexpr size_t kMaxAtOnce = 1000;  // what one request may name

constexpr std::array kScancelOptions = {
    Option{"account", 'A'},      Option{"batch", 'b', kNone},
    Option{"clusters", 'M'},     Option{"cron", 0, kNone},
    Option{"ctld", 0, kNone},    Option{"full", 'f', kNone},
    Option{"hurry", 'H', kNone}, Option{"interactive", 'i', kNone},
    Option{"me", 0, kNone},      Option{"name", 'n', kRequired, "", "jobname"},
    Option{"nodelist", 'w'},     Option{"partition", 'p'},
    Option{"qos", 'q'},          Option{"quiet", 'Q', kNone},
    Option{"reservation", 'R'},  Option{"sibling", 0},
    Option{"signal", 's'},       Option{"state", 't'},
    Option{"user", 'u'},         Option{"verbose", 'v', kNone},
    Option{"wckey", 0},
};
constexpr std::string_view kWithSlurm =
    "Muster sends jobs no signals, it ends them (leave the option out); use scancel itself with "
    "Slurm's number: muster squeue -o '%i %A'";
constexpr std::pair<std::string_view, std::string_view> kScancelRefused[] = {
    {"batch", kWithSlurm},
    {"cron", "Muster has no such jobs"},
    {"ctld", "leave it out"},
    {"full", kWithSlurm},
    {"hurry", "leave it out"},
    {"interactive", "look first, with muster squeue and the same options"},
    {"sibling", "Muster has no such jobs"},
    {"signal", kWithSlurm},
    {"wckey", "leave it out"},
};

struct AskedScancel {
  JobQuery query;
  bool is_selection = false;  // it names jobs otherwise than by their numbers
  bool is_verbose = false;
};

absl::StatusOr<AskedScancel> ReadScancel(const std::vector<std::string>& words) {
  const auto read = client::slurm::ReadCommandWords(kScancelOptions, words);
  if (!read.ok()) return read.status();
  const client::slurm::Settings& given = read->options;
  if (absl::Status status = CheckRefused(given, kScancelRefused); !status.ok()) return status;
  AskedScancel asked;
  if (absl::Status status = ReadSelection(given, &asked.query); !status.ok()) return status;
  if (const Setting* states = given.Find("state"); states != nullptr) {
    const absl::Status status = ReadStates(states->value, &asked.query.states);
    if (!status.ok()) return status;
    if (!std::all_of(asked.query.states.begin(), asked.query.states.end(), IsActiveState)) {
      return absl::InvalidArgumentError(
          "--state: only jobs that have not ended can be canceled; use PENDING, RUNNING or "
          "SUSPENDED");
    }
  }
  for (const std::string& operand : read->operands) {
    if (absl::Status status = ReadIds(operand, &asked.query.ids); !status.ok()) return status;
  }
  asked.is_verbose = given.Find("verbose") != nullptr;
  bool is_choice = false;
  for (const Setting& setting : given.settings) {
    const std::string_view name = setting.option->name;
    if (name == "verbose" || name == "quiet") continue;
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

// The jobs that are named: all of them must be there, unless they are chosen by what they are.
absl::StatusOr<std::vector<uint64_t>> Chosen(Session& session, AskedScancel* asked) {
  if (!asked->is_selection) return NumbersOf(session.client, asked->query.ids);
  asked->query.filter =
      "(state = QUEUED OR state = PENDING OR state = RUNNING OR state = SUSPENDED)";
  if (asked->query.states.empty()) {
    asked->query.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  }
  const auto records = FindJobs(session.client, asked->query);
  if (!records.ok()) return records.status();
  std::vector<uint64_t> ids;
  for (const JobRecord& record : *records) ids.push_back(record.job.id());
  return ids;
}

}  // namespace

int Scancel(Session& session) {
  absl::StatusOr<AskedScancel> asked = ReadScancel(session.call.words);
  if (!asked.ok()) {
    Fail(session, asked.status());
    return kUsage;
  }
  const auto ids = Chosen(session, &*asked);
  if (!ids.ok()) return Fail(session, ids.status());
  for (size_t begin = 0; begin < ids->size(); begin += kMaxAtOnce) {
    v1::CancelJobsRequest request;
    const size_t end = std::min(ids->size(), begin + kMaxAtOnce);
    for (size_t i = begin; i < end; ++i) request.add_job_ids((*ids)[i]);
    request.set_reason("scancel");
    const auto response = session.client.CancelJobs(request);
    if (!response.ok()) return Fail(session, response.status());
    for (const v1::Job& job : response->jobs()) {
      if (asked->is_verbose) session.terminal.Err(fmt::format("scancel: {}\n", Summary(job)));
    }
  }
  return kOk;
}

}  // namespace muster::cli
