#include "broker/rpc/broker.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_posix.h>

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "broker/app/fetches.h"
#include "broker/app/file_expiry.h"
#include "broker/app/job_expiry.h"
#include "broker/app/run_secrets.h"
#include "broker/app/user_meter.h"
#include "broker/app/watch_hub.h"
#include "broker/auth/cluster_access.h"
#include "broker/auth/projects.h"
#include "broker/auth/tokens.h"
#include "broker/files/job_files.h"
#include "broker/http/bounds.h"
#include "broker/rpc/broker_audit.h"
#include "broker/rpc/broker_metrics.h"
#include "broker/rpc/call_audit.h"
#include "broker/rpc/call_bounds.h"
#include "broker/rpc/channel_arguments.h"
#include "broker/rpc/context.h"
#include "broker/rpc/cut_connections.h"
#include "broker/rpc/http_entrance.h"
#include "broker/rpc/http_front.h"
#include "broker/rpc/listen_address.h"
#include "broker/rpc/reflection.h"
#include "broker/rpc/stream_registry.h"
#include "broker/rpc/tls_listener.h"
#include "broker/rpc/unix_listener.h"
#include "broker/rpc/users.h"
#include "broker/secrets/secrets.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "daemon/read_file.h"
#include "pki/certificates.h"

namespace muster::broker {
namespace {

// HTTP has these alone: agents speak gRPC.
std::vector<std::string> ServicesOfPeople() {
  return {"muster.v1.JobsService",     "muster.v1.ClustersService", "muster.v1.FilesService",
          "muster.v1.IdentityService", "muster.v1.SecretsService",  "muster.v1.ProjectsService",
          "muster.v1.AuditService",    "muster.v1.UsageService"};
}

// Health checks may ask for these, and reflection lists them.
std::vector<std::string> AllServices() {
  std::vector<std::string> services = ServicesOfPeople();
  services.insert(services.end(),
                  {"muster.agent.v1.AgentLinkService", "muster.agent.v1.LogLinkService",
                   "muster.agent.v1.FileLinkService", "muster.agent.v1.SecretLinkService",
                   "muster.agent.v1.EnrollmentService"});
  return services;
}

// This is enough for a SubmitJobs of 1000 ordinary specs, or of a few of the largest. Larger ones
// must be sent in several calls.
constexpr int kMaxReceiveBytes = 16 << 20;
// ListJobs with 1000 specs can be as large; clients that ask for that raise their own limit, too.
constexpr int kMaxSendBytes = -1;
// Most jobs whose logs one housekeeping removes.
constexpr int kMaxExpirePerRound = 1000;

// Each count is about a second of work.
constexpr size_t kMaxWaitingCounts = 64;
// Each change of the tokens waits for the disk, some 10 ms.
constexpr size_t kMaxWaitingTokens = 256;

// gRPC lives as long as the process, because its own shutdown, when its last user is gone, may wait
// 10 s for its threads.
void KeepGrpc() {
  static const bool kept = (grpc_init(), true);
  static_cast<void>(kept);
}

std::vector<std::unique_ptr<oidc::Provider>> MakeProviders(
    const std::vector<oidc::VerifierOptions>& people) {
  std::vector<std::unique_ptr<oidc::Provider>> providers;
  for (const oidc::VerifierOptions& options : people) {
    providers.push_back(std::make_unique<oidc::Provider>(
        oidc::ProviderOptions{.issuer = options.jwt.issuer, .ca = options.ca}));
  }
  return providers;
}

// Returns null if there is no identity provider.
std::unique_ptr<oidc::Verifier> MakeVerifier(
    const std::vector<oidc::VerifierOptions>& people,
    const std::vector<std::unique_ptr<oidc::Provider>>& providers) {
  if (people.empty()) return nullptr;
  std::vector<oidc::Verifier::Issuer> issuers;
  for (size_t i = 0; i < people.size(); ++i) issuers.push_back({&people[i], providers[i].get()});
  return std::make_unique<oidc::Verifier>(std::move(issuers));
}

absl::Status CannotListen(std::string_view address) {
  return absl::UnavailableError(ToAbsl(fmt::format(
      "cannot listen on {}: is the port in use? Choose another, or 0 for any free one", address)));
}

class RunningBroker final : public Broker {
 public:
  RunningBroker(BrokerOptions options, std::unique_ptr<store::Store> store,
                std::unique_ptr<logs::Archive> archive, std::unique_ptr<files::FileStore> files,
                std::unique_ptr<auth::Tokens> tokens, std::unique_ptr<secrets::Secrets> secrets,
                std::unique_ptr<auth::Projects> projects,
                std::unique_ptr<audit::AuditLog> audit_log)
      : options_(std::move(options)),
        store_(std::move(store)),
        archive_(std::move(archive)),
        files_(std::move(files)),
        tokens_(std::move(tokens)),
        secrets_(std::move(secrets)),
        projects_(std::move(projects)),
        audit_(std::move(audit_log), options_.audit),
        readers_(options_.readers),
        archivers_(options_.archivers),
        file_workers_(options_.file_workers),
        counters_({.threads = 1, .max_waiting_calls = kMaxWaitingCounts}),
        token_workers_({.threads = 1, .max_waiting_calls = kMaxWaitingTokens}),
        streams_(options_.max_streams),
        call_bounds_(options_.user),
        uploads_(options_.user.max_upload_bytes_per_hour, absl::Hours(1)) {}

