#include "broker/http/net.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "broker/http/tls.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using AnySocket = asio::generic::stream_protocol::socket;

constexpr std::string_view kUnixPeer = "http:unix";
constexpr std::chrono::seconds kTick{1};
// A listener pauses for this time when the process has no descriptor left.
constexpr std::chrono::milliseconds kExhaustedRest{100};
constexpr int kBacklog = 1024;

absl::Status CannotListen(std::string_view address, std::string_view why) {
  return absl::UnavailableError(ToAbsl(fmt::format("cannot listen on {}: {}", address, why)));
}

class PlainSocket final : public Socket {
 public:
  explicit PlainSocket(AnySocket socket) : socket_(std::move(socket)) {}

  void Read(char* data, size_t size, Done done) override {
    socket_.async_read_some(
        asio::buffer(data, size),
        [done = std::move(done)](const Error& error, size_t bytes) { done(!error, bytes); });
  }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(
        socket_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](const Error& error, size_t count) { done(!error, count); });
  }
  void EndWrites() override {
    Error ignored;
    socket_.shutdown(AnySocket::shutdown_send, ignored);
  }
  void Close() override {
    Error ignored;
    socket_.close(ignored);
  }

 private:
  AnySocket socket_;
};

// Lets the kernel notice that the other end is gone as quickly as gRPC's listeners do: after a
// minute of silence and 20 s of probes.
void KeepAlive(AnySocket* socket) {
  Error ignored;
  socket->set_option(asio::socket_base::keep_alive(true), ignored);
  using Number = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  socket->set_option(Number(60), ignored);
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  socket->set_option(Interval(10), ignored);
  using Count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  socket->set_option(Count(2), ignored);
}

class LoopThread final : public Loop, public std::enable_shared_from_this<LoopThread> {
 public:
  void Start(std::function<void()> tick) {
    tick_ = std::move(tick);
    Wait();
    thread_ = std::thread([this] { io_.run(); });
  }
  void Post(std::function<void()> task) override { asio::post(io_, std::move(task)); }
  void Stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  asio::io_context& io() { return io_; }

 private:
  void Wait() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](const Error& error) {
      if (error) return;
      tick_();
      Wait();
    });
  }

  asio::io_context io_{1};
  asio::steady_timer timer_{io_};
  std::function<void()> tick_;
  std::thread thread_;
};

