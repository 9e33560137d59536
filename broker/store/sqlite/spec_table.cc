#include "broker/store/sqlite/spec_table.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "broker/core/fingerprint.h"
#include "contract/spec_mask.h"

namespace muster::store {

namespace {

bool IsOwnPart(int field) {
  return field == v1::JobSpec::kNameFieldNumber || field == v1::JobSpec::kProjectFieldNumber ||
         field == v1::JobSpec::kPriorityFieldNumber || field == v1::JobSpec::kLabelsFieldNumber;
}

// Returns the rest of a serialised spec. Leaving fields out of its bytes costs less than a copy of
// it.
std::string WithoutOwnParts(const std::string& spec) {
  using google::protobuf::internal::WireFormatLite;
  std::string rest;
  rest.reserve(spec.size());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(spec.data()),
                                            static_cast<int>(spec.size()));
  int begin = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (!WireFormatLite::SkipField(&in, tag)) break;  // never: these bytes were made a moment ago
    const int end = in.CurrentPosition();
    if (!IsOwnPart(WireFormatLite::GetTagFieldNumber(tag))) rest.append(spec, begin, end - begin);
    begin = end;
  }
  return rest;
}

}  // namespace

void PutOwnParts(const v1::Job& job, v1::JobSpec* spec) {
  spec->set_name(job.name());
  spec->set_project(job.project());
  spec->set_priority(job.priority());
  *spec->mutable_labels() = job.labels();
}

void PutOwnParts(const v1::Job& job, const contract::SpecMask& mask, v1::JobSpec* spec) {
  if (mask.TakesWhole(v1::JobSpec::kNameFieldNumber)) spec->set_name(job.name());
  if (mask.TakesWhole(v1::JobSpec::kProjectFieldNumber)) spec->set_project(job.project());
  if (mask.TakesWhole(v1::JobSpec::kPriorityFieldNumber)) spec->set_priority(job.priority());
  if (mask.TakesWhole(v1::JobSpec::kLabelsFieldNumber)) *spec->mutable_labels() = job.labels();
}

absl::Status SpecTable::Prepare(const Database* database) {
  database_ = database;
  return database_->PrepareAll({
      {&find_, "SELECT id FROM spec WHERE digest = ?"},
      {&insert_, "INSERT INTO spec (digest, spec) VALUES (?, ?)"},
      {&drop_, "DELETE FROM spec WHERE id = ?"},
  });
}

absl::StatusOr<int64_t> SpecTable::Put(const v1::JobSpec& spec) {
  return PutBytes(WithoutOwnParts(core::DeterministicBytes(spec)));
}

absl::StatusOr<int64_t> SpecTable::PutBytes(const std::string& bytes) {
  if (latest_row_ != 0 && bytes == latest_) return latest_row_;
  const absl::StatusOr<int64_t> row = Find(bytes);
  if (row.ok()) {
    latest_ = bytes;
    latest_row_ = *row;
  }
  return row;
}

absl::StatusOr<int64_t> SpecTable::Find(const std::string& bytes) {
  sha256_.Add(bytes);
  const std::string digest = sha256_.FinishBytes();
  if (const auto known = known_.find(digest); known != known_.end()) return known->second;
  int64_t row = 0;
  {
    ScopedReset reset(&find_);
    const absl::StatusOr<bool> found = find_.Start().BindBlob(digest).Step();
    if (!found.ok()) return found.status();
    if (*found) row = find_.Int(0);
  }
  if (row == 0) {
    const absl::Status status = insert_.Start().BindBlob(digest).BindBlob(bytes).Run();
    if (!status.ok()) return status;
    row = sqlite3_last_insert_rowid(database_->handle());
  }
  Remember(digest, row);
  return row;
}

void SpecTable::Remember(const std::string& digest, int64_t row) {
  if (known_.size() >= kMaxKnown) {
    known_.clear();
    digests_.clear();
  }
  known_.emplace(digest, row);
  digests_.emplace(row, digest);
}

absl::Status SpecTable::Drop(int64_t row) {
  if (absl::Status status = drop_.Start().Bind(row).Run(); !status.ok()) return status;
  // The row's number may be given to another spec.
  if (row == latest_row_) latest_row_ = 0;
  if (const auto digest = digests_.find(row); digest != digests_.end()) {
    known_.erase(digest->second);
    digests_.erase(digest);
  }
  return absl::OkStatus();
}

}  // namespace muster::store
