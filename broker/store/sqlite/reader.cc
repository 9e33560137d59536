#include "broker/store/sqlite/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "broker/core/rerun_id.h"
#include "broker/core/timestamps.h"
#include "broker/store/errors.h"
#include "broker/store/job_past.h"
#include "broker/store/job_view.h"
#include "broker/store/sqlite/filter_sql.h"
#include "broker/store/sqlite/functions.h"
#include "broker/store/sqlite/job_row.h"
#include "broker/store/sqlite/schema.h"
#include "broker/store/sqlite/spec_table.h"
#include "contract/spec_mask.h"

namespace muster::store {
namespace {

// The columns that ReadTransition expects, of table transition named t.
constexpr std::string_view kTransitionColumns =
    "t.job, t.transition,"
    " (SELECT e.before FROM edit e WHERE e.job = t.job AND e.sequence = t.sequence),"
    " (SELECT e.before FROM edit e WHERE e.job = t.job AND e.sequence > t.sequence"
    "  ORDER BY e.sequence LIMIT 1)";

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& path,
                                                     const SqliteOptions& options) {
  auto database = OpenDatabase(path, SQLITE_OPEN_READONLY, options.vfs);
  if (!database.ok()) return database.status();
  const std::string pragmas = fmt::format(
      "PRAGMA busy_timeout = 5000;"  // the writer locks readers out only while it recovers
      "PRAGMA mmap_size = 0;"
      "PRAGMA temp_store = MEMORY;"
      "PRAGMA cache_size = -{};",
      options.reader_cache_bytes / 1024);
  if (absl::Status status = (*database)->Execute(pragmas); !status.ok()) return status;
  if (absl::Status status = AddFunctions(**database); !status.ok()) return status;
  std::unique_ptr<Reader> reader(new Reader(*std::move(database)));
  if (absl::Status status = reader->Prepare(); !status.ok()) return status;
  return reader;
}

absl::Status Reader::Prepare() {
  const std::string job = fmt::format("SELECT {} FROM job j WHERE j.id = ?", kJobColumns);
  const std::pair<Statement*, std::string> all[] = {
      {&begin_, "BEGIN"},
      {&end_, "COMMIT"},
      {&job_, job},
      {&state_, "SELECT state FROM job WHERE id = ?"},
      {&run_, "SELECT run FROM run WHERE id = ?"},
      {&runs_, "SELECT run FROM run WHERE id >= ? AND id < ? ORDER BY id"},
      {&spec_, "SELECT s.spec FROM job j JOIN spec s ON s.id = j.spec WHERE j.id = ?"},
      {&blocks_,
       "SELECT block FROM job_block WHERE block >= ? AND block <= ? AND last_create_time >= ?"
       " AND first_create_time <= ? ORDER BY block DESC LIMIT ?"},
      {&blocks_upwards_,
       "SELECT block FROM job_block WHERE block >= ? AND block <= ? AND last_create_time >= ?"
       " AND first_create_time <= ? ORDER BY block LIMIT ?"},
      {&request_, "SELECT request_id FROM job WHERE id = ? AND request_id IS NOT NULL"},
      {&transitions_,
       fmt::format("SELECT {} FROM transition t WHERE t.sequence > ? ORDER BY t.sequence LIMIT ?",
                   kTransitionColumns)},
      {&transition_,
       fmt::format("SELECT {} FROM transition t WHERE t.sequence = ?", kTransitionColumns)},
      {&sequences_,
       "SELECT sequence FROM transition INDEXED BY transition_by_job"
       " WHERE job = ? AND sequence > ? ORDER BY sequence LIMIT ?"},
      {&latest_steps_,
       "SELECT transition FROM transition INDEXED BY transition_by_job"
       " WHERE job = ? ORDER BY sequence DESC LIMIT ?"},
      {&last_numbers_,
       "SELECT max(last_job, ifnull((SELECT max(id) FROM job), 0)),"
       " max(last_sequence, ifnull((SELECT max(sequence) FROM transition), 0),"
       "  ifnull((SELECT max(changed) FROM run WHERE changed > 0), 0)) FROM broker"},
      {&run_changes_,
       "SELECT changed, id FROM run INDEXED BY run_by_change WHERE changed > ?"
       " ORDER BY changed LIMIT ?"},
      {&run_changes_of_job_,
       "SELECT changed, id FROM run WHERE id >= ? AND id < ? AND changed > ?"},
      // Each step is a transition; labels are few.
      {&ended_,
       fmt::format("SELECT j.id, 3 + j.job_sequence + j.runs"
                   " + (SELECT count(*) FROM edit e WHERE e.job = j.id)"
                   " FROM job j INDEXED BY job_by_end"
                   " WHERE j.end_time < ? AND NOT EXISTS (SELECT 1 FROM run r WHERE r.open = 1"
                   " AND r.id >= j.id << {0} AND r.id < (j.id + 1) << {0})"
                   " ORDER BY j.end_time LIMIT ?",
                   kRunBits)},
  };
  for (const auto& [statement, sql] : all) {
    absl::StatusOr<Statement> prepared = database_->Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  absl::StatusOr<Statement> instance = database_->Prepare("SELECT instance FROM broker");
  if (!instance.ok()) return instance.status();
  absl::StatusOr<bool> row = instance->Start().Step();
  if (!row.ok()) return row.status();
  if (!*row) return database_->ToStatus(SQLITE_CORRUPT, "find the broker's row");
  instance_ = instance->Text(0);
  return absl::OkStatus();
}

template <typename Message>
absl::Status Reader::Parse(std::string_view bytes, Message* out) const {
  if (out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return database_->ToStatus(SQLITE_CORRUPT, fmt::format("read a {}", out->GetTypeName()));
}

absl::Status Reader::NotHere(uint64_t id) {
  ScopedReset reset(&last_numbers_);
  absl::StatusOr<bool> row = last_numbers_.Start().Step();
  if (!row.ok()) return row.status();
  return NotThere(id, static_cast<uint64_t>(last_numbers_.Int(0)));
}

absl::Status Reader::ReadJob(const Scope& scope, uint64_t id, v1::Job* job, uint32_t* runs) {
  ScopedReset reset(&job_);
  absl::StatusOr<bool> row = job_.Start().Bind(id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return NotHere(id);
  ReadJobRow(job_, job, runs);
  if (!scope.Contains(job->project(), job->user())) return NoSuchJob(id);
  return absl::OkStatus();
}

absl::Status Reader::ReadLatestRun(uint32_t runs, v1::Job* job, bool keeps_run) {
  v1::Run run;
  bool has_run = false;
  if (runs > 0) {
    ScopedReset reset(&run_);
    absl::StatusOr<bool> row = run_.Start().Bind(RunRowId(job->id(), runs)).Step();
    if (!row.ok()) return row.status();
    has_run = *row;
    if (has_run) {
      if (absl::Status status = Parse(run_.Blob(0), &run); !status.ok()) return status;
    }
  }
  ShowState(has_run ? &run : nullptr, job);
  if (has_run && keeps_run) *job->add_runs() = std::move(run);
  return absl::OkStatus();
}

absl::Status Reader::ReadHold(v1::Job* job) {
  ScopedReset reset(&latest_steps_);
  latest_steps_.Start().Bind(job->id()).Bind(kMaxStepsToHold);
  v1::Transition step;
  while (true) {
    absl::StatusOr<bool> row = latest_steps_.Step();
    if (!row.ok() || !*row) return row.status();
    if (absl::Status status = Parse(latest_steps_.Blob(0), &step); !status.ok()) return status;
    if (step.kind() != v1::TRANSITION_KIND_HOLD_REQUESTED) continue;
    ShowHold(step, job);
    return absl::OkStatus();
  }
}

absl::Status Reader::ReadRuns(uint64_t id, google::protobuf::RepeatedPtrField<v1::Run>* runs) {
  ScopedReset reset(&runs_);
  runs_.Start().Bind(RunRowId(id, 0)).Bind(RunRowId(id + 1, 0));
  while (true) {
    absl::StatusOr<bool> row = runs_.Step();
    if (!row.ok() || !*row) return row.status();
    if (absl::Status status = Parse(runs_.Blob(0), runs->Add()); !status.ok()) return status;
  }
}

absl::Status Reader::ReadSpec(v1::Job* job, const contract::SpecMask* mask) {
  ScopedReset reset(&spec_);
  absl::StatusOr<bool> row = spec_.Start().Bind(job->id()).Step();
  if (!row.ok()) return row.status();
  if (!*row) return database_->ToStatus(SQLITE_CORRUPT, "find the spec of a job");
  if (mask == nullptr) {
    absl::Status status = Parse(spec_.Blob(0), job->mutable_spec());
    PutOwnParts(*job, job->mutable_spec());
    return status;
  }
  const std::optional<std::string> part = mask->Cut(spec_.Blob(0));
  if (!part.has_value()) return database_->ToStatus(SQLITE_CORRUPT, "read a part of a spec");
  absl::Status status = Parse(*part, job->mutable_spec());
  PutOwnParts(*job, *mask, job->mutable_spec());
  return status;
}

absl::StatusOr<v1::Job> Reader::GetJob(const Scope& scope, uint64_t id) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  v1::Job job;
  uint32_t runs = 0;
  absl::Status status = ReadJob(scope, id, &job, &runs);
  if (status.ok()) status = ReadSpec(&job);
  if (status.ok()) status = ReadRuns(id, job.mutable_runs());
  if (!status.ok()) return status;
  ShowState(job.runs_size() > 0 ? &job.runs(job.runs_size() - 1) : nullptr, &job);
  if (job.held()) status = ReadHold(&job);
  if (!status.ok()) return status;
  return job;
}

absl::StatusOr<std::vector<v1::Job>> Reader::GetJobs(const Scope& scope,
                                                     absl::Span<const uint64_t> ids) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<v1::Job> jobs;
  jobs.reserve(ids.size());
  for (uint64_t id : ids) {
    v1::Job& job = jobs.emplace_back();
    uint32_t runs = 0;
    absl::Status status = ReadJob(scope, id, &job, &runs);
    if (status.ok()) status = ReadLatestRun(runs, &job);
    if (!status.ok()) return status;
  }
  return jobs;
}

absl::StatusOr<std::vector<v1::Job>> Reader::GetJobsAndRuns(const Scope& scope,
                                                            absl::Span<const uint64_t> ids) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<v1::Job> jobs;
  jobs.reserve(ids.size());
  for (uint64_t id : ids) {
    v1::Job& job = jobs.emplace_back();
    uint32_t latest = 0;
    google::protobuf::RepeatedPtrField<v1::Run> runs;
    absl::Status status = ReadJob(scope, id, &job, &latest);
    if (status.ok()) status = ReadRuns(id, &runs);
    if (!status.ok()) return status;
    ShowState(runs.empty() ? nullptr : &*runs.rbegin(), &job);
    for (const v1::Run& run : runs) *job.add_runs() = ForFilters(run);
  }
  return jobs;
}

absl::StatusOr<std::vector<v1::Job>> Reader::GetJobsOfRequest(const Scope& scope, uint64_t first,
                                                              const std::string& request_id) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<v1::Job> jobs;
  for (uint64_t id = first;; ++id) {
    ScopedReset reset(&request_);
    absl::StatusOr<bool> row = request_.Start().Bind(id).Step();
    if (!row.ok()) return row.status();
    if (!*row || !core::IsOfRerun(request_.Text(0), request_id, id == first)) return jobs;
    v1::Job job;
    uint32_t runs = 0;
    const absl::Status status = ReadJob(scope, id, &job, &runs);
    if (absl::IsNotFound(status)) continue;
    if (!status.ok()) return status;
    jobs.push_back(std::move(job));
  }
}