// A socket that listens, made by the system's own calls, so that one class serves both families.
absl::StatusOr<int> BindUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return CannotListen(path, fmt::format("the path has {} bytes, and a Unix socket's may have {}",
                                          path.size(), sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return CannotListen(path, "a file that is no socket has this name; choose another");
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool answers = connect(probe, name, sizeof(address)) == 0;
    close(probe);
    if (answers) return CannotListen(path, "another program listens there; choose another path");
    unlink(path.c_str());
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Everybody may connect, because a token identifies the caller, as over the network.
  if (fd >= 0 && bind(fd, name, sizeof(address)) == 0 && chmod(path.c_str(), 0666) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const absl::Status failed = CannotListen(path, std::strerror(errno));
  if (fd >= 0) close(fd);
  return failed;
}

class Listener {
 public:
  using Accepted = std::function<void(AnySocket socket, std::string peer)>;
  using Next = std::function<asio::io_context&()>;

  Listener(asio::io_context& io, int fd, int family, std::string path)
      : acceptor_(io), rest_(io), is_unix_(family == AF_UNIX), path_(std::move(path)) {
    acceptor_.assign(asio::generic::stream_protocol(family, 0), fd, error_);
  }

  const Error& error() const { return error_; }
  const std::string& path() const { return path_; }

  // Hands each connection over with the socket on the loop that `next` names.
  void Accept(Next next, Accepted accepted) {
    next_ = std::move(next);
    accepted_ = std::move(accepted);
    AcceptNext();
  }

  void Close() {
    Error ignored;
    acceptor_.close(ignored);
    rest_.cancel(ignored);
    if (is_unix_) unlink(path_.c_str());
  }

 private:
  void AcceptNext() {
    coming_ = std::make_unique<AnySocket>(next_());
    acceptor_.async_accept(*coming_, [this](const Error& error) {
      if (error == asio::error::operation_aborted) return;
      if (error) {
        LogEvent(spdlog::level::err, "http_accept_failed", {{"error", error.message()}});
        rest_.expires_after(kExhaustedRest);
        return rest_.async_wait([this](const Error& stopped) {
          if (!stopped) AcceptNext();
        });
      }
      std::string peer = Prepare(coming_.get());
      accepted_(std::move(*coming_), std::move(peer));
      AcceptNext();
    });
  }

  // Sets the options of a new connection, and names its other end.
  std::string Prepare(AnySocket* socket) const {
    if (is_unix_) return std::string(kUnixPeer);
    Error ignored;
    socket->set_option(asio::ip::tcp::no_delay(true), ignored);
    KeepAlive(socket);
    const auto end = socket->remote_endpoint(ignored);
    asio::ip::tcp::endpoint tcp;
    if (ignored || end.size() > tcp.capacity()) return "http:gone";
    std::memcpy(tcp.data(), end.data(), end.size());
    tcp.resize(end.size());
    const std::string host = tcp.address().to_string(ignored);
    return tcp.address().is_v6() ? fmt::format("http:[{}]:{}", host, tcp.port())
                                 : fmt::format("http:{}:{}", host, tcp.port());
  }

  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor_;
  asio::steady_timer rest_;
  const bool is_unix_;
  const std::string path_;
  Error error_;
  Next next_;
  Accepted accepted_;
  std::unique_ptr<AnySocket> coming_;  // the next connection
};

class AsioNetwork final : public Network {
 public:
  explicit AsioNetwork(Events events) : events_(std::move(events)) {
    for (auto& loop : loops_) loop = std::make_shared<LoopThread>();
  }
  ~AsioNetwork() override { Stop(); }

  absl::StatusOr<int> Listen(const std::string& address) override { return Add(address, nullptr); }
  absl::StatusOr<int> ListenTls(const std::string& address, const TlsFiles& files) override {
    auto tls = TlsContexts::Load(files);
    if (!tls.ok()) return tls.status();
    return Add(address, *std::move(tls));
  }

  void Start() override {
    for (size_t i = 0; i < loops_.size(); ++i) {
      loops_[i]->Start([this, i] { events_.tick(i); });
    }
    loops_[0]->Post([this] {
      for (auto& [listener, tls] : listeners_) Accept(listener.get(), tls);
    });
  }

  void StopAccepting() override {
    std::promise<void> done;
    loops_[0]->Post([this, &done] {
      for (auto& [listener, _] : listeners_) listener->Close();
      done.set_value();
    });
    done.get_future().wait();
  }

  void OnEachLoop(const std::function<void(size_t)>& task) override {
    for (size_t i = 0; i < loops_.size(); ++i) {
      std::promise<void> done;
      loops_[i]->Post([&task, &done, i] {
        task(i);
        done.set_value();
      });
      done.get_future().wait();
    }
  }

  void Stop() override {
    for (auto& loop : loops_) loop->Stop();
  }

 private:
  struct Entrance {
    std::unique_ptr<Listener> listener;
    std::shared_ptr<TlsContexts> tls;  // null: plain
  };

  absl::StatusOr<int> Add(const std::string& address, std::shared_ptr<TlsContexts> tls) {
    asio::io_context& io = loops_[0]->io();
    if (address.starts_with('/')) {
      absl::StatusOr<int> fd = BindUnix(address);
      if (!fd.ok()) return fd.status();
      return Keep(std::make_unique<Listener>(io, *fd, AF_UNIX, address), std::move(tls), 0);
    }
    const size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    uint16_t port = 0;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    Error error;
    const asio::ip::tcp::endpoint place(asio::ip::make_address(host, error), port);
    asio::ip::tcp::acceptor acceptor(io);
    if (!error) acceptor.open(place.protocol(), error);
    if (!error) acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(place, error);
    if (!error) acceptor.listen(kBacklog, error);
    const asio::ip::tcp::endpoint bound = error ? place : acceptor.local_endpoint(error);
    if (error) {
      return CannotListen(
          address, fmt::format("{}; choose another port, or 0 for any free one", error.message()));
    }
    return Keep(
        std::make_unique<Listener>(io, acceptor.release(error), place.protocol().family(), address),
        std::move(tls), bound.port());
  }

  absl::StatusOr<int> Keep(std::unique_ptr<Listener> listener, std::shared_ptr<TlsContexts> tls,
                           int port) {
    if (listener->error()) return CannotListen(listener->path(), listener->error().message());
    listeners_.push_back({std::move(listener), std::move(tls)});
    return port;
  }

  // Connections go to the loops in turn.
  void Accept(Listener* listener, const std::shared_ptr<TlsContexts>& tls) {
    listener->Accept(
        [this]() -> asio::io_context& {
          turn_ = (turn_ + 1) % loops_.size();
          return loops_[turn_]->io();
        },
        [this, tls](AnySocket socket, std::string peer) {
          Begin(tls, std::move(socket), std::move(peer));
        });
  }

  void Begin(const std::shared_ptr<TlsContexts>& tls, AnySocket socket, std::string peer) {
    const size_t number = turn_;
    const bool is_plain_tcp = tls == nullptr && peer != kUnixPeer;
    std::unique_ptr<Socket> made;
    if (tls != nullptr) {
      made = MakeTlsSocket(tls->Current(), std::move(socket));
    } else {
      made = std::make_unique<PlainSocket>(std::move(socket));
    }
    // The function must be copyable, and the socket is not.
    auto held = std::make_shared<std::unique_ptr<Socket>>(std::move(made));
    loops_[number]->Post([this, number, held, is_plain_tcp, peer = std::move(peer)]() mutable {
      events_.accepted(loops_[number], number, std::move(*held), std::move(peer), is_plain_tcp);
    });
  }

  const Events events_;
  std::array<std::shared_ptr<LoopThread>, kThreads> loops_;
  std::vector<Entrance> listeners_;  // of the first loop's thread, once it runs
  size_t turn_ = 0;                  // likewise
};

}  // namespace

std::unique_ptr<Network> Network::Make(Events events) {
  return std::make_unique<AsioNetwork>(std::move(events));
}

}  // namespace muster::http
