#include "broker/store/sqlite/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "broker/store/job_view.h"
#include "broker/store/sqlite/schema.h"
#include "contract/errors.h"
#include "contract/launch_refusals.h"
#include "contract/states.h"

namespace muster::store {
namespace {

// Calls `row` for each row of the query.
template <typename F>
absl::Status ForEachRow(const Database& database, std::string_view sql, F row,
                        std::optional<int64_t> parameter = std::nullopt) {
  absl::StatusOr<Statement> statement = database.Prepare(sql);
  if (!statement.ok()) return statement.status();
  statement->Start();
  if (parameter) statement->Bind(*parameter);
  while (true) {
    absl::StatusOr<bool> has_row = statement->Step();
    if (!has_row.ok()) return has_row.status();
    if (!*has_row) return absl::OkStatus();
    if (absl::Status status = row(*statement); !status.ok()) return status;
  }
}

template <typename Message>
absl::Status Parse(const Database& database, std::string_view table, std::string_view bytes,
                   Message* out) {
  if (out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return database.ToStatus(SQLITE_CORRUPT, fmt::format("read a message of table {}", table));
}

class Restorer {
 public:
  Restorer(const Database& database, absl::Time requests_since)
      : database_(database), requests_since_(requests_since) {}

  absl::StatusOr<core::Restored> Run() {
    absl::Status status = ReadBroker();
    if (status.ok()) status = ReadClusters();
    if (status.ok()) status = ReadLiveJobs();
    if (status.ok()) status = ReadRuns();
    if (status.ok()) status = ReadEndedRequests();
    if (status.ok()) status = ReadUses();
    if (!status.ok()) return status;
    out_.requirements = requirements_.Take();
    return std::move(out_);
  }

 private:
  absl::Status ReadBroker() {
    return ForEachRow(database_,
                      "SELECT instance, epoch,"
                      " max(last_job, ifnull((SELECT max(id) FROM job), 0)) + 1,"
                      " max(last_sequence, ifnull((SELECT max(sequence) FROM transition), 0),"
                      "  ifnull((SELECT max(changed) FROM run WHERE changed > 0), 0)) + 1"
                      " FROM broker",
                      [this](const Statement& row) {
                        out_.instance = row.Text(0);
                        out_.broker_epoch = row.Int(1);
                        out_.next_job_id = row.Int(2);
                        out_.next_sequence = row.Int(3);
                        return absl::OkStatus();
                      });
  }

  absl::Status ReadClusters() {
    return ForEachRow(
        database_,
        "SELECT name, kind, inventory, agent_version, journal_id, acked_event_sequence,"
        " agent_epoch, max_active_runs, last_seen, cordon, fence_delay, lease"
        " FROM cluster ORDER BY name",
        [this](const Statement& row) {
          core::PutCluster& cluster = out_.clusters.emplace_back();
          cluster.name = row.Text(0);
          cluster.kind = static_cast<v1::ClusterKind>(row.Int(1));
          cluster.agent_version = row.Text(3);
          cluster.journal_id = row.Text(4);
          cluster.acked_event_sequence = row.Int(5);
          cluster.agent_epoch = row.Int(6);
          cluster.max_active_runs = static_cast<uint32_t>(row.Int(7));
          cluster.last_seen = absl::FromUnixMicros(row.Int(8));
          cluster.fence_delay = absl::Microseconds(row.Int(10));
          cluster.lease = absl::Microseconds(row.Int(11));
          if (!row.IsNull(9)) {
            absl::Status status =
                Parse(database_, "cluster", row.Blob(9), &cluster.cordon.emplace());
            if (!status.ok()) return status;
          }
          return Parse(database_, "cluster", row.Blob(2), &cluster.inventory);
        });
  }

  absl::Status ReadLiveJobs() {
    absl::StatusOr<Statement> select = database_.Prepare("SELECT spec FROM spec WHERE id = ?");
    if (!select.ok()) return select.status();
    select_spec_ = *std::move(select);
    select = database_.Prepare("SELECT run FROM run WHERE id BETWEEN ? AND ? ORDER BY id");
    if (!select.ok()) return select.status();
    select_runs_ = *std::move(select);
    select = database_.Prepare("SELECT state FROM job WHERE id = ?");
    if (!select.ok()) return select.status();
    select_state_ = *std::move(select);
    for (int state = v1::JobState_MIN; state <= v1::JobState_MAX; ++state) {
      if (contract::IsTerminal(static_cast<v1::JobState>(state))) continue;
      absl::Status status = ForEachRow(
          database_,
          "SELECT j.id, j.state, j.job_sequence, j.cancel_requested, j.runs, j.spec, j.priority,"
          " j.start_time, j.project, j.request_id, j.fingerprint, j.hold, j.retry_time, j.user,"
          " j.withdrawal, j.returned_runs, j.fail_overs, j.create_time"
          " FROM job j INDEXED BY job_by_state WHERE j.state = ? ORDER BY j.id",
          [this](const Statement& row) { return ReadLiveJob(row); }, state);
      if (!status.ok()) return status;
    }
    std::sort(out_.jobs.begin(), out_.jobs.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return absl::OkStatus();
  }

  absl::Status ReadLiveJob(const Statement& row) {
    core::LiveJob& job = out_.jobs.emplace_back();
    job.id = row.Int(0);
    job.state = static_cast<v1::JobState>(row.Int(1));
    job.job_sequence = row.Int(2);
    job.cancel_requested = row.Int(3) != 0;
    job.runs = static_cast<uint32_t>(row.Int(4));
    job.priority = static_cast<int32_t>(row.Int(6));
    if (!row.IsNull(7)) job.start_time = absl::FromUnixMicros(row.Int(7));
    job.hold = static_cast<core::HoldState>(row.Int(11));
    if (!row.IsNull(12)) job.retry_time = absl::FromUnixMicros(row.Int(12));
    if (!row.IsNull(14)) {
      absl::Status status = Parse(database_, "job", row.Blob(14), &job.withdrawal.emplace());
      if (!status.ok()) return status;
    }
    job.returned_runs = static_cast<uint32_t>(row.Int(15));
    if (job.returned_runs > 0) {
      if (absl::Status status = ReadRefusals(&job); !status.ok()) return status;
    }
    if (!row.IsNull(9)) {
      out_.requests.push_back({std::string(row.Text(8)), std::string(row.Text(9)),
                               static_cast<core::Fingerprint>(row.Int(10)), job.id, std::nullopt});
    }
    job.fail_overs = static_cast<uint32_t>(row.Int(16));
    job.create_time = absl::FromUnixMicros(row.Int(17));
    job.user = IndexOf(std::string(row.Text(13)));
    const int64_t spec_row = row.Int(5);
    absl::StatusOr<uint32_t> requirements = RequirementsOf(spec_row, std::string(row.Text(8)));
    if (!requirements.ok()) return requirements.status();
    job.requirements = *requirements;
    const auto dependent = dependent_.find(spec_row);
    if (job.runs > 0 || dependent == dependent_.end()) return absl::OkStatus();
    return ReadDependencies(dependent->second, &job);
  }

  absl::Status ReadRefusals(core::LiveJob* job) {
    ScopedReset reset(&select_runs_);
    select_runs_.Start().Bind(RunRowId(job->id, 1)).Bind(RunRowId(job->id, job->runs));
    v1::Run run;
    while (true) {
      absl::StatusOr<bool> has_row = select_runs_.Step();
      if (!has_row.ok()) return has_row.status();
      if (!*has_row) return absl::OkStatus();
      absl::Status status = Parse(database_, "run", select_runs_.Blob(0), &run);
      if (!status.ok()) return status;
      if (contract::MayGoElsewhere(run)) contract::NoteRefusal(run, &job->refusals);
    }
  }

  absl::Status ReadDependencies(const v1::JobSpec& spec, core::LiveJob* job) {
    std::vector<v1::JobState> states;
    for (const v1::JobDependency& one : spec.depends_on()) {
      ScopedReset reset(&select_state_);
      absl::StatusOr<bool> found = select_state_.Start().Bind(one.job_id()).Step();
      if (!found.ok()) return found.status();
      states.push_back(*found ? static_cast<v1::JobState>(select_state_.Int(0))
                              : v1::JOB_STATE_UNSPECIFIED);
    }
    job->depends_on = RestoredDependencies(spec, states);
    return absl::OkStatus();
  }

  uint32_t IndexOf(std::string user) {
    const auto [at, is_new] =
        by_user_.emplace(std::move(user), static_cast<uint32_t>(out_.users.size()));
    if (is_new) out_.users.push_back(at->first);
    return at->second;
  }

  // Reads and parses each spec once, however many jobs of a project have it.
  absl::StatusOr<uint32_t> RequirementsOf(int64_t spec_row, std::string project) {
    std::pair<int64_t, std::string> key(spec_row, std::move(project));
    if (const auto known = by_spec_.find(key); known != by_spec_.end()) return known->second;
    ScopedReset reset(&select_spec_);
    absl::StatusOr<bool> found = select_spec_.Start().Bind(spec_row).Step();
    if (!found.ok()) return found.status();
    if (!*found) return database_.ToStatus(SQLITE_CORRUPT, "find the spec of a job");
    spec_.Clear();
    absl::Status status = Parse(database_, "spec", select_spec_.Blob(0), &spec_);
    if (!status.ok()) return status;
    if (spec_.depends_on_size() > 0)
      *dependent_[spec_row].mutable_depends_on() = spec_.depends_on();
    spec_.set_project(key.second);
    const uint32_t index = requirements_.Add(core::RequirementsOf(spec_));
    by_spec_.emplace(std::move(key), index);
    return index;
  }

  absl::Status ReadRuns() {
    return ForEachRow(database_, "SELECT id, run FROM run WHERE open = 1",
                      [this](const Statement& row) {
                        core::PutRun& put = out_.runs.emplace_back();
                        put.job = static_cast<uint64_t>(row.Int(0)) >> kRunBits;
                        return Parse(database_, "run", row.Blob(1), &put.run);
                      });
  }

  absl::Status ReadEndedRequests() {
    return ForEachRow(
        database_,
        "SELECT j.id, j.project, j.request_id, j.fingerprint, j.end_time"
        " FROM job j INDEXED BY job_by_end"
        " WHERE j.end_time >= ? AND j.request_id IS NOT NULL ORDER BY j.end_time",
        [this](const Statement& row) {
          out_.requests.push_back({std::string(row.Text(1)), std::string(row.Text(2)),
                                   static_cast<core::Fingerprint>(row.Int(3)),
                                   static_cast<uint64_t>(row.Int(0)),
                                   absl::FromUnixMicros(row.Int(4))});
          return absl::OkStatus();
        },
        absl::ToUnixMicros(requests_since_));
  }

  absl::Status ReadUses() {
    return ForEachRow(database_, "SELECT project, user, at, cpu, memory, gpu FROM share_use",
                      [this](const Statement& row) {
                        out_.uses.push_back({.project = std::string(row.Text(0)),
                                             .user = std::string(row.Text(1)),
                                             .used = {row.Real(3), row.Real(4), row.Real(5)},
                                             .at = absl::FromUnixMicros(row.Int(2))});
                        return absl::OkStatus();
                      });
  }

  const Database& database_;
  const absl::Time requests_since_;
  core::Restored out_;
  core::RequirementsList requirements_;
  absl::flat_hash_map<std::pair<int64_t, std::string>, uint32_t> by_spec_;  // row, project
  absl::flat_hash_map<int64_t, v1::JobSpec>
      dependent_;  // by row: the depends_on of those with some
  absl::flat_hash_map<std::string, uint32_t> by_user_;
  Statement select_spec_, select_state_, select_runs_;
  v1::JobSpec spec_;  // kept, so that its parts are allocated once
};

}  // namespace

absl::StatusOr<core::Restored> RestoreFrom(const Database& database, absl::Time requests_since) {
  return Restorer(database, requests_since).Run();
}

}  // namespace muster::store
