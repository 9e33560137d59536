// The credentials by which a request tells the API server who the agent is.
#ifndef MUSTER_AGENTS_KUBERNETES_API_CREDENTIALS_H_
#define MUSTER_AGENTS_KUBERNETES_API_CREDENTIALS_H_

#include <condition_variable>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/host.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

struct Credential {
  std::string authorization;  // the header's value; empty: none
  std::string ca_pem;         // the server's authorities; empty: those of the endpoint
  std::string certificate_pem;
  std::string key_pem;
  std::optional<absl::Time> expiry;  // by the time of day, as the plug-in has said
  // Its files may be others at this time, by agents::SteadyNow.
  std::optional<absl::Time> read_again = {};
};

// Reads the output of an exec plug-in. INVALID_ARGUMENT says what is wrong with it; no secret is in
// it.
absl::StatusOr<Credential> ParseExecCredential(const std::string& text,
                                               const std::string& api_version);

// A plug-in's failure holds for all who ask within this time: the agent's threads come within a
// second, and one program that hangs for each of them in turn would hold them all.
inline constexpr absl::Duration kFailureHolds = absl::Seconds(3);

// Tokens of service accounts are renewed in their file at 80 % of their life, which is ten minutes
// at least; certificates live longer.
inline constexpr absl::Duration kFileAge = absl::Minutes(1);

// Any thread may use it. Errors name the file or the program and what to do; no secret is in them.
class Credentials {
 public:
  // `host` is this machine, for plug-ins; it must outlive this object.
  Credentials(Endpoint endpoint, hosts::Host* host, absl::Duration failure_holds = kFailureHolds,
              absl::Duration file_age = kFileAge)
      : endpoint_(std::move(endpoint)),
        host_(*host),
        failure_holds_(failure_holds),
        file_age_(file_age) {}
  // Waits for a plug-in that runs.
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Returns the present one. Files of tokens, certificates and authorities are read again
  // each minute, and one that is empty or gone by then changes nothing; a plug-in runs
  // again when what it gave has expired, once for all who ask meanwhile. UNAUTHENTICATED:
  // there is none. DEADLINE_EXCEEDED: the plug-in still runs. `deadline`: by
  // agents::SteadyNow.
  absl::StatusOr<Credential> Get(absl::Time deadline = absl::InfiniteFuture());
  // The server has refused this one: the next Get makes another, if there is a way to.
  void Refuse(const Credential& refused);

 private:
  absl::StatusOr<Credential> Make();
  absl::StatusOr<Credential> RunPlugin(const ExecPlugin& plugin);
  // Starts the plug-in in a thread of its own, because it may take longer than its caller can wait.
  void StartPluginLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PluginEnded(absl::StatusOr<Credential> made);
  absl::Status StillRuns() const;
  absl::Status PluginError(const ExecPlugin& plugin, const std::string& words) const;

  const Endpoint endpoint_;
  hosts::Host& host_;
  const absl::Duration failure_holds_;
  const absl::Duration file_age_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<Credential> credential_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<Credential> made_ ABSL_GUARDED_BY(mutex_) =
      absl::UnknownError("");  // by the latest plug-in
  absl::Time failure_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t plugins_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_plugin_running_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread plugin_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_CREDENTIALS_H_
