#include "broker/secrets/secrets.h"

#include <fmt/format.h>
#include <unistd.h>

#include "broker/secrets/secret_file.h"
#include "broker/secrets/wipe.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::secrets {
namespace {

// Returns the place for which a value is sealed; it opens in no other one. Neither part has a NUL
// byte.
std::string ContextOf(const Id& id) {
  std::string context = fmt::format("muster secret 1 {}", static_cast<int>(id.kind));
  for (const std::string* part : {&id.owner, &id.name}) {
    context.push_back('\0');
    context += *part;
  }
  return context;
}

absl::Status Locked(const absl::Status& why) {
  return contract::RetryableError(
      absl::StatusCode::kUnavailable, "SECRETS_LOCKED",
      fmt::format("the broker cannot open its secrets: {}; have its operator put the key back and "
                  "start it again",
                  ToStd(why.message())),
      absl::Minutes(1));
}

absl::Status NoSuchSecret(const Id& id) {
  return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_SECRET",
                         fmt::format("there is no secret {}", id.name), {{"secret", id.name}});
}

absl::Status TooMany(size_t limit, std::string_view whose) {
  return contract::Error(
      absl::StatusCode::kResourceExhausted, "TOO_MANY_SECRETS",
      fmt::format("{} {} secrets already; remove those that nobody needs", whose, limit));
}

}  // namespace

Secrets::Secrets(SecretsOptions options) : options_(std::move(options)) {}
Secrets::~Secrets() = default;

absl::StatusOr<std::unique_ptr<Secrets>> Secrets::Open(SecretsOptions options) {
  auto secrets = std::unique_ptr<Secrets>(new Secrets(std::move(options)));
  const MutexLock lock(secrets->file_mutex_);
  auto file = SecretFile::Open(secrets->options_.database);
  if (!file.ok()) return file.status();
  secrets->file_ = *std::move(file);
  if (absl::Status status = secrets->Load(); !status.ok()) return status;
  secrets->locked_ = secrets->ReadKeys();
  if (!secrets->locked_.ok()) {
    LogEvent(spdlog::level::err, "secrets_locked",
             {{"error", std::string(ToStd(secrets->locked_.message()))}});
  }
  return secrets;
}

absl::Status Secrets::Load() {
  absl::StatusOr<std::vector<Record>> records = file_->Load();
  if (!records.ok()) return records.status();
  const MutexLock lock(mutex_);
  for (Record& record : *records) {
    ++counts_[{record.id.kind, record.id.owner}];
    const Id id = record.id;
    records_.emplace(id, std::move(record));
  }
  return absl::OkStatus();
}

absl::Status Secrets::ReadKeys() {
  const bool has_credential =
      !options_.credential.empty() && access(options_.credential.c_str(), F_OK) == 0;
  // systemd gives the broker's user an access list, which shows as the group's bits.
  absl::StatusOr<KeyRing> keys = has_credential ? KeyRing::Read(options_.credential, 007)
                                                : KeyRing::Read(options_.key_file, 077);
  // The key comes with the first secret.
  if (absl::IsNotFound(keys.status()) && counts_.empty()) return absl::OkStatus();
  if (!keys.ok()) return keys.status();
  keys_ = *std::move(keys);
  if (absl::Status status = UsePresentKey(); !status.ok()) return status;
  if (has_credential || keys_.size() == 1) return absl::OkStatus();
  keys_.DropOldKeys();
  return keys_.Write(options_.key_file);
}

absl::Status Secrets::UsePresentKey() {
  const KeyRing& keys = keys_;
  const absl::StatusOr<int64_t> others = file_->CountOthers(keys.present());
  if (!others.ok() || *others == 0) return others.status();
  absl::Status status = file_->Reseal(
      keys.present(), [&keys](const Id& id, const Sealed& old) -> absl::StatusOr<Sealed> {
        const std::string context = ContextOf(id);
        absl::StatusOr<std::string> value = keys.Open(old.bytes, old.key_id, context);
        if (!value.ok()) {
          return absl::DataLossError(
              ToAbsl(fmt::format("the key does not open the secret {} of {}", id.name, id.owner)));
        }
        Sealed sealed = {keys.present(), keys.Seal(*value, context)};
        Wipe(&*value);
        return sealed;
      });
  if (status.ok())
    LogEvent(spdlog::level::info, "secrets_sealed_anew", {{"secrets", fmt::format("{}", *others)}});
  return status;
}

absl::Status Secrets::MakeFirstKey() {
  if (!keys_.empty()) return absl::OkStatus();
  KeyRing keys;
  keys.AddKey();
  if (absl::Status status = keys.Write(options_.key_file); !status.ok()) return status;
  keys_ = std::move(keys);
  return absl::OkStatus();
}

