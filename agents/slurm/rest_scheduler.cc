#include "agents/slurm/rest_scheduler.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "agents/slurm/rest_checks.h"
#include "agents/slurm/rest_fields.h"
#include "agents/slurm/rest_json.h"
#include "agents/slurm/rest_nodes.h"
#include "agents/slurm/rest_rows.h"
#include "agents/slurm/rest_submission.h"
#include "contract/text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

constexpr std::string_view kQueueCall = "rest-jobs";

std::unique_ptr<TokenSource> MakeTokens(const SlurmConfig& config, Commands* commands) {
  if (!config.rest_token_file.empty()) return std::make_unique<TokenFile>(config.rest_token_file);
  return std::make_unique<TokenCommand>([commands](absl::Duration lifespan) {
    return commands->Ask(
        {"scontrol", "token", fmt::format("lifespan={}", absl::ToInt64Seconds(lifespan))});
  });
}

const json& SlurmOf(const json& answer) {
  const json& meta = Member(answer, "meta");
  const json& slurm = Member(meta, "Slurm");
  return slurm.is_null() ? Member(meta, "slurm") : slurm;
}

// "a b" and the like do not occur in what is asked for; whatever is no plain character is escaped.
std::string UrlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

// An answer whose shape is not as expected says nothing about any job.
template <typename Value>
absl::StatusOr<Value> Trusted(absl::StatusOr<Value> value) {
  if (!value.ok()) return absl::UnavailableError(value.status().message());
  return value;
}

// Slurm's own default.
constexpr size_t kUsualMaxArraySize = 1001;

SubmitOutcome Unclear(std::string words) {
  SubmitOutcome outcome;
  outcome.words = std::move(words);
  return outcome;
}

// Classifies slurmrestd's answer to a submission.
SubmitOutcome ClassifyAnswer(const RestAnswer& answer) {
  const std::vector<RestError> errors = ErrorsOf(*answer.json);
  const std::string words = fmt::format("slurmrestd: HTTP {} {}", answer.status, WordsOf(errors));
  if (const auto id = NumberOf(Member(*answer.json, "job_id")); id.value_or(0) > 0) {
    // Errors beside an id are remarks, such as that the job is held.
    SubmitOutcome outcome = Unclear(fmt::format("slurmrestd: job {} {}", *id, WordsOf(errors)));
    outcome.kind = agents::LaunchOutcome::Kind::kLaunched;
    outcome.job_id = static_cast<uint64_t>(*id);
    return outcome;
  }
  if (answer.status == 400)
    return NotSent(
        fmt::format("slurmrestd did not take the run's options. It said: {}", WordsOf(errors)));
  if (errors.empty() || errors.front().number <= 0) return Unclear(words);
  return ClassifyError(errors.front().error, {}, words);
}

// Returns all settings but the cluster's name.
ClusterSettings SettingsOf(const RestAnswer& ping, const RestServes& serves) {
  ClusterSettings settings;
  settings.version = TextOf(Member(SlurmOf(*ping.json), "release"));
  settings.keeps_accounting = serves.accounting;
  // MaxArraySize is not told. An array that is too large is refused, and its halves are tried.
  settings.max_array_size = kUsualMaxArraySize;
  return settings;
}

}  // namespace

RestScheduler::RestScheduler(const SlurmConfig& config, std::string user,
                             std::unique_ptr<Http> http, CallGate* gate, Commands* commands)
    : config_(config),
      user_(std::move(user)),
      commands_(commands),
      client_(config.rest_url, user_, std::move(http), MakeTokens(config, commands), gate) {}

absl::StatusOr<RestAnswer> RestScheduler::Get(std::string name, std::string path,
                                              std::string base) {
  RestQuestion question;
  question.name = std::move(name);
  if (question.name == kQueueCall) question.kind = CallKind::kObserve;
  question.path = std::move(path);
  question.base = std::move(base);
  question.timeout = config_.command_timeout;
  return AskWell(question);
}

absl::StatusOr<RestAnswer> RestScheduler::AskWell(const RestQuestion& question) {
  if (!question.base.empty()) {
    if (const absl::Status known = Serves().status(); !known.ok())
      return absl::UnavailableError(known.message());
  }
  return client_.AskWell(question);
}

