// Assembles the whole broker but its process: store, archive, engine and the gRPC server.
#ifndef MUSTER_BROKER_RPC_BROKER_H_
#define MUSTER_BROKER_RPC_BROKER_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/fetches.h"
#include "broker/app/user_meter.h"
#include "broker/app/worker_pool.h"
#include "broker/audit/audit_log.h"
#include "broker/auth/oidc/verifier.h"
#include "broker/auth/server_identity.h"
#include "broker/core/core.h"
#include "broker/engine/engine.h"
#include "broker/files/file_store.h"
#include "broker/http/options.h"
#include "broker/logs/archive.h"
#include "broker/notify/notifier.h"
#include "broker/rpc/users.h"
#include "broker/secrets/secrets.h"
#include "broker/store/store.h"

namespace muster::broker {

struct TlsOptions {
  std::string listen;  // HOST:PORT as gRPC takes it; empty: there is no network listener
  IdentityFiles files;
  std::string database;  // the file of invitations and certificates
  // The life of the certificates that agents get. They renew them when a third of it is left.
  absl::Duration certificate_life = absl::Hours(24);
};

struct AuditOptions {
  audit::Options log = {};    // `path` is required
  bool log_reads = false;     // whether reads of logs are recorded, too
  std::string settings = {};  // those that are given, for the record of the start
};

struct BrokerOptions {
  // affects behaviour
  std::string socket_path;    // required; in a directory that only this broker uses
  mode_t socket_mode = 0600;  // clients that can connect can submit: only the owner by default
  std::string token_file;     // required; the tokens of people, made if it is missing
  secrets::SecretsOptions secrets;  // the database is required; the clock is the system's
  std::string project_file;         // required; the projects, likewise
  EntranceRoles roles;
  TlsOptions tls;
  AuditOptions audit;
  // The identity providers; clients log in at the first.
  std::vector<oidc::VerifierOptions> people;
  http::HttpOptions http;          // tls_listen needs tls.listen
  notify::NotifierOptions notify;  // the directory is required for webhooks
  std::string listen;              // in the form of CheckListenAddress; empty: only the socket
  size_t max_streams = 10'000;     // for agents (two each), watchers and followers of logs together
  UserBounds user;                 // of each one
  absl::Duration shutdown_grace =
      absl::Seconds(2);  // given to calls in progress when the broker stops
  // The time that the rest of an ended run's log may take. A follower is told that the log is not
  // complete this long after it has heard of the end, or after the last bytes.
  absl::Duration log_grace = absl::Seconds(30);
  // A watch without a change for so long sends a heartbeat.
  absl::Duration heartbeat_interval = absl::Seconds(15);
  FetchBounds fetch;
  // Jobs are kept for this time after their end; zero means for ever.
  absl::Duration job_retention = absl::Hours(24 * 90);
  core::Options core;
  // affects performance
  EngineOptions engine;
  WorkerPool::Options readers{.threads = 3, .kept_for_calls = 1};
  WorkerPool::Options archivers;
  WorkerPool::Options file_workers;
};

// Start, Shutdown and Housekeep belong to the main thread.
class Broker {
 public:
  // Restores from the store and begins to serve. `on_failure` is called on the store thread: the
  // store has failed, nothing more is acknowledged, and the process must end.
  static absl::StatusOr<std::unique_ptr<Broker>> Start(
      BrokerOptions options, std::unique_ptr<store::Store> store,
      std::unique_ptr<logs::Archive> archive, std::unique_ptr<files::FileStore> files,
      std::function<void(const absl::Status&)> on_failure);
  // Shuts down first.
  virtual ~Broker() = default;

  // Returns the TCP port in use; 0 if none.
  virtual int port() const = 0;
  // Returns the port of the network listener; 0 if none.
  virtual int tls_port() const = 0;
  // Return the ports of HTTP, without and with TLS; 0: none.
  virtual int http_port() const = 0;
  virtual int http_tls_port() const = 0;
  // Removes jobs and logs that are too old, and files that are no longer needed. Call it about once
  // a minute.
  virtual void Housekeep() = 0;
  // Refuses new work, tells agents to reconnect, ends streams, commits what was taken, then stops.
  virtual void Shutdown() = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_BROKER_H_
