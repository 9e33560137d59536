// The parts of the broker that use cases work with. All of them outlive every call.
#ifndef MUSTER_BROKER_APP_SERVICES_H_
#define MUSTER_BROKER_APP_SERVICES_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "broker/app/readers.h"

namespace muster::store {
class Store;
}
namespace muster::logs {
class Archive;
}
namespace muster::auth {
class Projects;
class Tokens;
}  // namespace muster::auth
namespace muster::secrets {
class Secrets;
}
namespace muster::files {
class FileStore;
class JobFiles;
}  // namespace muster::files

namespace muster::oidc {
struct VerifierOptions;
}

namespace muster::broker {

class ChangeTail;
class ClusterAccess;
class Engine;
class UserMeter;
class WatchHub;

struct Services {
  Engine* engine = nullptr;
  const store::Store* store = nullptr;
  logs::Archive* archive = nullptr;
  files::FileStore* files = nullptr;
  files::JobFiles* job_files = nullptr;
  auth::Tokens* tokens = nullptr;
  const oidc::VerifierOptions* identity_provider = nullptr;  // null: there is no identity provider
  secrets::Secrets* secrets = nullptr;
  auth::Projects* projects = nullptr;  // null: none but "default", without members and limits
  WatchHub* watches = nullptr;
  ChangeTail* changes = nullptr;
  UserMeter* uploads = nullptr;     // bytes of uploads in an hour; null: without a bound
  Readers* readers = nullptr;       // for reading the store and the archive
  Readers* counters = nullptr;      // for reads of about a second; one task runs at a time
  Readers* file_workers = nullptr;  // separate, because uploads wait for the disk all the time
  std::string instance = {};        // of the broker
  std::string audit_file = {};      // of the audit log
  ClusterAccess* cluster_access = nullptr;        // null: there is no network listener
  std::function<std::string()> tls_address = {};  // of the network listener, HOST:PORT
  std::function<absl::Time()> now;
  absl::Duration log_grace;             // as in BrokerOptions
  absl::Duration fetch_begin_patience;  // as in FetchBounds
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SERVICES_H_
