// The parts of the broker that services call. Owned by the Server; all of them outlive every call.
#ifndef MUSTER_BROKER_RPC_CONTEXT_H_
#define MUSTER_BROKER_RPC_CONTEXT_H_

#include <memory>

#include "absl/time/time.h"
#include "broker/app/services.h"

namespace grpc {
class Service;
}

namespace muster::broker {

class Engine;
class Fetches;
class WorkerPool;
class StreamRegistry;
class Users;
class CallBounds;

struct Context {
  Engine* engine = nullptr;
  Services app;                        // for use cases
  WorkerPool* readers = nullptr;       // for reading the store and the archive
  WorkerPool* archivers = nullptr;     // separate, because the end of a log waits for the disk
  WorkerPool* file_workers = nullptr;  // separate, because uploads wait for the disk all the time
  StreamRegistry* streams = nullptr;
  Fetches* fetches = nullptr;
  const Users* users = nullptr;
  CallBounds* call_bounds = nullptr;
  // One thread, separate, because each change of tokens and projects waits for the disk.
  WorkerPool* token_workers = nullptr;
  absl::Duration heartbeat_interval;    // as in BrokerOptions
  absl::Duration fetch_begin_patience;  // as in FetchBounds
  absl::Duration fetch_max_silence;     // as in FetchBounds
};

std::unique_ptr<grpc::Service> MakeJobsService(const Context& context);
std::unique_ptr<grpc::Service> MakeClustersService(const Context& context);
std::unique_ptr<grpc::Service> MakeFilesService(const Context& context);
std::unique_ptr<grpc::Service> MakeIdentityService(const Context& context);
std::unique_ptr<grpc::Service> MakeSecretsService(const Context& context);
std::unique_ptr<grpc::Service> MakeSecretLinkService(const Context& context);
std::unique_ptr<grpc::Service> MakeProjectsService(const Context& context);
std::unique_ptr<grpc::Service> MakeAuditService(const Context& context);
std::unique_ptr<grpc::Service> MakeUsageService(const Context& context);
std::unique_ptr<grpc::Service> MakeAgentLinkService(const Context& context);
std::unique_ptr<grpc::Service> MakeLogLinkService(const Context& context);
std::unique_ptr<grpc::Service> MakeFileLinkService(const Context& context);
std::unique_ptr<grpc::Service> MakeEnrollmentService(const Context& context);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CONTEXT_H_
