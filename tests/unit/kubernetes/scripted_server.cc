#include "tests/unit/kubernetes/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Reads one request from the connection, and keeps what follows it; nothing if the connection is
// over.
std::optional<ScriptedRequest> ReadRequest(int fd, std::string* buffer) {
  const auto more = [&] {
    char bytes[4096];
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got > 0) buffer->append(bytes, static_cast<size_t>(got));
    return got > 0;
  };
  size_t end = 0;
  while ((end = buffer->find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  ScriptedRequest request;
  size_t line_end = buffer->find("\r\n");
  const std::string first = buffer->substr(0, line_end);
  request.method = first.substr(0, first.find(' '));
  request.target =
      first.substr(request.method.size() + 1, first.rfind(' ') - request.method.size() - 1);
  while (line_end < end) {
    const size_t begin = line_end + 2;
    line_end = buffer->find("\r\n", begin);
    const std::string line = buffer->substr(begin, line_end - begin);
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = line.substr(colon + 2);
  }
  const auto length = request.headers.find("content-length");
  const size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer->size() < end + 4 + size) {
    if (!more()) return std::nullopt;
  }
  request.body = buffer->substr(end + 4, size);
  buffer->erase(0, end + 4 + size);
  return request;
}

void SendAll(int fd, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t more = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) return;
    sent += static_cast<size_t>(more);
  }
}

std::string TextOf(const ScriptedReply& reply) {
  std::string text = fmt::format("HTTP/1.1 {} Told\r\n", reply.status);
  for (const std::string& header : reply.headers) text += header + "\r\n";
  if (reply.stays_open) {
    text += "Transfer-Encoding: chunked\r\n\r\n";
    // An empty chunk would be the stream's end.
    if (reply.body.empty()) return text;
    return text + fmt::format("{:x}\r\n{}\r\n", reply.body.size(), reply.body);
  }
  return text + fmt::format("Content-Length: {}\r\n\r\n{}", reply.body.size(), reply.body);
}

}  // namespace

ScriptedServer::ScriptedServer(Handler handler)
    : handler_(std::move(handler)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no server can be made here");
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int fd : connections_) close(fd);
  close(listener_);
}

std::string ScriptedServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void ScriptedServer::Accept() {
  while (!stopping_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    connections_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedServer::Serve(int fd) {
  std::string buffer;
  while (const std::optional<ScriptedRequest> request = ReadRequest(fd, &buffer)) {
    const ScriptedReply reply = handler_(*request);
    if (reply.hangs_up) break;
    SendAll(fd, TextOf(reply));
    if (reply.stays_open) {
      char byte = 0;
      while (recv(fd, &byte, 1, 0) > 0) {
      }
      return;
    }
  }
  shutdown(fd, SHUT_RDWR);
}

}  // namespace muster::kubernetes