  ~RunningBroker() override { Shutdown(); }

  absl::Status Begin(std::function<void(const absl::Status&)> on_failure) {
    absl::StatusOr<core::Restored> restored = store_->Restore(absl::Now());
    if (!restored.ok()) return restored.status();
    LogEvent(spdlog::level::info, "restored",
             {{"instance", restored->instance},
              {"jobs", fmt::format("{}", restored->jobs.size())},
              {"next_job", fmt::format("{}", restored->next_job_id)}});
    instance_ = restored->instance;
    restored->limits = projects_->Read()->places();
    restored->shares = projects_->Read()->shares();
    auto core = std::make_unique<core::Core>(options_.core, *std::move(restored));
    engine_ = std::make_unique<Engine>(
        options_.engine, std::move(core), store_.get(),
        [this](const core::JobsChanged& changed) { watches_.Notify(changed); },
        std::move(on_failure));
    engine_->Start();
    if (absl::Status status = OpenAccess(); !status.ok()) return status;
    users_.set_audit(&audit_.calls());
    users_.set_entrance(&entrance_);
    audit_.calls().set_entrance(&entrance_);
    audit_.Start(access_.get());
    MakeServices();
    auto notifier = notify::Notifier::Make(options_.notify, MakeUseCases(), options_.job_retention);
    if (!notifier.ok()) return notifier.status();
    notifier_ = *std::move(notifier);
    notifier_->Start();
    return Listen();
  }

  int port() const override { return port_; }
  int tls_port() const override { return tls_port_; }
  int http_port() const override { return http_ ? http_->port() : 0; }
  int http_tls_port() const override { return http_ ? http_->tls_port() : 0; }

  void Housekeep() override {
    if (access_ != nullptr) {
      if (absl::Status status = access_->Housekeep(); !status.ok()) {
        LogEvent(spdlog::level::warn, "certificates_unkept",
                 {{"error", std::string(ToStd(status.message()))}});
      }
    }
    file_expiry_.Begin();
    job_expiry_.Begin();
    audit_.Housekeep(access_.get());
    token_workers_.PostStep([this] { WriteTokenUses(); });
    archivers_.PostStep([this] { RemoveSecrets(); });
    const absl::StatusOr<int> expired = archive_->Expire(kMaxExpirePerRound);
    if (!expired.ok()) {
      LogEvent(spdlog::level::warn, "log_expiry_failed",
               {{"error", std::string(ToStd(expired.status().message()))}});
    } else if (*expired > 0) {
      LogEvent(spdlog::level::info, "logs_expired", {{"jobs", fmt::format("{}", *expired)}});
    }
  }

