#include "broker/rpc/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "broker/auth/role.h"
#include "broker/rpc/http_settings.h"
#include "broker/rpc/listen_address.h"
#include "broker/rpc/notify_settings.h"
#include "broker/rpc/oidc_settings.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::broker {
namespace {

// A second and a day.
constexpr uint64_t kLeastLeaseMs = 1000;
constexpr uint64_t kMostLeaseMs = 86'400'000;
// One or two heartbeats may be late or lost.
constexpr int kHeartbeatsOfALease = 3;

absl::Status Invalid(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

template <typename Assign>
auto Duration(absl::Duration least, Assign assign) {
  return [least, assign](Config& config, const std::string& value) -> absl::Status {
    const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
    if (!duration.ok()) return duration.status();
    if (*duration < least) {
      return Invalid(fmt::format("\"{}\" is too short; the least is {}", value,
                                 contract::FormatDuration(least)));
    }
    assign(config, *duration);
    return absl::OkStatus();
  };
}

template <typename Assign>
auto Bytes(Assign assign) {
  return [assign](Config& config, const std::string& value) -> absl::Status {
    const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
    if (!bytes.ok()) return bytes.status();
    assign(config, *bytes);
    return absl::OkStatus();
  };
}

template <typename Assign>
auto Number(uint64_t least, uint64_t most, int base, Assign assign) {
  return [least, most, base, assign](Config& config, const std::string& value) -> absl::Status {
    uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number, base);
    if (error != std::errc() || stop != end || number < least || number > most) {
      return Invalid(base == 8
                         ? fmt::format("\"{}\" is not octal from {:o} to {:o}", value, least, most)
                         : fmt::format("\"{}\" is not a number from {} to {}", value, least, most));
    }
    assign(config, number);
    return absl::OkStatus();
  };
}

absl::Status SetLogFormat(Config& config, const std::string& value) {
  if (value != "text" && value != "json") {
    return Invalid(fmt::format("\"{}\" is not a log format; use text or json", value));
  }
  config.json_logs = value == "json";
  return absl::OkStatus();
}

absl::Status SetLogLevel(Config& config, const std::string& value) {
  if (value != "debug" && value != "info" && value != "warning" && value != "error") {
    return Invalid(fmt::format("\"{}\" is no log level; use debug, info, warning or error", value));
  }
  config.log_level = value;
  return absl::OkStatus();
}

template <typename Assign>
auto RoleInto(Assign assign) {
  return [assign](Config& config, const std::string& value) -> absl::Status {
    const std::optional<Role> role = auth::RoleOfName(value);
    if (!role) {
      return Invalid(fmt::format(
          "\"{}\" is no role; use none, member, viewer, submitter, operator or admin", value));
    }
    assign(config.broker.roles, *role);
    return absl::OkStatus();
  };
}

absl::Status SetListen(Config& config, const std::string& value) {
  if (value.empty()) {
    config.broker.listen.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> address = CheckListenAddress(value);
  if (!address.ok()) return address.status();
  config.broker.listen = *std::move(address);
  return absl::OkStatus();
}

absl::Status SetTlsListen(Config& config, const std::string& value) {
  if (value.empty()) {
    config.broker.tls.listen.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> address = CheckTlsListenAddress(value);
  if (!address.ok()) return address.status();
  config.broker.tls.listen = *std::move(address);
  return absl::OkStatus();
}

// Shorter lives would have agents do little else; longer ones make a stolen key too good.
constexpr absl::Duration kLeastCertificateLife = absl::Seconds(5);

std::vector<Setting> TlsSettings(Config* config) {
  TlsOptions& tls = config->broker.tls;
  return {
      {"tls.listen",
       "address for agents on other machines, IP:PORT; needs muster-broker init; 0.0.0.0: all "
       "addresses [none]",
       [config](const std::string& value) { return SetTlsListen(*config, value); }},
      {"tls.certificate",
       "the site's own certificate for the broker, with its chain, in PEM [STATE/ca/server.pem]",
       TextInto(&tls.files.certificate)},
      {"tls.key", "the key of tls.certificate, in PEM [STATE/ca/server-key.pem]",
       TextInto(&tls.files.key)},
      {"tls.client_ca",
       "a CA of the site that signs clusters' certificates, in PEM, beside the broker's own [none]",
       TextInto(&tls.files.client_ca)},
      {"tls.certificate_life",
       "how long an agent's certificate is good; it is renewed at two thirds of this [1d]",
       [config](const std::string& value) {
         return Duration(kLeastCertificateLife, [](Config& c, absl::Duration d) {
           c.broker.tls.certificate_life = d;
         })(*config, value);
       }},
  };
}

std::vector<Setting> AuditSettings(Config* config) {
  AuditOptions& audit = config->broker.audit;
  const auto take = [config](auto set) {
    return [config, set](const std::string& value) -> absl::Status { return set(*config, value); };
  };
  return {
      {"audit.retention", "how long records of the audit log are kept; 0s: for ever [400d]",
       take(Duration(absl::ZeroDuration(),
                     [](Config& c, absl::Duration d) { c.broker.audit.log.retention = d; }))},
      {"audit.max_bytes", "size of the audit log; the oldest records make room [4Gi]",
       take(Bytes([](Config& c, uint64_t n) { c.broker.audit.log.max_bytes = n; }))},
      {"audit.log_reads",
       "whether the audit log also has reads of jobs' logs, true or false [false]",
       [&audit](const std::string& value) -> absl::Status {
         if (value != "true" && value != "false") {
           return Invalid(fmt::format("\"{}\" is neither true nor false", value));
         }
         audit.log_reads = value == "true";
         return absl::OkStatus();
       }},
  };
}

Setting LeaseSetting(Config* config) {
  return {"lease_ms",
          "how long runs may go on without a word from their agent, if their jobs fail over then, "
          "in ms, up to 1d; at least three heartbeat_intervals [60000]",
          [config](const std::string& value) -> absl::Status {
            return Number(kLeastLeaseMs, kMostLeaseMs, 10, [](Config& c, uint64_t n) {
              c.lease = absl::Milliseconds(static_cast<int64_t>(n));
            })(*config, value);
          }};
}

// Makes a setter of the configuration into a setter of a setting.
auto Into(Config* config) {
  return [config](auto set) {
    return [config, set](const std::string& value) -> absl::Status { return set(*config, value); };
  };
}

std::vector<Setting> LogAndFileSettings(Config* config) {
  const auto into = Into(config);
  return {
      {"logs.max_job_bytes", "maximum bytes of logs kept for one job [1Gi]",
       into(Bytes([](Config& c, uint64_t n) { c.logs.max_job_bytes = n; }))},
      {"logs.max_total_bytes", "maximum bytes of logs kept for all jobs [100Gi]",
       into(Bytes([](Config& c, uint64_t n) { c.logs.max_total_bytes = n; }))},
      {"logs.retention", "how long logs are kept after a job's end; no longer than the job [30d]",
       into(Duration(absl::ZeroDuration(),
                     [](Config& c, absl::Duration d) { c.logs.retention = d; }))},
      {"files.max_job_bytes", "maximum bytes of input files of one job [1Gi]",
       into(Bytes([](Config& c, uint64_t n) { c.files.max_job_bytes = n; }))},
      {"files.max_total_bytes", "maximum bytes of input files kept for all jobs [50Gi]",
       into(Bytes([](Config& c, uint64_t n) { c.files.max_total_bytes = n; }))},
      {"files.max_user_bytes_per_hour", "bytes that one user may upload in an hour [20Gi]",
       into(Bytes([](Config& c, uint64_t n) { c.broker.user.max_upload_bytes_per_hour = n; }))},
      {"files.keep_free_bytes", "disk space that uploads leave free [256Mi]",
       into(Bytes([](Config& c, uint64_t n) { c.files.keep_free_bytes = n; }))},
      {"files.retention",
       "how long files are kept after their last use; unfinished jobs use theirs [7d]",
       into(Duration(files::kLeastRetention,
                     [](Config& c, absl::Duration d) { c.files.retention = d; }))},
  };
}

}  // namespace

std::vector<Setting> SettingsOf(Config* config) {
  const auto into = Into(config);
  constexpr uint64_t kAny = ~uint64_t{0};
  std::vector<Setting> settings = {
      {"state_dir", "directory of the database, the logs and the socket (required)",
       TextInto(&config->state_dir)},
      {"listen", "loopback address that is also served, HOST:PORT; port 0: any free port",
       into(SetListen)},
      {"socket_mode",
       "mode of the socket, octal; users who can connect have the rights of socket_role [0600]",
       into(Number(0600, 0666, 8, [](Config& c, uint64_t n) { c.broker.socket_mode = n; }))},
      {"socket_role",
       "role of the socket's users but its owner and root, who are admins; none: only with a token "
       "[operator]",
       into(RoleInto([](EntranceRoles& roles, Role role) { roles.socket = role; }))},
      {"listen_role", "role of clients of listen without a token; none: only with one [operator]",
       into(RoleInto([](EntranceRoles& roles, Role role) { roles.listen = role; }))},
      {.key = "agent_users",
       .help =
           "users of the socket, beside its owner and root, who may speak as agents, a,b [none]",
       .set =
           [config](const std::string& value) {
             config->broker.roles.agents =
                 absl::StrSplit(ToAbsl(value), ',', absl::SkipWhitespace());
             return absl::OkStatus();
           },
       .is_list = true},
      {"max_calls_per_second",
       "calls of one user in a second; ten seconds' worth may come at once [5000]",
       into(Number(1, 1'000'000, 10,
                   [](Config& c, uint64_t n) { c.broker.user.max_calls_per_second = n; }))},
      {"max_calls_in_flight", "calls and streams of one user at the same time [1000]",
       into(Number(1, 1'000'000, 10,
                   [](Config& c, uint64_t n) { c.broker.user.max_calls_in_flight = n; }))},
      {"log_format", "text or json [text]", into(SetLogFormat)},
      {"log_level", "debug, info, warning or error [info]", into(SetLogLevel)},
      {"heartbeat_interval", "how often agents give a sign of life [5s]",
       into(Duration(absl::Seconds(1),
                     [](Config& c, absl::Duration d) { c.broker.core.heartbeat_interval = d; }))},
      LeaseSetting(config),
      {"request_memory", "how long a request_id outlives its job [1d]",
       into(Duration(absl::Seconds(1),
                     [](Config& c, absl::Duration d) { c.broker.core.request_memory = d; }))},
      {"max_queued_jobs", "maximum number of waiting jobs; others are refused [10000000]",
       into(Number(1, kAny, 10, [](Config& c, uint64_t n) { c.broker.core.max_queued_jobs = n; }))},
      {"max_queued_jobs_per_user",
       "maximum number of waiting jobs of one user; others are refused; 0: no bound [1000000]",
       into(Number(0, kAny, 10,
                   [](Config& c, uint64_t n) { c.broker.core.max_queued_jobs_per_user = n; }))},
      {"max_waiting_runs_per_pool",
       "runs that may wait for room in a pool of Slurm or Kueue; others wait in the broker [8]",
       into(Number(1, 100'000, 10,
                   [](Config& c, uint64_t n) { c.broker.core.max_waiting_runs_per_pool = n; }))},
      {"sent_ahead_per_pool",
       "runs that may wait for room in a pool of machines, or of Kubernetes without Kueue [2]",
       into(Number(1, 100'000, 10,
                   [](Config& c, uint64_t n) { c.broker.core.sent_ahead_per_pool = n; }))},
      {"keep_room_after",
       "how long a job waits from its submit until room is kept for it, and others may not pass it "
       "[10m]",
       into(Duration(absl::Seconds(1),
                     [](Config& c, absl::Duration d) { c.broker.core.keep_room_after = d; }))},
      {"shares.half_life",
       "time after which what a project has used counts half as much in its share [7d]",
       into(Duration(absl::Minutes(1),
                     [](Config& c, absl::Duration d) { c.broker.core.half_life = d; }))},
      {"max_streams",
       "maximum number of agents (two streams each), watchers and log followers at once [10000]",
       into(Number(1, 1'000'000, 10, [](Config& c, uint64_t n) { c.broker.max_streams = n; }))},
      {"jobs.retention", "how long jobs are kept after their end; 0: forever [90d]",
       into(Duration(absl::ZeroDuration(),
                     [](Config& c, absl::Duration d) { c.broker.job_retention = d; }))},
  };
  for (Setting& setting : LogAndFileSettings(config)) settings.push_back(std::move(setting));
  for (Setting& setting : TlsSettings(config)) settings.push_back(std::move(setting));
  for (Setting& setting : HttpSettings(config)) settings.push_back(std::move(setting));
  for (Setting& setting : OidcSettings(config)) settings.push_back(std::move(setting));
  for (Setting& setting : NotifySettings(config)) settings.push_back(std::move(setting));
  for (Setting& setting : AuditSettings(config)) settings.push_back(std::move(setting));
  return settings;
}

absl::Status FinishLease(Config* config) {
  core::Options& core = config->broker.core;
  const absl::Duration least = kHeartbeatsOfALease * core.heartbeat_interval;
  core.lease = config->lease.value_or(std::max(core.lease, least));
  if (core.lease >= least) return absl::OkStatus();
  return Invalid(fmt::format(
      "lease_ms: {} is shorter than three heartbeats (heartbeat_interval: "
      "{}), so that runs would end although their agent is well; give at "
      "least {}, or a shorter heartbeat_interval",
      absl::ToInt64Milliseconds(core.lease), contract::FormatDuration(core.heartbeat_interval),
      absl::ToInt64Milliseconds(least)));
}

}  // namespace muster::broker
