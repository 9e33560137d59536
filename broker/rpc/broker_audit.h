// The audit log of a running broker, and the records that the broker makes of itself.
#ifndef MUSTER_BROKER_RPC_BROKER_AUDIT_H_
#define MUSTER_BROKER_RPC_BROKER_AUDIT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/audit/audit_log.h"
#include "broker/rpc/call_audit.h"
#include "daemon/settings.h"

namespace muster::broker {

class ClusterAccess;
struct AuditOptions;

// Start, Housekeep and Stop belong to the main thread.
class BrokerAudit {
 public:
  BrokerAudit(std::unique_ptr<audit::AuditLog> log, const AuditOptions& options);

  // Records the start, and waits until it is on disk. `access`: null without a network listener.
  void Start(const ClusterAccess* access);
  // Records another certificate of the broker; see AuditLog::Housekeep.
  void Housekeep(const ClusterAccess* access);
  // Records the stop. The server has ended by then.
  void Stop();

  CallAudit& calls() { return calls_; }
  const std::string& path() const { return log_->path(); }
  const audit::AuditLog& log() const { return *log_; }

 private:
  void RecordIdentity(const ClusterAccess* access);

  const std::unique_ptr<audit::AuditLog> log_;
  CallAudit calls_;
  const std::string settings_;
  std::string certificate_digest_;  // of the file; empty: none yet
};

// Records that a CA and keys were made, in the log of a broker that does not run.
absl::Status RecordInit(const std::string& path, absl::Time now);

// Makes the settings note in `given` what they are set to; it outlives them.
void NoteGiven(std::vector<Setting>* settings, std::map<std::string, std::string>* given);
// "KEY=VALUE ..." for the record of the start. Values of keys that may hold a secret are left out.
std::string TextOfGiven(const std::map<std::string, std::string>& given);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_BROKER_AUDIT_H_