  void Shutdown() override {
    if (std::exchange(down_, true)) return;
    is_stopping_ = true;
    if (listener_) listener_->Stop();
    if (http_) http_->Drain();
    if (notifier_) notifier_->Stop();
    if (server_) server_->GetHealthCheckService()->SetServingStatus(false);
    streams_.EndAll(contract::ShuttingDown());
    if (engine_) engine_->Stop();
    counters_.Stop();
    readers_.Stop();
    archivers_.Stop();
    file_workers_.Stop();
    token_workers_.Stop();
    for (const auto& provider : providers_) provider->Stop();
    WriteTokenUses();
    // All calls that were taken are answered now, but streams may still be ending.
    streams_.AwaitEnds(options_.shutdown_grace);
    if (http_) http_->Stop(options_.shutdown_grace);
    if (server_) {
      CutConnections(options_.socket_path, {port_, tls_port_});
      server_->Shutdown(absl::ToChronoTime(absl::Now() + options_.shutdown_grace));
      server_->Wait();
    }
    streams_.Stop();
    audit_.Stop();
  }

 private:
  // It blocks for the disk.
  void WriteTokenUses() {
    const absl::Status status = tokens_->WriteUses();
    if (status.ok()) return;
    LogEvent(spdlog::level::warn, "token_uses_not_written",
             {{"error", std::string(ToStd(status.message()))}});
  }

  // It blocks for the disk.
  void RemoveSecrets() {
    const absl::Status status = RemoveSpentSecrets(MakeUseCases());
    if (status.ok()) return;
    LogEvent(spdlog::level::warn, "secrets_not_removed",
             {{"error", std::string(ToStd(status.message()))}});
  }

  absl::Status OpenAccess() {
    if (options_.tls.listen.empty()) return absl::OkStatus();
    auto access = ClusterAccess::Open({.files = options_.tls.files,
                                       .database = options_.tls.database,
                                       .certificate_life = options_.tls.certificate_life,
                                       .now = absl::Now});
    if (!access.ok()) return access.status();
    access_ = *std::move(access);
    return absl::OkStatus();
  }

  // Returns the address that a new agent is told. A listener on all addresses is called by the
  // first name of its certificate.
  std::string TlsAddress() const {
    std::string host = options_.tls.listen.substr(0, options_.tls.listen.rfind(':'));
    if (host == "0.0.0.0" || host == "[::]") {
      const absl::StatusOr<std::string> pem =
          ReadFile(access_->server().certificate, pki::kMaxPemBytes);
      const auto names = pki::ServerNames(pem.value_or(""));
      if (names.ok() && !names->empty()) host = names->front();
    }
    return fmt::format("{}:{}", host, tls_port_);
  }

  Services MakeUseCases() {
    Services app;
    app.engine = engine_.get();
    app.instance = instance_;
    app.store = store_.get();
    app.archive = archive_.get();
    app.files = files_.get();
    app.job_files = &job_files_;
    app.tokens = tokens_.get();
    if (verifier_) app.identity_provider = &verifier_->options();
    app.secrets = secrets_.get();
    app.projects = projects_.get();
    app.watches = &watches_;
    app.changes = &engine_->changes();
    app.uploads = &uploads_;
    app.readers = &readers_;
    app.counters = &counters_;
    app.file_workers = &file_workers_;
    app.audit_file = audit_.path();
    app.cluster_access = access_.get();
    app.tls_address = [this] { return TlsAddress(); };
    app.now = absl::Now;
    app.log_grace = options_.log_grace;
    app.fetch_begin_patience = options_.fetch.begin_patience;
    return app;
  }

