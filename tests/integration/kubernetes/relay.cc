#include "tests/integration/kubernetes/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Passes it nowhere if `swallows`. Returns false if there is no more, or nobody takes it.
bool PassSome(int from, int to, bool swallows) {
  char bytes[16384];
  const ssize_t count = recv(from, bytes, sizeof bytes, 0);
  for (ssize_t sent = 0; sent < count && !swallows;) {
    const ssize_t now = send(to, bytes + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += now;
  }
  return count > 0;
}

}  // namespace

Relay::Relay(const std::string& server)
    : server_port_(atoi(server.substr(server.rfind(':') + 1).c_str())) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    abort();
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  Cut();
  for (Link& link : links_) {
    link.thread.join();
    close(link.client);
    close(link.server);
  }
  close(listener_);
}

std::string Relay::url() const { return fmt::format("https://127.0.0.1:{}", port_); }

void Relay::Cut() {
  const std::lock_guard lock(mutex_);
  is_cut_ = true;
  for (const Link& link : links_) {
    shutdown(link.client, SHUT_RDWR);
    shutdown(link.server, SHUT_RDWR);
  }
}

void Relay::Accept() {
  while (true) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    const std::lock_guard lock(mutex_);
    if (is_cut_ ||
        connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(client);
      close(server);
      continue;
    }
    ++connections_;
    Link& link = links_.emplace_back();
    link.client = client;
    link.server = server;
    link.thread = std::thread([&link] { Pass(link); });
  }
}

void Relay::Swallow() {
  const std::lock_guard lock(mutex_);
  for (Link& link : links_) link.swallows = true;
}

void Relay::Pass(const Link& link) {
  pollfd ends[] = {{link.client, POLLIN, 0}, {link.server, POLLIN, 0}};
  while (poll(ends, 2, -1) > 0) {
    if (ends[0].revents != 0 && !PassSome(link.client, link.server, link.swallows)) break;
    if (ends[1].revents != 0 && !PassSome(link.server, link.client, link.swallows)) break;
  }
  shutdown(link.client, SHUT_RDWR);
  shutdown(link.server, SHUT_RDWR);
}

}  // namespace muster::kubernetes