absl::StatusOr<RestServes> RestScheduler::Serves() {
  {
    const MutexLock lock(mutex_);
    if (serves_.has_value()) return *serves_;
  }
  return AskServes();
}

absl::StatusOr<RestServes> RestScheduler::AskServes() {
  const absl::StatusOr<RestAnswer> answer = Get("rest-openapi", "/openapi/v3", "");
  if (!answer.ok()) return answer.status();
  RestServes serves = ReadRestServes(*answer->json);
  if (serves.version.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("slurmrestd at {} serves API {}, and this agent speaks {}: have it started "
                    "with {}, or leave "
                    "out slurm.rest_url, and Slurm's commands are used",
                    config_.rest_url,
                    serves.versions.empty() ? "of no version"
                                            : fmt::format("{}", fmt::join(serves.versions, ", ")),
                    fmt::join(kRestVersions, ", "), kHowToServe));
  }
  client_.Speak(serves.version);
  const MutexLock lock(mutex_);
  serves_ = serves;
  return serves;
}

absl::StatusOr<ClusterSettings> RestScheduler::Probe() {
  absl::StatusOr<ClusterSettings> settings = Settings();
  if (!absl::IsUnavailable(settings.status())) return settings;
  return absl::UnavailableError(
      fmt::format("Slurm does not answer: {}", ToStd(settings.status().message())));
}

absl::StatusOr<ClusterSettings> RestScheduler::Settings() {
  const absl::StatusOr<RestServes> serves = Serves();
  if (!serves.ok()) return serves.status();
  const absl::StatusOr<RestAnswer> ping = Get("rest-ping", "/ping");
  if (!ping.ok()) return ping.status();
  if (!AnyIsUp(*ping->json)) {
    return absl::UnavailableError(
        "rest-ping: slurmctld does not answer slurmrestd, or refuses the token: try `scontrol "
        "ping`, and look at the token's user and age");
  }
  ClusterSettings settings = SettingsOf(*ping, *serves);
  absl::StatusOr<std::string> name = ClusterName(*ping, serves->accounting);
  if (!name.ok()) return name.status();
  settings.name = *std::move(name);
  return settings;
}

// v0.0.38 has no answer that is there to tell it.
absl::StatusOr<std::string> RestScheduler::ClusterName(const RestAnswer& answer,
                                                       bool has_accounting) {
  if (!config_.rest_cluster.empty()) return config_.rest_cluster;
  {
    const MutexLock lock(mutex_);
    if (!cluster_name_.empty()) return cluster_name_;
  }
  std::string name = TextOf(Member(SlurmOf(*answer.json), "cluster"));
  // Accounting that does not answer now may tell it later.
  absl::Status silence;
  if (name.empty() && has_accounting) {
    const absl::StatusOr<RestAnswer> known = Get("rest-clusters", "/clusters", "slurmdb");
    silence = known.status();
    const json* clusters = known.ok() ? ListIn(*known->json, "clusters") : nullptr;
    if (clusters != nullptr && clusters->size() == 1)
      name = TextOf(Member(clusters->front(), "name"));
  }
  if (name.empty()) {
    const absl::StatusOr<RestAnswer> queue = Get(std::string(kQueueCall), "/jobs");
    if (!queue.ok()) return queue.status();
    const json& jobs = Member(*queue->json, "jobs");
    if (jobs.is_array() && !jobs.empty()) name = TextOf(Member(jobs.front(), "cluster"));
  }
  if (name.empty() && !silence.ok()) return silence;
  if (name.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "slurmrestd at {} does not tell the cluster's name: set slurm.rest_cluster to its "
        "ClusterName (scontrol show config)",
        config_.rest_url));
  }
  const MutexLock lock(mutex_);
  cluster_name_ = name;
  return name;
}

absl::StatusOr<std::vector<v1::Pool>> RestScheduler::Pools() {
  const absl::StatusOr<RestAnswer> partitions = Get("rest-partitions", "/partitions");
  if (!partitions.ok()) return partitions.status();
  const absl::StatusOr<RestAnswer> nodes = Get("rest-nodes", "/nodes");
  if (!nodes.ok()) return nodes.status();
  return Trusted(RestPools(*partitions->json, *nodes->json));
}