absl::StatusOr<std::vector<StoredSpec>> Reader::GetSpecs(const Scope& scope,
                                                         absl::Span<const uint64_t> ids) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<StoredSpec> specs;
  specs.reserve(ids.size());
  for (uint64_t id : ids) {
    StoredSpec& stored = specs.emplace_back();
    v1::Job job;
    uint32_t latest = 0;
    absl::Status status = ReadJob(scope, id, &job, &latest);
    if (status.ok()) status = ReadSpec(&job);
    if (!status.ok()) return status;
    stored.spec = std::move(*job.mutable_spec());
    stored.user = std::move(*job.mutable_user());
    if (!stored.spec.retry().exclude_failed_nodes()) continue;
    google::protobuf::RepeatedPtrField<v1::Run> runs;
    if (absl::Status status = ReadRuns(id, &runs); !status.ok()) return status;
    stored.excluded_nodes = FailedNodes(runs);
  }
  return specs;
}

absl::StatusOr<std::vector<v1::JobState>> Reader::GetStates(absl::Span<const uint64_t> ids) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<v1::JobState> states;
  states.reserve(ids.size());
  for (const uint64_t id : ids) {
    ScopedReset reset(&state_);
    absl::StatusOr<bool> row = state_.Start().Bind(id).Step();
    if (!row.ok()) return row.status();
    states.push_back(*row ? static_cast<v1::JobState>(state_.Int(0)) : v1::JOB_STATE_UNSPECIFIED);
  }
  return states;
}