  void MakeServices() {
    Context context;
    context.engine = engine_.get();
    context.readers = &readers_;
    context.archivers = &archivers_;
    context.file_workers = &file_workers_;
    context.streams = &streams_;
    context.fetches = &fetches_;
    context.users = &users_;
    context.call_bounds = &call_bounds_;
    context.token_workers = &token_workers_;
    context.heartbeat_interval = options_.heartbeat_interval;
    context.fetch_begin_patience = options_.fetch.begin_patience;
    context.fetch_max_silence = options_.fetch.max_silence;
    context.app = MakeUseCases();
    services_.push_back(MakeJobsService(context));
    services_.push_back(MakeClustersService(context));
    services_.push_back(MakeFilesService(context));
    services_.push_back(MakeIdentityService(context));
    services_.push_back(MakeSecretsService(context));
    services_.push_back(MakeSecretLinkService(context));
    services_.push_back(MakeProjectsService(context));
    services_.push_back(MakeAuditService(context));
    services_.push_back(MakeUsageService(context));
    services_.push_back(MakeAgentLinkService(context));
    services_.push_back(MakeLogLinkService(context));
    services_.push_back(MakeFileLinkService(context));
    services_.push_back(MakeEnrollmentService(context));
    services_.push_back(MakeReflectionService(AllServices()));
  }

  void Watch(grpc::ServerBuilder& builder) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
    factories.push_back(CallBounds::MakeFactory(&call_bounds_));
    factories.push_back(CallAudit::MakeFactory(&audit_.calls()));
    builder.experimental().SetInterceptorCreators(std::move(factories));
  }

  absl::Status Listen() {
    auto listener = UnixListener::Bind(options_.socket_path, options_.socket_mode);
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);

    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    SetChannelArguments(builder);
    builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
    builder.SetMaxSendMessageSize(kMaxSendBytes);
    for (const auto& service : services_) builder.RegisterService(service.get());
    if (!options_.listen.empty()) {
      const absl::StatusOr<std::string> address = CheckListenAddress(options_.listen);
      if (!address.ok()) return address.status();
      builder.AddListeningPort(*address, grpc::InsecureServerCredentials(), &port_);
    }
    if (access_ != nullptr) {
      builder.AddListeningPort(options_.tls.listen,
                               TlsListenerCredentials(access_.get(), &users_, &audit_.calls()),
                               &tls_port_);
    }
    Watch(builder);
    server_ = builder.BuildAndStart();
    if (!options_.listen.empty() && port_ == 0) return CannotListen(options_.listen);
    if (access_ != nullptr && tls_port_ == 0) return CannotListen(options_.tls.listen);
    if (!server_) return CannotListen(options_.socket_path);
    // The health service knows only "" by itself.
    for (const std::string& name : AllServices()) {
      server_->GetHealthCheckService()->SetServingStatus(name, true);
    }
    listener_->Start([this](int fd, std::string user, bool is_owner) {
      users_.Note(fd, std::move(user), is_owner);
      grpc::AddInsecureChannelFromFd(server_.get(), fd);
    });
    return ListenHttp();
  }

  std::string Metrics() {
    BrokerMetrics metrics{.totals = engine_->totals(),
                          .queues = engine_->gauges(),
                          .calls_in_flight = call_bounds_.in_flight(),
                          .file_bytes = files_->used_bytes(),
                          .file_bytes_bound = files_->options().max_total_bytes,
                          .log_bytes = archive_->usage().bytes,
                          .clusters = engine_->clusters(),
                          .http = http_counts_,
                          .webhooks = notifier_->counts()};
    const auto add = [&metrics](std::string_view queue, uint64_t fill, uint64_t bound) {
      metrics.queues.push_back({queue, fill, bound});
    };
    const auto add_pool = [&add](std::string_view queue, const WorkerPool& pool) {
      add(queue, pool.waiting_calls(), pool.max_waiting_calls());
    };
    add("queued_jobs", metrics.totals.queued_jobs, options_.core.max_queued_jobs);
    add_pool("reader_calls", readers_);
    add_pool("file_calls", file_workers_);
    add_pool("count_calls", counters_);
    add_pool("token_calls", token_workers_);
    add("streams", streams_.size(), options_.max_streams);
    add("fetches", fetches_.size(), kMaxFetches);
    add("audit_records", audit_.log().queued(), audit_.log().max_queued());
    if (const http::Counts* http = http_counts_) {
      add("http_connections", http->connections, http::kMaxConnections);
      add("http_body_bytes", http->body_bytes, http::kMaxBodyBytesHeld);
      add("http_answer_bytes", http->answer_bytes, http::kMaxAnswerBytesHeld);
    }
    return MetricsText(metrics);
  }

