#include "broker/store/sqlite/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/core/timestamps.h"
#include "broker/store/job_view.h"
#include "broker/store/sqlite/schema.h"
#include "contract/errors.h"
#include "contract/states.h"

namespace muster::store {
namespace {

constexpr int64_t kPageBytes = 4096;
// The writer waits this long for an operator's sqlite3 that writes; Muster has no other writer.
constexpr int kOtherWriterPatienceMs = 5000;
// The wait for readers that keep the WAL from starting again. Commits wait meanwhile.
constexpr int kReaderPatienceMs = 100;

void BindTime(const std::optional<absl::Time>& time, Statement& statement) {
  if (time) {
    statement.Bind(absl::ToUnixMicros(*time));
  } else {
    statement.BindNull();
  }
}

// SQLite keeps its old mode, without an error, if it cannot share memory between connections.
absl::Status UseWal(const Database& database) {
  absl::StatusOr<Statement> statement = database.Prepare("PRAGMA journal_mode = WAL");
  if (!statement.ok()) return statement.status();
  absl::StatusOr<bool> row = statement->Start().Step();
  if (!row.ok()) return row.status();
  if (*row && statement->Text(0) == "wal") return absl::OkStatus();
  return contract::Error(absl::StatusCode::kFailedPrecondition, "NO_WAL",
                         fmt::format("{}: its file system has no shared memory for a write-ahead "
                                     "log; put the state directory on a local disk",
                                     database.path()));
}

bool IsOpen(const v1::Run& run) {
  return !contract::IsTerminal(run.state()) || !run.logs_complete();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> Writer::Open(const std::string& path,
                                                     const SqliteOptions& options) {
  auto database = OpenDatabase(path, SQLITE_OPEN_READWRITE, options.vfs);
  if (!database.ok()) return database.status();
  // The check comes first, so that a file of another program is not touched.
  if (absl::Status status = CheckSchema(**database); !status.ok()) return status;
  const std::string pragmas = fmt::format(
      "PRAGMA busy_timeout = {};"
      "PRAGMA synchronous = FULL;"
      "PRAGMA wal_autocheckpoint = 0;"
      "PRAGMA mmap_size = 0;"
      "PRAGMA temp_store = MEMORY;"
      "PRAGMA cache_size = -{};",
      kOtherWriterPatienceMs, options.writer_cache_bytes / 1024);
  if (absl::Status status = (*database)->Execute(pragmas); !status.ok()) return status;
  if (absl::Status status = UseWal(**database); !status.ok()) return status;
  if (absl::Status status = Migrate(**database); !status.ok()) return status;
  std::unique_ptr<Writer> writer(new Writer(*std::move(database), options));
  if (absl::Status status = writer->Prepare(); !status.ok()) return status;
  return writer;
}

Writer::Writer(std::unique_ptr<Database> database, const SqliteOptions& options)
    : options_(options),
      database_(std::move(database)),
      restart_at_bytes_(options.restart_wal_bytes) {
  auto keep_count = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Writer*>(self)->wal_pages_ = pages;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(database_->handle(), keep_count, this);
}

absl::Status Writer::Prepare() {
  const std::pair<Statement*, std::string> all[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&insert_label_, "INSERT INTO label (key, value, job) VALUES (?, ?, ?)"},
      {&put_block_,
       "INSERT INTO job_block VALUES (?, ?, ?) ON CONFLICT (block) DO UPDATE SET"
       " first_create_time = min(first_create_time, excluded.first_create_time),"
       " last_create_time = max(last_create_time, excluded.last_create_time)"},
      {&update_job_,
       "UPDATE job SET state = ?, job_sequence = ?, cancel_requested = ?, start_time = ?,"
       " end_time = ?, hold = ?, retry_time = ?, fail_overs = ? WHERE id = ?"},
      {&put_withdrawal_, "UPDATE job SET withdrawal = ?, returned_runs = ? WHERE id = ?"},
      // A separate statement, because naming an indexed column costs an index update even if its
      // value stays.
      {&update_cluster_of_job_,
       "UPDATE job SET runs = ?1, cluster = ?2, cluster_kind = nullif(?3, 0),"
       " failure_class = NULL, exit_code = NULL WHERE id = ?4 AND runs <> ?1"},
      {&put_failed_dependency_,
       fmt::format("UPDATE job SET failed_dependency = ?, failure_class = {} WHERE id = ?",
                   static_cast<int>(v1::FAILURE_CLASS_CONFIG))},
      {&edit_job_, "UPDATE job SET priority = ?, labels = ?, job_sequence = ? WHERE id = ?"},
      {&insert_edit_, "INSERT INTO edit (job, sequence, before) VALUES (?, ?, ?)"},
      {&labels_, "SELECT labels FROM job WHERE id = ?"},
      {&delete_label_, "DELETE FROM label WHERE key = ? AND value = ? AND job = ?"},
      {&put_outcome_,
       "UPDATE job SET failure_class = ?1, exit_code = ?2 WHERE id = ?3 AND runs = ?4"
       " AND (failure_class IS NOT ?1 OR exit_code IS NOT ?2)"},
      {&put_run_,
       "INSERT INTO run (id, open, run) VALUES (?, ?, ?) ON CONFLICT (id)"
       " DO UPDATE SET open = excluded.open, run = excluded.run"},
      // This statement is apart, because naming an indexed column costs an index update even if its
      // value stays.
      {&put_run_change_, "UPDATE run SET changed = ? WHERE id = ?"},
      {&run_, "SELECT run FROM run WHERE id = ?"},
      {&put_usage_, "UPDATE run SET run = ?, changed = ? WHERE id = ?"},
      {&put_cluster_,
       "INSERT OR REPLACE INTO cluster (name, kind, inventory, agent_version, journal_id,"
       " acked_event_sequence, agent_epoch, max_active_runs, last_seen, cordon, fence_delay, lease)"
       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&advance_cluster_, "UPDATE cluster SET acked_event_sequence = ? WHERE name = ?"},
      {&remove_cluster_, "DELETE FROM cluster WHERE name = ?"},
      {&put_epoch_, "UPDATE broker SET epoch = ?"},
      {&put_use_,
       "INSERT OR REPLACE INTO share_use (project, user, at, cpu, memory, gpu)"
       " VALUES (?, ?, ?, ?, ?, ?)"},
      {&remove_use_, "DELETE FROM share_use WHERE project = ? AND user = ?"},
      {&add_usage_,
       "INSERT INTO day_usage (day, project, user, cluster, gpu_type, runs, run_ms, core_ms, "
       "gpu_ms)"
       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET runs = runs + excluded.runs,"
       " run_ms = run_ms + excluded.run_ms, core_ms = core_ms + excluded.core_ms,"
       " gpu_ms = gpu_ms + excluded.gpu_ms"},
      {&forget_usage_, "DELETE FROM day_usage WHERE day < ?"},
      {&keep_numbers_,
       "UPDATE broker SET last_job = max(last_job, ifnull((SELECT max(id) FROM job), 0)),"
       " last_sequence = max(last_sequence, ifnull((SELECT max(sequence) FROM transition), 0),"
       "  ifnull((SELECT max(changed) FROM run WHERE changed > 0), 0))"},
      {&spec_of_job_, "SELECT spec FROM job WHERE id = ?"},
      {&delete_job_, "DELETE FROM job WHERE id = ?"},
      {&delete_runs_, "DELETE FROM run WHERE id >= ? AND id < ?"},
      {&delete_edits_, "DELETE FROM edit WHERE job = ?"},
      {&delete_transitions_, "DELETE FROM transition WHERE job = ?"},
      {&drop_block_,
       "DELETE FROM job_block WHERE block = ?1 AND NOT EXISTS"
       " (SELECT 1 FROM job WHERE id >= ?2 AND id < ?3)"},
  };
  for (const auto& [statement, sql] : all) {
    absl::StatusOr<Statement> prepared = database_->Prepare(sql);
    if (!prepared.ok()) return prepared.status();
    *statement = *std::move(prepared);
  }
  absl::Status status = insert_job_.Prepare(
      *database_,
      "job (id, state, job_sequence, cancel_requested, runs, cluster, spec, priority, create_time,"
      " name, project, user, labels, rerun_of, request_id, fingerprint)",
      "?, ?, 1, 0, 0, '', ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), ?, ?");
  if (status.ok()) {
    status =
        append_transition_.Prepare(*database_, "transition (sequence, job, transition)", "?, ?, ?");
  }
  if (status.ok()) status = spec_uses_.Prepare(database_.get());
  return status.ok() ? specs_.Prepare(database_.get()) : status;
}

absl::Status Writer::Commit(absl::Span<const core::Change> changes) {
  if (!broken_.ok()) return broken_;
  if (changes.empty()) return absl::OkStatus();
  absl::Status status = begin_.Start().Run();
  if (status.ok()) status = ApplyAll(changes);
  if (status.ok()) status = commit_.Start().Run();
  if (status.ok()) status = CheckpointIfDue();
  if (status.ok()) return status;
  broken_ = status;
  // Earlier commits stay readable; the next start finds out whether this one is on disk.
  if (database_->in_transaction()) database_->Execute("ROLLBACK").IgnoreError();
  return status;
}

absl::Status Writer::ApplyAll(absl::Span<const core::Change> changes) {
  absl::Status status;
  for (const core::Change& change : changes) {
    const bool is_insert = std::holds_alternative<core::InsertJob>(change) ||
                           std::holds_alternative<core::AppendTransition>(change);
    if (!is_insert) status = InsertJobs();
    if (status.ok())
      status = std::visit([this](const auto& typed) { return Apply(typed); }, change);
    if (!status.ok()) return status;
  }
  status = InsertJobs();
  if (status.ok()) status = AppendTransitions();
  if (status.ok()) status = spec_uses_.Write(&specs_);
  if (status.ok()) status = PutBlocks();
  return status.ok() ? DropBlocks() : status;
}

absl::Status Writer::Apply(const core::InsertJob& change) {
  const v1::JobSpec& spec = *change.spec;
  const int64_t create_time = absl::ToUnixMicros(change.create_time);
  const absl::StatusOr<int64_t> shared = specs_.Put(spec);
  if (!shared.ok()) return shared.status();
  spec_uses_.Add(*shared);
  new_jobs_.push_back({&change, *shared, LabelBytes(spec.labels())});
  auto [block, is_new] =
      blocks_.try_emplace(change.id / kBlockJobs, Times{create_time, create_time});
  block->second.first = std::min(block->second.first, create_time);
  block->second.last = std::max(block->second.last, create_time);
  return InsertLabels(change.id, spec.labels());
}

absl::Status Writer::InsertJobs() {
  if (new_jobs_.empty()) return absl::OkStatus();
  absl::Status status = insert_job_.Insert(new_jobs_.size(), [this](size_t row, Statement& to) {
    const NewJob& job = new_jobs_[row];
    const core::InsertJob& change = *job.change;
    const v1::JobSpec& spec = *change.spec;
    to.Bind(change.id)
        .Bind(static_cast<int>(v1::JOB_STATE_QUEUED))
        .Bind(job.spec)
        .Bind(spec.priority())
        .Bind(absl::ToUnixMicros(change.create_time))
        .Bind(std::string_view(spec.name()))
        .Bind(std::string_view(spec.project()))
        .Bind(std::string_view(change.user));
    job.labels.empty() ? to.BindNull() : to.BindBlob(job.labels);
    to.Bind(change.rerun_of);
    if (change.request_id.empty()) {
      to.BindNull().BindNull();
    } else {
      to.Bind(std::string_view(change.request_id)).Bind(change.fingerprint);
    }
  });
  new_jobs_.clear();
  return status;
}

absl::Status Writer::PutBlocks() {
  for (const auto& [block, times] : blocks_) {
    absl::Status status = put_block_.Start().Bind(block).Bind(times.first).Bind(times.last).Run();
    if (!status.ok()) return status;
  }
  blocks_.clear();
  return absl::OkStatus();
}

absl::Status Writer::Apply(const core::UpdateJob& change) {
  update_job_.Start()
      .Bind(static_cast<int>(change.state))
      .Bind(change.job_sequence)
      .Bind(change.cancel_requested);
  BindTime(change.start_time, update_job_);
  BindTime(change.end_time, update_job_);
  update_job_.Bind(static_cast<int>(change.hold));
  BindTime(change.retry_time, update_job_);
  update_job_.Bind(change.fail_overs);
  if (absl::Status status = update_job_.Bind(change.id).Run(); !status.ok()) return status;
  if (change.failed_dependency != 0)
    return put_failed_dependency_.Start().Bind(change.failed_dependency).Bind(change.id).Run();
  if (change.cluster.empty()) return absl::OkStatus();
  return update_cluster_of_job_.Start()
      .Bind(change.runs)
      .Bind(std::string_view(change.cluster))
      .Bind(static_cast<int>(change.cluster_kind))
      .Bind(change.id)
      .Run();
}

absl::Status Writer::Apply(const core::PutWithdrawal& change) {
  put_withdrawal_.Start();
  if (change.withdrawal) {
    change.withdrawal->SerializeToString(&buffer_);
    put_withdrawal_.BindBlob(buffer_);
  } else {
    put_withdrawal_.BindNull();
  }
  return put_withdrawal_.Bind(change.returned_runs).Bind(change.job).Run();
}

absl::Status Writer::Apply(const core::PutRun& change) {
  change.run.SerializeToString(&buffer_);
  const uint64_t id = RunRowId(change.job, change.run.number());
  absl::Status status =
      put_run_.Start().Bind(id).Bind(!change.is_last && IsOpen(change.run)).BindBlob(buffer_).Run();
  if (status.ok() && change.sequence != 0)
    status = put_run_change_.Start().Bind(change.sequence).Bind(id).Run();
  return status.ok() ? PutOutcome(change.job, change.run) : status;
}

absl::Status Writer::Apply(const core::PutUsage& change) {
  const uint64_t id = RunRowId(change.job, change.run);
  v1::Run run;
  {
    const ScopedReset reset(&run_);
    const absl::StatusOr<bool> row = run_.Start().Bind(id).Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    const std::string_view blob = run_.Blob(0);
    // A damaged run is reported when it is shown.
    if (!run.ParseFromArray(blob.data(), static_cast<int>(blob.size()))) return absl::OkStatus();
  }
  if (!TakeUsage(change, &run)) return absl::OkStatus();
  run.SerializeToString(&buffer_);
  return put_usage_.Start().BindBlob(buffer_).Bind(change.sequence).Bind(id).Run();
}

absl::Status Writer::Apply(const core::AppendTransition& change) {
  new_transitions_.push_back(&change);
  return absl::OkStatus();
}

absl::Status Writer::AppendTransitions() {
  if (new_transitions_.empty()) return absl::OkStatus();
  const auto bind = [this](size_t row, Statement& to) {
    const core::AppendTransition& change = *new_transitions_[row];
    std::string& bytes = buffers_[row % buffers_.size()];
    change.transition.SerializeToString(&bytes);
    to.Bind(change.transition.sequence()).Bind(change.job).BindBlob(bytes);
  };
  absl::Status status = append_transition_.Insert(new_transitions_.size(), bind);
  new_transitions_.clear();
  return status;
}

absl::Status Writer::Apply(const core::PutCluster& change) {
  change.inventory.SerializeToString(&buffer_);
  std::string cordon;
  if (change.cordon) change.cordon->SerializeToString(&cordon);
  put_cluster_.Start()
      .Bind(std::string_view(change.name))
      .Bind(static_cast<int>(change.kind))
      .BindBlob(buffer_)
      .Bind(std::string_view(change.agent_version))
      .Bind(std::string_view(change.journal_id))
      .Bind(change.acked_event_sequence)
      .Bind(change.agent_epoch)
      .Bind(change.max_active_runs)
      .Bind(absl::ToUnixMicros(change.last_seen));
  change.cordon ? put_cluster_.BindBlob(cordon) : put_cluster_.BindNull();
  put_cluster_.Bind(absl::ToInt64Microseconds(change.fence_delay))
      .Bind(absl::ToInt64Microseconds(change.lease));
  return put_cluster_.Run();
}

absl::Status Writer::Apply(const core::AdvanceCluster& change) {
  return advance_cluster_.Start()
      .Bind(change.acked_event_sequence)
      .Bind(std::string_view(change.name))
      .Run();
}

absl::Status Writer::Apply(const core::RemoveCluster& change) {
  return remove_cluster_.Start().Bind(std::string_view(change.name)).Run();
}

absl::Status Writer::Apply(const core::PutBrokerEpoch& change) {
  return put_epoch_.Start().Bind(change.epoch).Run();
}

absl::Status Writer::Apply(const core::PutUse& change) {
  return put_use_.Start()
      .Bind(std::string_view(change.project))
      .Bind(std::string_view(change.user))
      .Bind(absl::ToUnixMicros(change.at))
      .BindReal(change.used[0])
      .BindReal(change.used[1])
      .BindReal(change.used[2])
      .Run();
}

absl::Status Writer::Apply(const core::RemoveUse& change) {
  return remove_use_.Start()
      .Bind(std::string_view(change.project))
      .Bind(std::string_view(change.user))
      .Run();
}

absl::Status Writer::Apply(const core::AddUsage& change) {
  if (change.day > last_usage_day_) {
    last_usage_day_ = change.day;
    const int64_t oldest = change.day - kMaxUsageDays + 1;
    if (absl::Status status = forget_usage_.Start().Bind(oldest).Run(); !status.ok()) return status;
  }
  return add_usage_.Start()
      .Bind(change.day)
      .Bind(std::string_view(change.project))
      .Bind(std::string_view(change.user))
      .Bind(std::string_view(change.cluster))
      .Bind(std::string_view(change.gpu_type))
      .Bind(change.runs)
      .Bind(change.run_ms)
      .Bind(change.core_ms)
      .Bind(change.gpu_ms)
      .Run();
}

int64_t Writer::wal_bytes() const { return wal_pages_ * kPageBytes; }

absl::Status Writer::CheckpointIfDue() {
  if (wal_bytes() >= restart_at_bytes_) {
    // The next wait for such a slow reader comes only after so many more bytes were written.
    restart_at_bytes_ = wal_bytes() + options_.restart_wal_bytes;
    return Checkpoint(SQLITE_CHECKPOINT_RESTART);
  }
  if (wal_bytes() >= options_.checkpoint_wal_bytes) return Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  return absl::OkStatus();
}

absl::Status Writer::Idle() {
  if (!broken_.ok()) return broken_;
  if (wal_bytes() < options_.idle_checkpoint_bytes) return absl::OkStatus();
  return Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
}

absl::Status Writer::Checkpoint(int mode) {
  int in_wal = 0, moved = 0;
  sqlite3_busy_timeout(database_->handle(), kReaderPatienceMs);
  const int code = sqlite3_wal_checkpoint_v2(database_->handle(), nullptr, mode, &in_wal, &moved);
  sqlite3_busy_timeout(database_->handle(), kOtherWriterPatienceMs);
  // A reader was slow; a later commit moves the part that it still needs.
  if (code == SQLITE_BUSY) return absl::OkStatus();
  if (code != SQLITE_OK) return database_->ToStatus(code, "checkpoint");
  // Everything has been moved: the next commit writes the WAL from its beginning.
  if (in_wal == moved) {
    wal_pages_ = 0;
    restart_at_bytes_ = options_.restart_wal_bytes;
  }
  return absl::OkStatus();
}

}  // namespace muster::store