absl::StatusOr<uint64_t> Reader::LastSequence() {
  ScopedReset reset(&last_numbers_);
  absl::StatusOr<bool> row = last_numbers_.Start().Step();
  if (!row.ok()) return row.status();
  return static_cast<uint64_t>(last_numbers_.Int(1));
}

absl::StatusOr<std::vector<JobTransition>> Reader::ListTransitions(const Scope& scope,
                                                                   absl::Span<const uint64_t> jobs,
                                                                   uint64_t after_sequence,
                                                                   int limit) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  if (!jobs.empty()) return TransitionsOf(scope, jobs, after_sequence, limit);
  if (scope.is_all()) {
    ScopedReset reset(&transitions_);
    transitions_.Start().Bind(after_sequence).Bind(limit);
    return TakeTransitions(transitions_);
  }
  const SqlCondition condition = ConditionOf(scope.Narrow({}));
  absl::StatusOr<Statement> narrow =
      database_->Prepare(fmt::format("SELECT {} FROM transition t JOIN job j ON j.id = t.job"
                                     " WHERE t.sequence > ? AND {} ORDER BY t.sequence LIMIT ?",
                                     kTransitionColumns, condition.text));
  if (!narrow.ok()) return narrow.status();
  narrow->Start().Bind(after_sequence);
  BindAll(condition.values, &*narrow);
  narrow->Bind(limit);
  return TakeTransitions(*narrow);
}

