#include "broker/rpc/call_audit.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/interceptor.h>

#include <optional>
#include <utility>

#include "broker/app/audit_subject.h"
#include "broker/rpc/http_entrance.h"
#include "broker/rpc/peer_certificate.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "pki/certificates.h"
#include "rpc/status.h"

namespace muster::broker {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

bool IsRefused(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

// Returns "OK", the error's reason, or its code.
std::string ResultOf(const absl::Status& status) {
  if (status.ok()) return "OK";
  const auto info = contract::GetErrorInfo(status);
  if (info && !info->reason().empty()) return info->reason();
  return absl::StatusCodeToString(status.code());
}

std::string CredentialOf(const Principal& caller) {
  if (!caller.refused_credential.empty()) return caller.refused_credential;
  switch (caller.known_by) {
    case KnownBy::kToken:
      return fmt::format("token {}", caller.token->record().id);
    case KnownBy::kOidc:
      return "oidc";
    case KnownBy::kNobody:
      return "none";
    case KnownBy::kSocket:
      return "socket";
    default:
      return "";
  }
}

// Follows one call from its request to its answer.
class CallRecorder final : public grpc::experimental::Interceptor {
 public:
  CallRecorder(CallAudit* audit, ServerRpcInfo* call, AuditRule rule)
      : audit_(*audit),
        context_(*call->server_context()),
        method_(call->method()),
        type_(call->type()),
        rule_(rule) {}
  ~CallRecorder() override { audit_.Forget(context_); }

  void Intercept(InterceptorBatchMethods* batch) override {
    if (rule_ != AuditRule::kIfRefused) ReadMessages(batch);
    const bool is_end = batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS);
    if (is_end && !std::exchange(is_done_, true)) {
      const absl::Status status = rpc::FromGrpc(batch->GetSendStatus());
      const bool waits =
          audit_.Finish(context_, method_, rule_, subject_, status, [batch] { batch->Proceed(); });
      if (waits) return;
    }
    batch->Proceed();
  }

 private:
  // The messages of these types are whole objects of protobuf's; the only call that passes bytes on
  // changes nothing.
  void ReadMessages(InterceptorBatchMethods* batch) {
    const bool has_one_request =
        type_ == ServerRpcInfo::Type::UNARY || type_ == ServerRpcInfo::Type::SERVER_STREAMING;
    if (has_one_request &&
        batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      const auto* request = static_cast<const google::protobuf::Message*>(batch->GetRecvMessage());
      if (request != nullptr) subject_.AddRequest(*request);
    }
    if (type_ == ServerRpcInfo::Type::UNARY &&
        batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      const auto* answer = static_cast<const google::protobuf::Message*>(batch->GetSendMessage());
      if (answer != nullptr) subject_.AddAnswer(*answer);
    }
  }

  CallAudit& audit_;
  const grpc::ServerContextBase& context_;
  const std::string method_;
  const ServerRpcInfo::Type type_;
  const AuditRule rule_;
  AuditSubject subject_;
  bool is_done_ = false;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(CallAudit* audit) : audit_(audit) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    const AuditRule rule = audit_->RuleOf(call->method());
    return rule == AuditRule::kNever ? nullptr : new CallRecorder(audit_, call, rule);
  }

 private:
  CallAudit* const audit_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallAudit::MakeFactory(
    CallAudit* audit) {
  return std::make_unique<Factory>(audit);
}

CallAudit::Who CallAudit::WhoIs(const Principal& caller) {
  return {.user = caller.user,
          .role = std::string(auth::NameOf(caller.role)),
          .credential = CredentialOf(caller)};
}

void CallAudit::Note(const grpc::ServerContextBase& call, const Principal& caller) {
  Who who = WhoIs(caller);
  const MutexLock lock(mutex_);
  callers_[&call] = std::move(who);
}

void CallAudit::Forget(const grpc::ServerContextBase& call) {
  const MutexLock lock(mutex_);
  callers_.erase(&call);
}

CallAudit::Who CallAudit::Take(const grpc::ServerContextBase& call) {
  Who who{.role = std::string(auth::NameOf(Role::kNone)), .credential = "none"};
  {
    const MutexLock lock(mutex_);
    const auto found = callers_.find(&call);
    if (found != callers_.end()) {
      who = std::move(found->second);
      callers_.erase(found);
    }
  }
  const auto context = call.auth_context();
  if (context == nullptr || !IsOverTls(*context)) return who;
  const absl::StatusOr<pki::Certificate> certificate =
      pki::ReadCertificate(CertificateOf(*context));
  if (!certificate.ok()) return who;
  return {.user = certificate->cluster,
          .role = std::string(auth::NameOf(Role::kAgent)),
          .credential = fmt::format("certificate {}", certificate->serial)};
}

bool CallAudit::Finish(const grpc::ServerContextBase& call, std::string_view method, AuditRule rule,
                       const AuditSubject& subject, const absl::Status& status,
                       const std::function<void()>& written) {
  const bool is_refused = IsRefused(status);
  if (rule == AuditRule::kIfRefused && !is_refused) return false;
  Who who = Take(call);
  audit::Record record{.user = std::move(who.user),
                       .role = std::move(who.role),
                       .credential = std::move(who.credential),
                       .origin = entrance_ ? entrance_->OriginOf(call) : call.peer(),
                       .action = AuditedAction(method),
                       .jobs = subject.Jobs(),
                       .target = subject.target(),
                       .result = ResultOf(status)};
  if (is_refused) {
    log_.AppendRefusal(std::move(record));
    return false;
  }
  return log_.Append(std::move(record), rule == AuditRule::kBeforeAnswer, written);
}

void CallAudit::RefuseAtGate(std::string_view method, const Principal& caller,
                             const absl::Status& status, std::string_view origin) {
  Who who = WhoIs(caller);
  log_.AppendRefusal({.user = std::move(who.user),
                      .role = std::move(who.role),
                      .credential = std::move(who.credential),
                      .origin = std::string(origin),
                      .action = AuditedAction(method),
                      .result = ResultOf(status)});
}

}  // namespace muster::broker
