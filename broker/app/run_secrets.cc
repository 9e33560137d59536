#include "broker/app/run_secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "broker/app/agent_streams.h"
#include "broker/app/rights.h"
#include "broker/secrets/secrets.h"
#include "broker/secrets/wipe.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/run_key.h"
#include "contract/secrets.h"
#include "contract/states.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

using secrets::OwnerKind;

// Finds the secret that a name stands for in a job: the user's own, or else the project's.
std::optional<secrets::Record> FindSecret(const Services& services, const std::string& user,
                                          const v1::JobSpec& spec, const std::string& name) {
  auto own = services.secrets->Find({OwnerKind::kUser, user, name});
  if (own || spec.project().empty()) return own;
  return services.secrets->Find({OwnerKind::kProject, spec.project(), name});
}

absl::Status Missing(const std::string& user, const v1::JobSpec& spec, const std::string& name,
                     absl::StatusCode code) {
  return contract::Error(
      code, "NO_SUCH_SECRET",
      fmt::format("there is no secret {0} of user {1} or of project {2}: set it (muster secret set "
                  "{0}), or take it out of the job's secrets",
                  name, user, spec.project()),
      {{"secret", name}});
}

absl::Status TooLarge(size_t bytes) {
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "SECRETS_TOO_LARGE",
      fmt::format("the job's secrets have {} bytes together, and a job gets at most {}; give it "
                  "fewer, or shorter ones",
                  bytes, contract::kMaxJobSecretBytes));
}

absl::Status CheckOne(const Services& services, const std::string& user, const v1::JobSpec& spec) {
  size_t bytes = 0;
  for (const v1::SecretUse& use : spec.secrets()) {
    const auto found = FindSecret(services, user, spec, use.name());
    if (!found) return Missing(user, spec, use.name(), absl::StatusCode::kFailedPrecondition);
    bytes += found->size_bytes;
  }
  return bytes <= contract::kMaxJobSecretBytes ? absl::OkStatus() : TooLarge(bytes);
}

absl::Status NoSuchRun(const std::string& run_key) {
  return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_RUN",
                         fmt::format("this cluster has no run {} that has yet to end", run_key),
                         {{"run", run_key}});
}

// The run's job, if the run is the cluster's and has not ended.
absl::StatusOr<v1::Job> FindJob(const Services& services,
                                const agent::v1::FetchRunSecretsRequest& request) {
  const auto key = contract::RunKey::Parse(request.run_key());
  if (!key.ok()) return NoSuchRun(request.run_key());
  absl::StatusOr<v1::Job> job = services.store->GetJob(store::Scope::All(), key->job);
  if (absl::IsNotFound(job.status())) return NoSuchRun(request.run_key());
  if (!job.ok()) return job.status();
  const bool is_there = !job->runs().empty() &&
                        job->runs().rbegin()->run_key() == request.run_key() &&
                        job->runs().rbegin()->cluster() == request.cluster() &&
                        !contract::IsTerminal(job->runs().rbegin()->state());
  if (!is_there) return NoSuchRun(request.run_key());
  return job;
}

void NoteJob(const Services& services, const secrets::Record& record, uint64_t job) {
  if (!record.for_one_job || record.job != 0) return;
  const absl::Status status = services.secrets->SetJob(record.id, job);
  if (status.ok()) return;
  LogEvent(spdlog::level::warn, "secret_not_noted",
           {{"secret", record.id.name}, {"error", std::string(ToStd(status.message()))}});
}

// A secret for one job of a submit, and the job's place in it.
struct Noted {
  size_t place = 0;
  secrets::Record record;
};

std::vector<Noted> SecretsForOneJob(const Services& services, const core::Submit& submit) {
  std::vector<Noted> found;
  for (size_t i = 0; i < submit.items.size(); ++i) {
    for (const v1::SecretUse& use : submit.items[i].spec->secrets()) {
      const auto record = FindSecret(services, submit.user, *submit.items[i].spec, use.name());
      if (record && record->for_one_job && record->job == 0) found.push_back({i, *record});
    }
  }
  return found;
}

