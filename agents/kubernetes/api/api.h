// Calls a Kubernetes API server: who the agent is, how long it waits, what is tried again.
#ifndef MUSTER_AGENTS_KUBERNETES_API_API_H_
#define MUSTER_AGENTS_KUBERNETES_API_API_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/core/worker_lane.h"
#include "agents/kubernetes/api/credentials.h"
#include "agents/kubernetes/api/http_loop.h"
#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// The server's answer, whatever it was. Json's moves throw nothing, only seen deep inside it.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct ApiAnswer {
  int status = 0;  // of HTTP
  Json body;       // null if it was no JSON
  // For a refusal, its reason ("AlreadyExists", "Forbidden"; "" if none) and its message, whole.
  std::string reason;
  std::string message;
  // The server may have heard the call before, and have carried it out: an object that is there may
  // come from this call.
  bool was_sent_again = false;

  bool ok() const { return status >= 200 && status < 300; }
  // An admission webhook or policy has decided so, with whatever status it chose.
  bool IsDenied() const;
  // The account lacks the right.
  bool IsRbac() const;
};

// Returns the answer with this body.
ApiAnswer ToAnswer(int status, const std::string& body);

// Returns a refusal as a status: NOT_FOUND (404), ALREADY_EXISTS, ABORTED (409), PERMISSION_DENIED
// (403), UNAUTHENTICATED (401), INVALID_ARGUMENT (400, 413, 422), OUT_OF_RANGE (410),
// RESOURCE_EXHAUSTED (429), INTERNAL (5xx), UNKNOWN (others). `what` says what was asked for. The
// server's message is in it, whole, and what to do where credentials are refused or lacking.
absl::Status RefusalOf(const ApiAnswer& answer, std::string_view what);

struct ApiCall {
  std::string method = "GET";
  std::string path = {};  // "/api/v1/pods", with a query that is escaped already
  Json body = {};         // null: none
  std::string content_type = "application/json";
  // For the call with all its repetitions.
  absl::Duration timeout = absl::Seconds(30);
};

// Thread-safe. Counts what it asks.
class Api {
 public:
  // `host` is this machine, for credentials plug-ins; it must outlive this object.
  Api(Endpoint endpoint, hosts::Host* host);

  const Endpoint& endpoint() const { return endpoint_; }

  // The server's answer, whatever its status is. A 401 is asked again once with renewed
  // credentials; a 429, and of a GET also a 5xx and a broken connection, after what Retry-After
  // says, as long as there is time. Errors are those of HttpSink::OnEnd, and UNAUTHENTICATED if
  // there are no credentials.
  absl::StatusOr<ApiAnswer> Call(const ApiCall& call);
  // Gets the object, or the list, at a path. Errors are those of Call, and RefusalOf "get `what`".
  absl::StatusOr<Json> Get(const std::string& path, std::string_view what);

  // A call whose answer is read as it comes. The sink has an answer of any status. `lane`: its
  // thread calls the sink (LaneSink); null: that of the connections does.
  absl::StatusOr<HttpLoop::CallId> Stream(const std::string& path, absl::Duration silence,
                                          std::unique_ptr<HttpSink> sink,
                                          agents::WorkerLane* lane = nullptr);
  void Cancel(HttpLoop::CallId id) { loop_.Cancel(id); }
  // The next call has renewed credentials; for streams that were answered with 401.
  void RenewCredentials();

  // Returns the server's time of day, with which the times in its objects are compared: that of its
  // latest answer, moved on by a clock that nobody sets; before there is one, this machine's as it
  // was at first. So the clocks of both may differ, and be set.
  absl::Time ServerTime() const;

  // Calls since the start, by method, and "stream".
  std::map<std::string, uint64_t> Calls() const;

 private:
  absl::StatusOr<HttpCall> Prepare(const std::string& method, const std::string& path,
                                   absl::Time deadline, Credential* credential);
  void Count(const std::string& what);
  void NoteTime(const std::map<std::string, std::string>& headers);

  const Endpoint endpoint_;
  Credentials credentials_;
  HttpLoop loop_;
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> calls_ ABSL_GUARDED_BY(mutex_);
  // The server's time less agents::SteadyNow().
  absl::Duration server_ahead_ ABSL_GUARDED_BY(mutex_);
};

// Writes "a b/c" as a part of a path or a query: "a%20b%2Fc".
std::string Escape(std::string_view text);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_API_H_