absl::StatusOr<std::vector<RunChange>> Reader::ListRunChanges(const Scope& scope,
                                                              absl::Span<const uint64_t> jobs,
                                                              uint64_t after_sequence, int limit) {
  Snapshot snapshot(this);
  if (!snapshot.status().ok()) return snapshot.status();
  std::vector<std::pair<uint64_t, uint64_t>> found;  // sequence, row id of the run
  const auto take = [&found](Statement& rows) -> absl::Status {
    ScopedReset reset(&rows);
    while (true) {
      absl::StatusOr<bool> row = rows.Step();
      if (!row.ok() || !*row) return row.status();
      found.emplace_back(rows.Int(0), rows.Int(1));
    }
  };
  absl::Status status;
  if (jobs.empty()) status = take(run_changes_.Start().Bind(after_sequence).Bind(limit));
  for (const uint64_t job : std::set<uint64_t>(jobs.begin(), jobs.end())) {
    if (!status.ok()) break;
    run_changes_of_job_.Start().Bind(RunRowId(job, 0)).Bind(RunRowId(job + 1, 0));
    status = take(run_changes_of_job_.Bind(after_sequence));
  }
  if (!status.ok()) return status;
  std::sort(found.begin(), found.end());
  if (found.size() > static_cast<size_t>(limit)) found.resize(limit);
  std::vector<RunChange> out;
  for (const auto& [sequence, id] : found) {
    RunChange& item = out.emplace_back();
    item.sequence = sequence;
    v1::Job job;
    uint32_t runs = 0;
    status = ReadJob(scope, id >> kRunBits, &job, &runs);
    if (absl::IsNotFound(status)) continue;
    if (!status.ok()) return status;
    item.job = job.id();
    ScopedReset reset(&run_);
    absl::StatusOr<bool> row = run_.Start().Bind(id).Step();
    if (!row.ok()) return row.status();
    if (status = Parse(run_.Blob(0), &item.run); !status.ok()) return status;
  }
  return out;
}

absl::StatusOr<std::vector<JobTransition>> Reader::TakeTransitions(Statement& rows) {
  std::vector<JobTransition> out;
  while (true) {
    absl::StatusOr<bool> row = rows.Step();
    if (!row.ok()) return row.status();
    if (!*row) return out;
    if (absl::Status status = ReadTransition(rows, &out.emplace_back()); !status.ok())
      return status;
  }
}

absl::Status Reader::ReadTransition(const Statement& row, JobTransition* item) const {
  item->job = row.Int(0);
  if (absl::Status status = Parse(row.Blob(1), &item->transition); !status.ok()) return status;
  for (const auto& [column, editable] :
       {std::pair(2, &item->edited), std::pair(3, &item->edited_later)}) {
    if (row.IsNull(column)) continue;
    v1::Job before;
    if (absl::Status status = Parse(row.Blob(column), &before); !status.ok()) return status;
    *editable = Editable{before.priority(), {before.labels().begin(), before.labels().end()}};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobTransition>> Reader::TransitionsOf(const Scope& scope,
                                                                 absl::Span<const uint64_t> jobs,
                                                                 uint64_t after_sequence,
                                                                 int limit) {
  // The index alone answers for the numbers; then the first few jobs are read in full.
  std::vector<std::pair<uint64_t, uint64_t>> found;  // sequence, job
  for (uint64_t job : jobs) {
    if (!scope.is_all()) {
      v1::Job shown;
      uint32_t runs = 0;
      const absl::Status status = ReadJob(scope, job, &shown, &runs);
      if (absl::IsNotFound(status)) continue;
      if (!status.ok()) return status;
    }
    ScopedReset reset(&sequences_);
    sequences_.Start().Bind(job).Bind(after_sequence).Bind(limit);
    while (true) {
      absl::StatusOr<bool> row = sequences_.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      found.emplace_back(sequences_.Int(0), job);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > static_cast<size_t>(limit)) found.resize(limit);
  std::vector<JobTransition> out;
  out.reserve(found.size());
  for (const auto& [sequence, _] : found) {
    ScopedReset reset(&transition_);
    absl::StatusOr<bool> row = transition_.Start().Bind(sequence).Step();
    if (!row.ok()) return row.status();
    if (absl::Status status = ReadTransition(transition_, &out.emplace_back()); !status.ok())
      return status;
  }
  return out;
}

}  // namespace muster::store