absl::StatusOr<std::vector<Partition>> RestScheduler::Partitions() {
  const absl::StatusOr<RestAnswer> answer = Get("rest-partitions", "/partitions");
  if (!answer.ok()) return answer.status();
  return Trusted(RestPartitions(*answer->json));
}

absl::StatusOr<std::vector<v1::Node>> RestScheduler::Nodes() {
  const absl::StatusOr<RestAnswer> answer = Get("rest-nodes", "/nodes");
  if (!answer.ok()) return answer.status();
  return Trusted(RestNodes(*answer->json));
}

absl::StatusOr<std::vector<QueuedJob>> RestScheduler::WholeQueue() {
  const absl::StatusOr<RestAnswer> answer = Get(std::string(kQueueCall), "/jobs");
  if (!answer.ok()) return answer.status();
  return Trusted(RestWholeQueue(*answer->json));
}

std::optional<Access> RestScheduler::CheckAccess(agents::CheckList* checks) {
  if (!JudgeToken(client_.Token(), user_, config_.rest_token_file, absl::Now(), checks)) {
    checks->Skip(v1::CHECK_CODE_SCHEDULER, "slurmrestd at " + config_.rest_url,
                 "there is no token to ask it with");
    return std::nullopt;
  }
  const absl::StatusOr<RestServes> serves = AskServes();
  if (!JudgeServes(config_.rest_url, serves, checks)) return std::nullopt;
  const absl::StatusOr<RestAnswer> ping = Get("rest-ping", "/ping");
  if (!JudgePing(ping, checks)) return std::nullopt;
  Access access;
  access.settings = SettingsOf(*ping, *serves);
  absl::StatusOr<std::string> name = ClusterName(*ping, serves->accounting);
  if (name.ok()) {
    access.settings.name = *std::move(name);
  } else {
    checks->Fail(v1::CHECK_CODE_IDENTITY, "the cluster's name",
                 std::string(ToStd(name.status().message())),
                 "set slurm.rest_cluster to its ClusterName (scontrol show config)");
  }
  access.asked.begin = absl::Now();
  const absl::StatusOr<RestAnswer> diagnosis = Get("rest-diag", "/diag");
  access.asked.end = absl::Now();
  if (diagnosis.ok()) access.controller_time = RestControllerTime(*diagnosis->json);
  return access;
}

absl::StatusOr<std::vector<Association>> RestScheduler::Associations(
    const ClusterSettings& settings, const std::string& user) {
  const absl::StatusOr<RestAnswer> answer =
      Get("rest-associations", "/associations?user=" + UrlEscaped(user), "slurmdb");
  if (!answer.ok()) return answer.status();
  return Trusted(RestAssociations(*answer->json, settings.name, user));
}

absl::StatusOr<std::vector<std::string>> RestScheduler::KnownNodes(
    const std::vector<std::string>& names) {
  const absl::StatusOr<RestAnswer> nodes = Get("rest-nodes", "/nodes");
  if (!nodes.ok()) return nodes.status();
  return Trusted(RestKnownNodes(*nodes->json, names));
}

SubmitOutcome RestScheduler::Submit(const Submission& submission) {
  absl::StatusOr<std::map<std::string, std::string>> environment = commands_->JobEnvironment();
  if (!environment.ok()) return NoAnswer(environment.status());
  const absl::StatusOr<RestServes> serves = Serves();
  if (!serves.ok()) return NoAnswer(absl::UnavailableError(serves.status().message()));
  absl::StatusOr<std::string> body =
      RestSubmission(submission, *std::move(environment), serves->api());
  if (!body.ok()) return NotSent(std::string(ToStd(body.status().message())));
  RestQuestion question;
  question.name = "rest-submit";
  question.kind = CallKind::kSubmit;
  question.method = "POST";
  question.path = "/job/submit";
  question.body = *std::move(body);
  question.timeout = config_.sbatch_timeout;
  const absl::StatusOr<RestAnswer> answer = client_.Ask(question);
  if (!answer.ok()) return NoAnswer(answer.status());
  return ClassifyAnswer(*answer);
}

