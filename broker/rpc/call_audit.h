// The one place at which calls reach the audit log: gRPC calls it for every call of every service,
// when the request has come and before the answer leaves. A service that is added later is audited
// without a line of its own (broker/app/audited_calls.h).
//
// CallerOf notes who calls; the answer takes the note. Any thread may use it. Nothing waits: an
// answer that must follow its record is held without a thread and goes on from the log's.
#ifndef MUSTER_BROKER_RPC_CALL_AUDIT_H_
#define MUSTER_BROKER_RPC_CALL_AUDIT_H_

#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "broker/app/audited_calls.h"
#include "broker/app/principal.h"
#include "broker/audit/audit_log.h"
#include "sync/mutex.h"

namespace grpc {
class ServerContextBase;
}

namespace muster::broker {

class AuditSubject;
class HttpEntrance;

class CallAudit {
 public:
  // `log` outlives it.
  CallAudit(audit::AuditLog* log, bool audits_log_reads)
      : log_(*log), audits_log_reads_(audits_log_reads) {}

  // Is for the builder of the server.
  static std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeFactory(
      CallAudit* audit);

  // Notes who makes the call.
  void Note(const grpc::ServerContextBase& call, const Principal& caller);
  // Forgets it.
  void Forget(const grpc::ServerContextBase& call);

  // Records the end of a call. True: its answer must wait for `written`.
  bool Finish(const grpc::ServerContextBase& call, std::string_view method, AuditRule rule,
              const AuditSubject& subject, const absl::Status& status,
              const std::function<void()>& written);
  // Records a call from `origin` that was refused before its messages were read.
  void RefuseAtGate(std::string_view method, const Principal& caller, const absl::Status& status,
                    std::string_view origin);
  // Calls over HTTP are known by it. Set it before the first call; null: there are none.
  void set_entrance(const HttpEntrance* entrance) { entrance_ = entrance; }

  AuditRule RuleOf(std::string_view method) const { return AuditRuleOf(method, audits_log_reads_); }

 private:
  // Who calls, as a record has it.
  struct Who {
    std::string user = {};
    std::string role = {};
    std::string credential = {};
  };
  static Who WhoIs(const Principal& caller);
  // Returns the caller that was noted, else the cluster that the call's certificate names.
  Who Take(const grpc::ServerContextBase& call);

  audit::AuditLog& log_;
  const bool audits_log_reads_;
  const HttpEntrance* entrance_ = nullptr;
  Mutex mutex_;
  // As many as there are calls in progress.
  absl::flat_hash_map<const grpc::ServerContextBase*, Who> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CALL_AUDIT_H_
