// Submits over HTTP: a thread and a connection for each call in flight, as programs without gRPC
// have them.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "contract/text.h"
#include "muster/v1/jobs_service.pb.h"
#include "tests/bench/tools/submitter.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

constexpr std::string_view kLength = "Content-Length: ";
constexpr std::string_view kEndOfHead = "\r\n\r\n";

class Connection {
 public:
  Connection(int port, const std::string& token)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)),
        head_(fmt::format("POST /muster.v1.JobsService/SubmitJob HTTP/1.1\r\nHost: localhost\r\n"
                          "Authorization: Bearer {}\r\nContent-Type: application/proto\r\n{}",
                          token, kLength)) {
    sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<uint16_t>(port));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    is_open_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  // Returns the head of the answer, once all of it has come; empty if the connection has ended.
  std::string Call(const std::string& body) {
    const std::string request = fmt::format("{}{}{}{}", head_, body.size(), kEndOfHead, body);
    if (!is_open_ || ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
                         static_cast<ssize_t>(request.size())) {
      return "";
    }
    std::string answer;
    while (true) {
      char piece[4096];
      const ssize_t size = ::recv(socket_, piece, sizeof piece, 0);
      if (size <= 0) return "";
      answer.append(piece, static_cast<size_t>(size));
      const size_t end = answer.find(kEndOfHead);
      if (end == answer.npos) continue;
      const size_t at = answer.find(kLength) + kLength.size();
      size_t length = 0;
      std::from_chars(answer.data() + at, answer.data() + end, length);
      if (answer.size() >= end + kEndOfHead.size() + length) return answer.substr(0, end);
    }
  }

 private:
  const int socket_;
  const std::string head_;
  bool is_open_ = false;
};

}  // namespace

absl::Status SubmitOverHttp(const Load& load) {
  const absl::StatusOr<std::string> token = Contents(load.token_file);
  if (!token.ok()) return token.status();
  int port = 0;
  const size_t colon = load.address.rfind(':') + 1;
  std::from_chars(load.address.data() + colon, load.address.data() + load.address.size(), port);

  std::mutex mutex;
  Submitted result;
  std::string refusal;
  std::atomic<uint64_t> number = 0;
  const absl::Time start = absl::Now();
  const absl::Time end = start + absl::Seconds(load.seconds);
  std::vector<std::thread> threads;
  threads.reserve(load.in_flight);
  for (int i = 0; i < load.in_flight; ++i) {
    threads.emplace_back([&] {
      Connection connection(port, *token);
      for (absl::Time begun = absl::Now(); begun < end; begun = absl::Now()) {
        v1::SubmitJobRequest request;
        *request.mutable_spec() = SampleSpec(number++);
        request.set_request_id(client::NewRequestId());
        const std::string head = connection.Call(request.SerializeAsString());
        const std::lock_guard lock(mutex);
        if (!head.starts_with("HTTP/1.1 200 ")) {
          refusal = head.empty() ? "the connection has ended" : head;
          return;
        }
        ++result.jobs;
        result.call_times.Add(absl::Now() - begun);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!refusal.empty()) return absl::UnavailableError(ToAbsl(refusal));
  result.elapsed = absl::Now() - start;
  Print(std::move(result));
  return absl::OkStatus();
}

}  // namespace muster::bench