absl::StatusOr<std::string> RestScheduler::EstimateStart(const Submission& submission) {
  const absl::StatusOr<RestServes> serves = Serves();
  if (!serves.ok()) return serves.status();
  if (const absl::Status body = RestSubmission(submission, {}, serves->api()).status(); !body.ok())
    return body;
  return absl::UnimplementedError(
      "slurmrestd has nothing like sbatch --test-only: when the job would start, and whether Slurm "
      "would take it, cannot be told without submitting it");
}

absl::StatusOr<std::vector<QueueRow>> RestScheduler::Queue(std::string_view name) {
  const absl::StatusOr<RestAnswer> answer = Get(std::string(kQueueCall), "/jobs");
  if (!answer.ok()) return answer.status();
  return Trusted(RestQueue(*answer->json, user_, name));
}

absl::StatusOr<std::vector<HistoryRow>> RestScheduler::HistoryOf(const std::vector<JobId>& ids,
                                                                 absl::Time since) {
  std::set<std::string> numbers;
  for (const JobId& id : ids) numbers.insert(std::to_string(id.number));
  return History("step", numbers, since);
}

absl::StatusOr<std::vector<UsageRow>> RestScheduler::UsageOf(const std::vector<JobId>& ids,
                                                             absl::Time since) {
  std::set<std::string> numbers;
  for (const JobId& id : ids) numbers.insert(std::to_string(id.number));
  const absl::StatusOr<RestAnswer> answer =
      AskAccounting("rest-usage", "step", numbers, since, /*with_steps=*/true);
  if (!answer.ok()) return answer.status();
  return Trusted(RestUsage(*answer->json, user_));
}

absl::StatusOr<std::vector<HistoryRow>> RestScheduler::HistoryOf(std::string_view name,
                                                                 absl::Time since) {
  return History("job_name", {std::string(name)}, since);
}

absl::StatusOr<std::vector<HistoryRow>> RestScheduler::History(std::string_view what,
                                                               const std::set<std::string>& values,
                                                               absl::Time since) {
  const absl::StatusOr<RestAnswer> answer =
      AskAccounting("rest-history", what, values, since, /*with_steps=*/false);
  if (!answer.ok()) return answer.status();
  return Trusted(RestHistory(*answer->json, user_));
}

absl::StatusOr<RestAnswer> RestScheduler::AskAccounting(std::string name, std::string_view what,
                                                        const std::set<std::string>& values,
                                                        absl::Time since, bool with_steps) {
  const absl::StatusOr<RestServes> serves = Serves();
  if (!serves.ok()) return absl::UnavailableError(serves.status().message());
  if (!serves->accounting) {
    return absl::FailedPreconditionError(
        "slurmrestd serves no accounting: the cluster keeps none, or slurmrestd was started "
        "without openapi/slurmdbd (for v0.0.38: openapi/dbv0.0.38)");
  }
  // A list is one value with commas at first, and one value each from v0.0.40 on.
  std::string query =
      fmt::format("{}={}", what, UrlEscaped(fmt::format("{}", fmt::join(values, ","))));
  if (serves->api() >= kFirstTypedApi)
    query = fmt::format("{}={}", what, fmt::join(values, fmt::format("&{}=", what)));
  absl::StatusOr<RestAnswer> answer =
      Get(std::move(name),
          fmt::format("/jobs?{}{}&start_time=uts{}", query, with_steps ? "" : "&skip_steps=true",
                      absl::ToUnixSeconds(since)),
          "slurmdb");
  if (!answer.ok()) return absl::UnavailableError(answer.status().message());
  return answer;
}

absl::StatusOr<HistoryRow> RestScheduler::ShowJob(const JobId& id) {
  const absl::StatusOr<RestAnswer> answer = Get("rest-job", "/job/" + id.ToString());
  if (!answer.ok()) return answer.status();
  absl::StatusOr<HistoryRow> row = RestJob(*answer->json, id);
  return absl::IsNotFound(row.status()) ? row : Trusted(std::move(row));
}