std::optional<Record> Secrets::Find(const Id& id) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(id);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

std::vector<Record> Secrets::List(const std::optional<Id>& after, size_t limit,
                                  const std::function<bool(const Record&)>& is_wanted) const {
  std::vector<Record> listed;
  const MutexLock lock(mutex_);
  auto entry = after ? records_.upper_bound(*after) : records_.begin();
  for (; entry != records_.end() && listed.size() < limit; ++entry) {
    if (is_wanted(entry->second)) listed.push_back(entry->second);
  }
  return listed;
}

absl::Status Secrets::CheckRoom(const Id& id, bool for_one_job) const {
  const MutexLock lock(mutex_);
  if (records_.contains(id)) {
    if (!for_one_job) return absl::OkStatus();
    return contract::Error(
        absl::StatusCode::kAlreadyExists, "SECRET_EXISTS",
        fmt::format("there is a secret {} already; give the one for one job another name",
                    id.name));
  }
  if (records_.size() >= kMaxSecrets) return TooMany(kMaxSecrets, "the broker has");
  const auto count = counts_.find({id.kind, id.owner});
  if (count == counts_.end() || count->second < kMaxSecretsOfOwner) return absl::OkStatus();
  return TooMany(kMaxSecretsOfOwner, fmt::format("{} has", id.owner));
}

absl::StatusOr<Record> Secrets::Set(const Id& id, std::string_view value, bool for_one_job) {
  const MutexLock lock(file_mutex_);
  if (!locked_.ok()) return Locked(locked_);
  if (absl::Status status = CheckRoom(id, for_one_job); !status.ok()) return status;
  if (absl::Status status = MakeFirstKey(); !status.ok()) return status;
  const std::optional<Record> before = Find(id);
  Record record = {.id = id,
                   .size_bytes = static_cast<uint32_t>(value.size()),
                   .updated_micros = absl::ToUnixMicros(options_.now()),
                   .for_one_job = for_one_job};
  record.created_micros = before ? before->created_micros : record.updated_micros;
  absl::Status status = file_->Put(record, {keys_.present(), keys_.Seal(value, ContextOf(id))});
  if (!status.ok()) return status;
  if (!before) ++counts_[{id.kind, id.owner}];
  const MutexLock shown(mutex_);
  records_[id] = record;
  return record;
}

absl::Status Secrets::SetJob(const Id& id, uint64_t job) {
  const MutexLock lock(file_mutex_);
  if (absl::Status status = file_->SetJob(id, job); !status.ok()) return status;
  const MutexLock shown(mutex_);
  if (const auto found = records_.find(id); found != records_.end()) found->second.job = job;
  return absl::OkStatus();
}

absl::Status Secrets::Remove(const Id& id) {
  const MutexLock lock(file_mutex_);
  if (!Find(id)) return NoSuchSecret(id);
  if (absl::Status status = file_->Remove(id); !status.ok()) return status;
  if (const auto count = counts_.find({id.kind, id.owner}); --count->second == 0)
    counts_.erase(count);
  const MutexLock shown(mutex_);
  records_.erase(id);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Secrets::Read(const Id& id) const {
  const MutexLock lock(file_mutex_);
  if (!locked_.ok()) return Locked(locked_);
  const absl::StatusOr<Sealed> sealed = file_->Read(id);
  if (absl::IsNotFound(sealed.status())) return NoSuchSecret(id);
  if (!sealed.ok()) return sealed.status();
  absl::StatusOr<std::string> value = keys_.Open(sealed->bytes, sealed->key_id, ContextOf(id));
  if (value.ok()) return value;
  return contract::Error(
      absl::StatusCode::kDataLoss, "SECRET_SEALED",
      fmt::format("the secret {} cannot be opened: {}; set it again (muster secret set {})",
                  id.name, ToStd(value.status().message()), id.name),
      {{"secret", id.name}});
}

absl::StatusOr<size_t> Secrets::RotateKey() {
  const MutexLock lock(file_mutex_);
  if (!locked_.ok()) return locked_;
  if (!options_.credential.empty() && access(options_.credential.c_str(), F_OK) == 0) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("the keys are the systemd credential {}: put a new key before the "
                           "present one, start the broker again, then take the old one out",
                           options_.credential)));
  }
  KeyRing both = keys_;
  both.AddKey();
  if (absl::Status status = both.Write(options_.key_file); !status.ok()) return status;
  keys_ = std::move(both);
  if (absl::Status status = UsePresentKey(); !status.ok()) return status;
  keys_.DropOldKeys();
  if (absl::Status status = keys_.Write(options_.key_file); !status.ok()) return status;
  const MutexLock shown(mutex_);
  return records_.size();
}

}  // namespace muster::secrets