// Returns whether the secret's one job has ended, or has not come.
absl::StatusOr<bool> IsSpent(const Services& services, const secrets::Record& record) {
  if (record.job == 0) {
    return absl::FromUnixMicros(record.updated_micros) + secrets::kOneJobPatience < services.now();
  }
  const absl::StatusOr<v1::Job> job = services.store->GetJob(store::Scope::All(), record.job);
  if (absl::IsNotFound(job.status())) return true;
  if (!job.ok()) return job.status();
  return contract::IsTerminal(job->state());
}

}  // namespace

absl::Status CheckJobSecrets(const Principal& principal, const Services& services,
                             const core::Submit& submit) {
  for (size_t i = 0; i < submit.items.size(); ++i) {
    const v1::JobSpec& spec = *submit.items[i].spec;
    if (spec.secrets().empty()) continue;
    if (principal.known_by == KnownBy::kNobody) return NotAllowed(principal);
    absl::Status status = CheckOne(services, submit.user, spec);
    if (status.ok()) continue;
    const auto info = contract::GetErrorInfo(status);
    std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    if (submit.items.size() > 1) metadata["request"] = fmt::format("{}", i);
    contract::SetMetadata(std::move(metadata), &status);
    return status;
  }
  return absl::OkStatus();
}

SubmitDone NotingSecrets(const Services& services, const core::Submit& submit, SubmitDone done) {
  if (submit.validate_only) return done;
  std::vector<Noted> noted = SecretsForOneJob(services, submit);
  if (noted.empty()) return done;
  return [services, noted = std::move(noted),
          done = std::move(done)](absl::StatusOr<v1::SubmitJobsResponse> result) {
    if (result.ok()) {
      // A launch notes it, too, should nobody have the time now.
      std::vector<std::pair<secrets::Record, uint64_t>> jobs;
      for (const Noted& one : noted)
        jobs.emplace_back(one.record, result->responses(static_cast<int>(one.place)).job_id());
      services.file_workers->PostCall([services, jobs = std::move(jobs)] {
        for (const auto& [record, job] : jobs) NoteJob(services, record, job);
      });
    }
    done(std::move(result));
  };
}

absl::StatusOr<agent::v1::FetchRunSecretsResponse> FetchRunSecrets(
    const Services& services, const agent::v1::FetchRunSecretsRequest& request) {
  absl::Status connected =
      CheckConnected(services.engine->agents(), request.cluster(), request.journal_id());
  if (!connected.ok()) return connected;
  const absl::StatusOr<v1::Job> job = FindJob(services, request);
  if (!job.ok()) return job.status();
  agent::v1::FetchRunSecretsResponse response;
  size_t bytes = 0;
  for (const v1::SecretUse& use : job->spec().secrets()) {
    const auto record = FindSecret(services, job->user(), job->spec(), use.name());
    if (!record) return Missing(job->user(), job->spec(), use.name(), absl::StatusCode::kNotFound);
    NoteJob(services, *record, job->id());
    absl::StatusOr<std::string> value = services.secrets->Read(record->id);
    if (!value.ok()) return value.status();
    bytes += value->size();
    agent::v1::RunSecret& secret = *response.add_secrets();
    secret.set_variable(use.variable());
    secret.set_as_file(use.as_file());
    secret.set_value(*std::move(value));
  }
  if (bytes > contract::kMaxJobSecretBytes) return TooLarge(bytes);
  LogEvent(spdlog::level::info, "secrets_told",
           {{"run", request.run_key()},
            {"cluster", request.cluster()},
            {"secrets", fmt::format("{}", response.secrets_size())}});
  return response;
}

absl::Status RemoveSpentSecrets(const Services& services) {
  const std::vector<secrets::Record> all =
      services.secrets->List(std::nullopt, secrets::kMaxSecrets,
                             [](const secrets::Record& record) { return record.for_one_job; });
  for (const secrets::Record& record : all) {
    const absl::StatusOr<bool> is_spent = IsSpent(services, record);
    if (!is_spent.ok()) return is_spent.status();
    if (!*is_spent) continue;
    if (absl::Status status = services.secrets->Remove(record.id);
        !status.ok() && !absl::IsNotFound(status)) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::broker
