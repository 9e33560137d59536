// One connection: reads a request, has it answered, writes the answer, and reads the next one.
//
//   waiting --first byte--> reading --all of it--> answering --last byte--> waiting
//      |                       |                                  |
//      +--- too long silent ---+---- malformed, too large --------+--> closing --> closed
//
// All of it runs on the thread of its loop. gRPC's threads post there what they bring.
#ifndef MUSTER_BROKER_HTTP_CONNECTION_H_
#define MUSTER_BROKER_HTTP_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "broker/http/calls.h"
#include "broker/http/net.h"
#include "broker/http/request.h"
#include "broker/http/route.h"
#include "broker/http/service.h"

namespace muster::http {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `service` outlives it. `closed` is called once, as the last. `is_plain_tcp`: a name that
  // nobody has checked may have led the caller here.
  Connection(const Service* service, std::shared_ptr<Loop> loop, std::unique_ptr<Socket> socket,
             std::string peer, bool is_plain_tcp, std::function<void(Connection*)> closed);
  ~Connection();

  void Start();
  // Closes the connection if something has taken too long.
  void Tick(Clock::time_point now);
  // Answers the request in progress, and closes.
  void Drain();
  void Close();

 private:
  enum class State { kWaiting, kReading, kAnswering, kClosing, kClosed };

  void Await(std::chrono::milliseconds patience);
  void ReadMore();
  void OnBytes(bool ok, size_t bytes);
  void Parse();
  void OnHead();
  void OnRequest();
  // Counts the bytes of the body towards the bound of all bodies, and towards the share of the
  // user.
  bool TakeRoom(size_t bytes);
  // Returns the bytes of the request and of its answer to the bounds.
  void GiveRoomBack();

  // ---- answers
  void Answer(int http_status, std::string_view content_type, std::string_view headers,
              std::string_view body, std::string_view cache = "no-store");
  void Refuse(const Refusal& refusal);
  // Refuses in the form of the route: a stream's caller reads the error from its end.
  Refusal OnRoute(Refusal refusal) const;
  Refusal TooLarge() const;
  void AnswerProbe();
  void AnswerMetrics();
  void AnswerPage();
  void BeginCall();
  CallEvents EventsOfCall();
  // Both get the call's messages in the form of the answer: JSON or binary.
  void OnAnswer(const absl::StatusOr<std::string>& answer);
  void OnMessage(const absl::StatusOr<std::string>& message);
  void EndStream(const absl::Status& status);
  // Returns the lines that let a page of an allowed origin read the answer.
  std::string CorsHeaders() const;

  // ---- output
  size_t Unwritten() const { return out_.size() + writing_.size() - written_; }
  void Flush();
  void OnWritten(bool ok, size_t bytes);
  void OnAnswered();

  const Service& service_;
  const std::shared_ptr<Loop> loop_;
  const std::unique_ptr<Socket> socket_;
  const std::string peer_;
  const bool is_plain_tcp_;
  const std::function<void(Connection*)> closed_;

  State state_ = State::kWaiting;
  Clock::time_point due_;
  bool is_draining_ = false;

  // input
  std::string room_;         // the memory of the read that is under way
  std::string in_;           // read, and not parsed yet
  bool is_reading_ = false;  // a read is under way

  // the request
  std::unique_ptr<RequestParser> parser_;
  std::optional<Route> route_;
  std::optional<Refusal> refusal_;  // told once the body has come
  Clock::time_point body_due_;
  size_t body_bound_ = kMaxBodyBytes;
  std::string user_;  // whose share has them; empty: nobody's
  size_t held_bytes_ = 0;
  size_t answer_bytes_ = 0;
  uint64_t number_ = 0;  // of the request; what belongs to an earlier one is dropped
  std::shared_ptr<Call> call_;
  bool is_paused_ = false;  // the call's next message waits until the output is less

  // output
  std::string out_;      // not being written yet
  std::string writing_;  // being written
  size_t written_ = 0;   // of it
  bool is_writing_ = false;
  bool is_complete_ = false;  // the answer ends with what is here
  bool closes_ = false;       // after the answer
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_CONNECTION_H_