  absl::Status ListenHttp() {
    if (options_.http.listen.empty() && options_.http.tls_listen.empty()) return absl::OkStatus();
    auto begun = BeginHttp({.options = options_.http,
                            .identity = access_ ? &access_->server() : nullptr,
                            .server = server_.get(),
                            .services = ServicesOfPeople(),
                            .users = &users_,
                            .audit = &audit_.calls(),
                            .entrance = &entrance_,
                            .is_ready = [this] { return !is_stopping_; },
                            .metrics = [this] { return Metrics(); }});
    if (!begun.ok()) return begun.status();
    http_ = *std::move(begun);
    http_counts_ = &http_->counts();
    return absl::OkStatus();
  }

  const BrokerOptions options_;
  const std::unique_ptr<store::Store> store_;
  const std::unique_ptr<logs::Archive> archive_;
  const std::unique_ptr<files::FileStore> files_;
  const std::unique_ptr<auth::Tokens> tokens_;
  const std::unique_ptr<secrets::Secrets> secrets_;
  const std::unique_ptr<auth::Projects> projects_;
  BrokerAudit audit_;
  files::JobFiles job_files_{files_.get()};
  const std::vector<std::unique_ptr<oidc::Provider>> providers_ = MakeProviders(options_.people);
  const std::unique_ptr<oidc::Verifier> verifier_ = MakeVerifier(options_.people, providers_);
  const HttpEntrance entrance_;
  Users users_{options_.roles, tokens_.get(), projects_.get(), verifier_.get()};
  std::unique_ptr<ClusterAccess> access_;  // null: there is no network listener
  Fetches fetches_;
  WatchHub watches_;
  WorkerPool readers_;
  WorkerPool archivers_;
  WorkerPool file_workers_;
  WorkerPool counters_;
  WorkerPool token_workers_;
  FileExpiry file_expiry_{files_.get(), &job_files_, store_.get(), &file_workers_};
  JobExpiry job_expiry_{
      {.retention = options_.job_retention, .request_memory = options_.core.request_memory},
      store_.get(),
      archive_.get(),
      &archivers_,
      absl::Now,
      [this](std::vector<uint64_t> jobs, StatusDone done) {
        engine_->DeleteJobs(std::move(jobs), std::move(done));
      }};
  StreamRegistry streams_;
  CallBounds call_bounds_;
  UserMeter uploads_;
  std::string instance_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<notify::Notifier> notifier_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<http::Server> http_;                      // null: HTTP is not served
  std::atomic<const http::Counts*> http_counts_ = nullptr;  // of http_
  std::unique_ptr<UnixListener> listener_;
  std::atomic<bool> is_stopping_ = false;
  int port_ = 0;
  int tls_port_ = 0;
  bool down_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Broker>> Broker::Start(
    BrokerOptions options, std::unique_ptr<store::Store> store,
    std::unique_ptr<logs::Archive> archive, std::unique_ptr<files::FileStore> files,
    std::function<void(const absl::Status&)> on_failure) {
  KeepGrpc();
  auto tokens = auth::Tokens::Open(options.token_file, absl::Now);
  if (!tokens.ok()) return tokens.status();
  options.secrets.now = absl::Now;
  auto secrets = secrets::Secrets::Open(options.secrets);
  if (!secrets.ok()) return secrets.status();
  auto projects = auth::Projects::Open(options.project_file);
  if (!projects.ok()) return projects.status();
  auto audit_log = audit::AuditLog::Open(options.audit.log, absl::Now, on_failure);
  if (!audit_log.ok()) return audit_log.status();
  auto broker = std::make_unique<RunningBroker>(
      std::move(options), std::move(store), std::move(archive), std::move(files),
      *std::move(tokens), *std::move(secrets), *std::move(projects), *std::move(audit_log));
  if (absl::Status status = broker->Begin(std::move(on_failure)); !status.ok()) return status;
  return broker;
}

}  // namespace muster::broker
