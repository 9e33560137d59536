#include "broker/rpc/broker_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "broker/app/audit_subject.h"
#include "broker/auth/cluster_access.h"
#include "broker/rpc/broker.h"
#include "contract/characters.h"
#include "daemon/read_file.h"
#include "digest/sha256.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

// Returns the record of something that the broker itself did.
audit::Record OwnRecord(std::string_view action, std::string target) {
  return {.action = std::string(action), .target = std::move(target), .result = "OK"};
}

}  // namespace

BrokerAudit::BrokerAudit(std::unique_ptr<audit::AuditLog> log, const AuditOptions& options)
    : log_(std::move(log)), calls_(log_.get(), options.log_reads), settings_(options.settings) {}

void BrokerAudit::Start(const ClusterAccess* access) {
  RecordIdentity(access);
  log_->AppendAndWait(OwnRecord(
      "broker.start",
      fmt::format("version={}{}{}", MUSTER_VERSION, settings_.empty() ? "" : " ", settings_)));
}

void BrokerAudit::Housekeep(const ClusterAccess* access) {
  RecordIdentity(access);
  log_->Housekeep();
}

void BrokerAudit::Stop() {
  log_->Append(OwnRecord("broker.stop", ""), false, nullptr);
  log_->Stop();
}

void BrokerAudit::RecordIdentity(const ClusterAccess* access) {
  if (access == nullptr) return;
  const absl::StatusOr<std::string> pem = ReadFile(access->server().certificate, pki::kMaxPemBytes);
  if (!pem.ok()) return;
  std::string digest = Sha256Of(*pem);
  if (digest == certificate_digest_) return;
  certificate_digest_ = std::move(digest);
  log_->Append(OwnRecord("tls.identity", fmt::format("file={} sha256={}",
                                                     contract::Quoted(access->server().certificate),
                                                     certificate_digest_)),
               false, nullptr);
}

absl::Status RecordInit(const std::string& path, absl::Time now) {
  const auto file = audit::AuditFile::Open(path);
  if (!file.ok()) return file.status();
  audit::Record record = OwnRecord("broker.init", "");
  record.micros = absl::ToUnixMicros(now);
  return (*file)->Append(absl::MakeSpan(&record, 1));
}

void NoteGiven(std::vector<Setting>* settings, std::map<std::string, std::string>* given) {
  for (Setting& setting : *settings) {
    setting.set = [set = std::move(setting.set), key = setting.key,
                   given](const std::string& value) {
      absl::Status status = set(value);
      if (status.ok()) (*given)[key] = value;
      return status;
    };
  }
}

std::string TextOfGiven(const std::map<std::string, std::string>& given) {
  constexpr std::string_view kSecretWords[] = {"secret", "password", "token"};
  std::string text;
  for (const auto& [key, value] : given) {
    const bool is_secret = std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                                       [&, name = std::string_view(key)](std::string_view word) {
                                         return name.find(word) != name.npos;
                                       });
    const std::string part = fmt::format("{}{}={}", text.empty() ? "" : " ", key,
                                         is_secret ? "..." : contract::Quoted(value));
    if (text.size() + part.size() > kMaxAuditedTargetBytes) return text + " ...";
    text += part;
  }
  return text;
}

}  // namespace muster::broker
