#include "broker/http/server.h"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "broker/http/bounds.h"
#include "broker/http/connection.h"
#include "broker/http/net.h"

namespace muster::http {
namespace {

class RunningServer final : public Server {
 public:
  explicit RunningServer(Start start)
      : service_{.methods = Methods(start.services),
                 .cors = Cors(start.options.allowed_origins),
                 .hosts = Hosts(start.options.allowed_hosts),
                 .calls = Calls(std::move(start.channel)),
                 .hooks = std::move(start.hooks),
                 .page = start.options.page} {}
  ~RunningServer() override { Stop(absl::ZeroDuration()); }

  absl::Status Listen(const HttpOptions& options, const TlsFiles& tls) {
    if (!options.listen.empty()) {
      const absl::StatusOr<int> port = network_->Listen(options.listen);
      if (!port.ok()) return port.status();
      port_ = *port;
    }
    if (!options.tls_listen.empty()) {
      const absl::StatusOr<int> port = network_->ListenTls(options.tls_listen, tls);
      if (!port.ok()) return port.status();
      tls_port_ = *port;
    }
    network_->Start();
    is_running_ = true;
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  int tls_port() const override { return tls_port_; }
  const Counts& counts() const override { return service_.counts; }

  void Drain() override {
    if (!is_running_ || std::exchange(is_draining_, true)) return;
    network_->StopAccepting();
    network_->OnEachLoop([this](size_t loop) {
      for (const auto& connection : Snapshot(loop)) connection->Drain();
    });
  }

  void Stop(absl::Duration patience) override {
    if (!is_running_) return;
    Drain();
    const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(patience);
    while (service_.counts.requests > 0 && std::chrono::steady_clock::now() < due) {
      std::this_thread::sleep_for(kDrainStep);
    }
    network_->OnEachLoop([this](size_t loop) {
      for (const auto& connection : Snapshot(loop)) connection->Close();
    });
    // Everything that the closed sockets had in progress ends before this.
    network_->OnEachLoop([](size_t) {});
    network_->Stop();
    is_running_ = false;
  }

 private:
  using Connections = absl::flat_hash_map<Connection*, std::shared_ptr<Connection>>;
  static constexpr std::chrono::milliseconds kDrainStep{5};

  std::vector<std::shared_ptr<Connection>> Snapshot(size_t loop) const {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [_, connection] : connections_[loop]) all.push_back(connection);
    return all;
  }

  void Accept(std::shared_ptr<Loop> loop, size_t number, std::unique_ptr<Socket> socket,
              std::string peer, bool is_plain_tcp) {
    if (service_.counts.connections >= kMaxConnections) {
      ++service_.counts.refused_connections;
      return socket->Close();
    }
    ++service_.counts.connections;
    auto connection =
        std::make_shared<Connection>(&service_, std::move(loop), std::move(socket), std::move(peer),
                                     is_plain_tcp, [this, number](Connection* c) {
                                       --service_.counts.connections;
                                       connections_[number].erase(c);
                                     });
    connections_[number].emplace(connection.get(), connection);
    connection->Start();
  }

  void Tick(size_t loop) {
    const auto now = Connection::Clock::now();
    for (const auto& connection : Snapshot(loop)) connection->Tick(now);
  }

  Service service_;
  std::array<Connections, kThreads> connections_;  // each of its loop's thread
  int port_ = 0;
  int tls_port_ = 0;
  bool is_running_ = false;
  bool is_draining_ = false;
  // This member is the last, because its threads use the others.
  std::unique_ptr<Network> network_ = Network::Make(
      {.accepted =
           [this](std::shared_ptr<Loop> loop, size_t number, std::unique_ptr<Socket> socket,
                  std::string peer, bool is_plain_tcp) {
             Accept(std::move(loop), number, std::move(socket), std::move(peer), is_plain_tcp);
           },
       .tick = [this](size_t loop) { Tick(loop); }});
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Begin(Start start) {
  const HttpOptions options = start.options;
  const TlsFiles tls = start.tls;
  auto server = std::make_unique<RunningServer>(std::move(start));
  if (absl::Status status = server->Listen(options, tls); !status.ok()) return status;
  return server;
}

}  // namespace muster::http