absl::Status RestScheduler::CancelOne(const JobId& id) {
  RestQuestion question;
  question.name = "rest-cancel";
  question.kind = CallKind::kEnd;
  question.method = "DELETE";
  question.path = "/job/" + id.ToString();
  question.timeout = config_.command_timeout;
  const absl::Status status = AskWell(question).status();
  const bool gone = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  return gone ? absl::OkStatus() : status;
}

std::vector<absl::Status> RestScheduler::CancelMany(const std::vector<JobId>& ids) {
  std::vector<absl::Status> statuses;
  for (const JobId& id : ids) statuses.push_back(CancelOne(id));
  return statuses;
}

std::vector<absl::Status> RestScheduler::SetHeldMany(const std::vector<JobId>& ids, bool held) {
  const absl::StatusOr<RestServes> serves = Serves();
  const bool only_whole = serves.ok() && serves->api() >= kFirstTypedApi;
  // The result for each array that is held whole.
  std::map<uint64_t, absl::Status> arrays;
  std::vector<absl::Status> statuses;
  for (const JobId& id : ids) {
    if (!only_whole || !id.task.has_value()) {
      statuses.push_back(SetHold(id, held));
      continue;
    }
    auto [array, is_new] = arrays.try_emplace(id.number);
    if (is_new) array->second = SetArrayHold(id.number, ids, held);
    statuses.push_back(array->second);
  }
  return statuses;
}

absl::Status RestScheduler::SetArrayHold(uint64_t number, const std::vector<JobId>& ids,
                                         bool held) {
  const JobId whole{number};
  const absl::StatusOr<RestAnswer> answer = Get("rest-job", "/job/" + whole.ToString());
  if (!answer.ok()) return answer.status();
  const absl::StatusOr<std::vector<QueueRow>> rows = Trusted(RestQueue(*answer->json, user_, {}));
  if (!rows.ok()) return rows.status();
  bool any_waits = false;
  for (const QueueRow& row : *rows) {
    if (row.state.phase != JobPhase::kPending) continue;
    any_waits = true;
    if (std::find(ids.begin(), ids.end(), row.job_id) != ids.end()) continue;
    if (row.unnamed_from.has_value()) {
      return absl::UnimplementedError(fmt::format(
          "slurmrestd holds and releases all waiting tasks of an array together, and does not list "
          "all of array {}, so that nobody can tell whether all are meant; start slurmrestd with "
          "SLURM_BITSTR_LEN=0, or have the cluster's agent use Slurm's commands (without "
          "slurm.rest_url)",
          whole.ToString()));
    }
    return absl::UnimplementedError(fmt::format(
        "slurmrestd holds and releases all waiting tasks of an array together, and task {} is not "
        "meant; have the cluster's agent use Slurm's commands (without slurm.rest_url) for single "
        "tasks",
        row.job_id.ToString()));
  }
  if (any_waits) return SetHold(whole, held);
  return absl::FailedPreconditionError(
      fmt::format("no task of array {} waits any more", whole.ToString()));
}

absl::Status RestScheduler::SetHold(const JobId& id, bool hold) {
  RestQuestion question;
  question.name = hold ? "rest-hold" : "rest-release";
  question.kind = CallKind::kEnd;
  question.method = "POST";
  question.path = "/job/" + id.ToString();
  question.body = json{{"hold", hold}}.dump();
  question.timeout = config_.command_timeout;
  absl::Status status = AskWell(question).status();
  if (!absl::IsUnavailable(status) || !id.task.has_value()) return status;
  // slurmrestd 22.05 reports a failure for a task, whatever the result was.
  const absl::StatusOr<RestAnswer> answer = Get("rest-job", "/job/" + id.ToString());
  if (!answer.ok()) return status;
  const absl::StatusOr<std::vector<QueueRow>> rows = RestQueue(*answer->json, user_, {});
  const bool done =
      rows.ok() && rows->size() == 1 && (rows->front().reason.starts_with("JobHeld") == hold);
  return done ? absl::OkStatus() : status;
}

}  // namespace muster::slurm
