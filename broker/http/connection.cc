#include "broker/http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "broker/http/answer.h"
#include "broker/http/bounds.h"
#include "broker/http/codec.h"
#include "broker/http/envelope.h"
#include "broker/http/error_body.h"
#include "contract/errors.h"
#include "contract/text.h"

namespace muster::http {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
// A head fits into this; a body is read in larger pieces.
constexpr size_t kHeadReadBytes = 4 << 10;

Refusal Fault(int http_status, absl::StatusCode code, std::string_view reason,
              std::string_view words) {
  return {.status = contract::Error(code, reason, words), .http_status = http_status};
}

// `held`: "requests", "answers".
Refusal Busy(std::string_view held) {
  return RefusalOf(contract::RetryableError(
      absl::StatusCode::kResourceExhausted, "HTTP_BUSY",
      fmt::format("the broker holds as many bytes of {} as it may; try again in a moment", held),
      absl::Seconds(1)));
}

Refusal ShareIsFull(const std::string& user) {
  return RefusalOf(contract::WithQuota(
      user, contract::RetryableError(
                absl::StatusCode::kResourceExhausted, "HTTP_BUSY",
                fmt::format("the requests of {} that are under way have more than {} bytes; make "
                            "fewer large calls at a time, and try again in a moment",
                            user, kMaxBodyBytesOfUser),
                absl::Seconds(1))));
}

Credentials CredentialsOf(const Head& head) {
  return {head.credentials.begin(), head.credentials.end()};
}

// Returns the messages of a request in the form of gRPC.
absl::StatusOr<std::vector<std::string>> MessagesOf(const Route& route, std::string_view body) {
  const Method& method = *route.method;
  std::vector<std::string_view> frames{body};
  if (route.codec.is_stream) {
    auto split = SplitEnvelopes(body);
    if (!split.ok()) return split.status();
    frames = *std::move(split);
  }
  if (!method.client_streams && frames.size() != 1) {
    return contract::Error(
        absl::StatusCode::kInvalidArgument, "BAD_ENVELOPE",
        fmt::format("{} takes one message, and {} came", method.path, frames.size()));
  }
  std::vector<std::string> messages;
  for (const std::string_view frame : frames) {
    auto message = Decode(route.codec, method, frame);
    if (!message.ok()) return message.status();
    messages.push_back(*std::move(message));
  }
  return messages;
}

}  // namespace

Connection::Connection(const Service* service, std::shared_ptr<Loop> loop,
                       std::unique_ptr<Socket> socket, std::string peer, bool is_plain_tcp,
                       std::function<void(Connection*)> closed)
    : service_(*service),
      loop_(std::move(loop)),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      is_plain_tcp_(is_plain_tcp),
      closed_(std::move(closed)) {}

Connection::~Connection() = default;

void Connection::Start() {
  Await(kMaxHeadTime);
  ReadMore();
}

void Connection::Await(std::chrono::milliseconds patience) { due_ = Clock::now() + patience; }

void Connection::Tick(Clock::time_point now) {
  if (now < due_ || state_ == State::kClosed) return;
  if (state_ != State::kReading) return Close();
  closes_ = true;
  Refuse(OnRoute(Fault(408, absl::StatusCode::kDeadlineExceeded, "REQUEST_TOO_SLOW",
                       "the request did not come in time; send it faster, or in smaller parts")));
}

void Connection::Drain() {
  is_draining_ = true;
  if (state_ == State::kWaiting) Close();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kAnswering) --service_.counts.requests;
  state_ = State::kClosed;
  if (call_) std::exchange(call_, nullptr)->Cancel();
  GiveRoomBack();
  socket_->Close();
  closed_(this);
}

void Connection::GiveRoomBack() {
  if (!user_.empty()) service_.shares.GiveBack(std::exchange(user_, ""), held_bytes_);
  service_.counts.body_bytes -= std::exchange(held_bytes_, 0);
  service_.counts.answer_bytes -= std::exchange(answer_bytes_, 0);
}

// ---- input

void Connection::ReadMore() {
  if (is_reading_ || state_ == State::kClosed) return;
  if (state_ == State::kAnswering && in_.size() >= kMaxAheadBytes) return;
  is_reading_ = true;
  room_.resize(route_ ? kReadBytes : kHeadReadBytes);
  socket_->Read(room_.data(), room_.size(),
                [self = shared_from_this()](bool ok, size_t bytes) { self->OnBytes(ok, bytes); });
}

void Connection::OnBytes(bool ok, size_t bytes) {
  is_reading_ = false;
  if (state_ == State::kClosed) return;
  if (!ok) return Close();
  if (state_ != State::kClosing) {
    in_.append(room_, 0, bytes);
    const bool reads_body = state_ == State::kReading && (route_ || refusal_);
    if (reads_body) due_ = std::min(Clock::now() + kMaxSilence, body_due_);
    Parse();
  }
  ReadMore();
}

void Connection::Parse() {
  if (state_ == State::kWaiting && !in_.empty()) {
    state_ = State::kReading;
    ++number_;
    parser_ = std::make_unique<RequestParser>();
    body_bound_ = kMaxBodyBytes;
    Await(kMaxHeadTime);
  }
  while (state_ == State::kReading) {
    const bool is_body = route_ || refusal_;
    size_t used = 0;
    const Parsed parsed = parser_->Feed(in_, &used);
    in_.erase(0, used);
    if (is_body && !TakeRoom(used)) return;
    switch (parsed) {
      case Parsed::kNeedsMore:
        // The parser leaves the head of a chunk, or a trailer, until it has all of it.
        if (in_.size() <= kMaxHeadBytes) return;
        closes_ = true;
        return Refuse(
            OnRoute(Fault(400, absl::StatusCode::kInvalidArgument, "BAD_REQUEST",
                          fmt::format("the head of a chunk, or a trailer, has more than {} bytes",
                                      kMaxHeadBytes))));
      case Parsed::kHead:
        OnHead();
        break;
      case Parsed::kAll:
        return OnRequest();
      case Parsed::kMalformed:
        closes_ = true;
        return Refuse(Fault(400, absl::StatusCode::kInvalidArgument, "BAD_REQUEST",
                            "this is no request of HTTP/1.1"));
      case Parsed::kHeadTooLarge:
        closes_ = true;
        return Refuse(Fault(431, absl::StatusCode::kResourceExhausted, "HEAD_TOO_LARGE",
                            fmt::format("the head of the request has more than {} bytes; send "
                                        "fewer and shorter headers",
                                        kMaxHeadBytes)));
      case Parsed::kBodyTooLarge: {
        closes_ = true;
        Refusal refusal = TooLarge();
        const std::optional<Codec> codec = CodecOf(parser_->head().content_type);
        if (codec && codec->is_stream) refusal.stream = codec;
        return Refuse(refusal);
      }
    }
  }
}

bool Connection::TakeRoom(size_t bytes) {
  held_bytes_ += bytes;
  const bool has_share = user_.empty() || service_.shares.Take(user_, bytes);
  const bool has_room = service_.counts.body_bytes.fetch_add(bytes) + bytes <= kMaxBodyBytesHeld;
  if (has_room && has_share) return true;
  closes_ = true;
  Refuse(OnRoute(has_room ? ShareIsFull(user_) : Busy("requests")));
  return false;
}

Refusal Connection::TooLarge() const {
  return Fault(
      413, absl::StatusCode::kResourceExhausted, "BODY_TOO_LARGE",
      body_bound_ == kMaxBodyBytes
          ? fmt::format("the body has more than {} bytes; send less in one call", body_bound_)
          : fmt::format("the body has more than {} bytes, which is the bound of calls "
                        "that need no credential",
                        body_bound_));
}

void Connection::OnHead() {
  const Head& head = parser_->head();
  std::variant<Route, Refusal> decided =
      RouteOf(head, service_.methods, service_.cors, service_.page.assets);
  if (auto* refusal = std::get_if<Refusal>(&decided)) {
    refusal_ = std::move(*refusal);
  } else {
    route_ = std::get<Route>(decided);
  }
  bool is_for_anybody = route_ && route_->kind != Route::Kind::kCall;
  if (route_ && route_->kind == Route::Kind::kCall) {
    const absl::StatusOr<Caller> caller =
        service_.hooks.admit(route_->method->path, CredentialsOf(head), peer_);
    if (!caller.ok()) {
      refusal_ = OnRoute(RefusalOf(caller.status()));
    } else if (caller->IsAnyone()) {
      is_for_anybody = true;
      body_bound_ = kMaxBodyBytesOfStrangers;
      parser_->BoundBody(body_bound_);
      if (head.content_length.value_or(0) > body_bound_) refusal_ = OnRoute(TooLarge());
    } else {
      user_ = caller->user;
    }
  }
  if (is_for_anybody && is_plain_tcp_ && !refusal_) {
    refusal_ = RefuseHost(head, service_.cors, service_.hosts);
    if (refusal_) refusal_ = OnRoute(*std::move(refusal_));
  }
  body_due_ = Clock::now() + kMaxBodyTime;
  Await(kMaxSilence);
  if (!head.has_body) return;
  const bool asks_first = absl::EqualsIgnoreCase(head.expect, "100-continue");
  const bool is_probe = route_ && route_->kind != Route::Kind::kCall;
  const bool is_small = head.content_length.value_or(kMaxDiscardedBytes + 1) <= kMaxDiscardedBytes;
  if (is_probe || (refusal_ && (asks_first || !is_small))) {
    closes_ = true;
    return OnRequest();
  }
  if (!asks_first) return;
  out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  Flush();
}

void Connection::OnRequest() {
  if (refusal_) return Refuse(*refusal_);
  switch (route_->kind) {
    case Route::Kind::kCall:
      return BeginCall();
    case Route::Kind::kHealth:
    case Route::Kind::kReady:
      return AnswerProbe();
    case Route::Kind::kMetrics:
      return AnswerMetrics();
    case Route::Kind::kPage:
      return AnswerPage();
    case Route::Kind::kPreflight:
      return Answer(204, "", service_.cors.PreflightHeaders(parser_->head().origin), "");
  }
}

// ---- answers

std::string Connection::CorsHeaders() const {
  return service_.cors.Headers(parser_ ? parser_->head().origin : "");
}

void Connection::Answer(int http_status, std::string_view content_type, std::string_view headers,
                        std::string_view body, std::string_view cache) {
  if (state_ == State::kReading) ++service_.counts.requests;
  state_ = State::kAnswering;
  const Head* const head = parser_ ? &parser_->head() : nullptr;
  closes_ = closes_ || is_draining_ || head == nullptr || !head->keeps_alive;
  out_ += HeadText({.http_status = http_status,
                    .content_type = content_type,
                    .headers = headers,
                    .cache = cache,
                    .content_length = body.size(),
                    .keeps_alive = !closes_},
                   absl::Now());
  if (head == nullptr || head->method != "HEAD") out_ += body;
  is_complete_ = true;
  ++service_.counts.answers[std::min<size_t>(http_status / 100, Counts::kClasses - 1)];
  Await(kMaxSilence);
  Flush();
}

void Connection::Refuse(const Refusal& refusal) {
  const std::string headers = refusal.headers + CorsHeaders();
  if (!refusal.stream) {
    return Answer(refusal.http_status, kJson, headers, ErrorBody(refusal.status));
  }
  std::string body;
  AppendEnvelope(kEndStreamFlag, EndOfStream(refusal.status), &body);
  Answer(200, refusal.stream->ContentType(), CorsHeaders(), body);
}

Refusal Connection::OnRoute(Refusal refusal) const {
  if (route_ && route_->codec.is_stream) refusal.stream = route_->codec;
  return refusal;
}

void Connection::AnswerProbe() {
  if (route_->kind == Route::Kind::kHealth || service_.hooks.is_ready()) {
    return Answer(200, kText, "", "ok\n");
  }
  Answer(503, kText, "", "stopping\n");
}

void Connection::AnswerMetrics() {
  const absl::StatusOr<std::string> text =
      service_.hooks.metrics(CredentialsOf(parser_->head()), peer_);
  if (!text.ok()) return Refuse(RefusalOf(text.status()));
  Answer(200, kMetricsText, "", *text);
}

void Connection::AnswerPage() {
  const AssetAnswer answer = AnswerOf(*route_->asset, parser_->head(), service_.page.headers);
  Answer(answer.http_status, answer.content_type, answer.headers, answer.body, answer.cache);
}

void Connection::BeginCall() {
  const Head& head = parser_->head();
  const bool is_stream = route_->codec.is_stream;
  absl::StatusOr<std::vector<std::string>> messages = MessagesOf(*route_, parser_->TakeBody());
  if (!messages.ok()) return Refuse(OnRoute(RefusalOf(messages.status())));
  if (service_.counts.answer_bytes > kMaxAnswerBytesHeld) return Refuse(OnRoute(Busy("answers")));
  ++service_.counts.requests;
  state_ = State::kAnswering;
  due_ = Clock::time_point::max();
  CallStart start{.path = route_->method->path, .messages = *std::move(messages)};
  if (route_->timeout) start.deadline = absl::Now() + *route_->timeout;
  for (const std::string& value : head.credentials) {
    start.metadata.emplace_back("authorization", value);
  }
  start.metadata.push_back(service_.hooks.entrance(peer_));
  if (!is_stream) {
    call_ = service_.calls.StartUnary(std::move(start), EventsOfCall());
    return;
  }
  closes_ = closes_ || !head.keeps_alive;
  out_ += HeadText({.content_type = route_->codec.ContentType(),
                    .headers = CorsHeaders(),
                    .content_length = std::nullopt,
                    .keeps_alive = !closes_},
                   absl::Now());
  ++service_.counts.answers[2];
  Flush();
  if (state_ != State::kAnswering) return;
  call_ = service_.calls.StartStream(std::move(start), EventsOfCall());
}

CallEvents Connection::EventsOfCall() {
  const auto post = [loop = loop_, weak = weak_from_this(), number = number_](auto task) {
    loop->Post([weak, number, task = std::move(task)]() mutable {
      const std::shared_ptr<Connection> self = weak.lock();
      const bool is_current = self != nullptr && self->number_ == number;
      if (is_current && self->state_ == State::kAnswering) task(*self);
    });
  };
  // It runs on gRPC's threads, so that a large answer keeps no other connection waiting.
  const auto encode = [codec = route_->codec, method = route_->method](std::string message) {
    return Encode(codec, *method, std::move(message));
  };
  return {.message =
              [post, encode](std::string message) {
                post([message = encode(std::move(message))](Connection& self) {
                  self.OnMessage(message);
                });
              },
          .done =
              [post, encode, is_stream = route_->codec.is_stream](const absl::Status& status,
                                                                  std::string answer) {
                absl::StatusOr<std::string> told = std::move(answer);
                if (!status.ok()) {
                  told = status;
                } else if (!is_stream) {
                  told = encode(*std::move(told));
                }
                post([told = std::move(told)](Connection& self) { self.OnAnswer(told); });
              }};
}

void Connection::OnAnswer(const absl::StatusOr<std::string>& answer) {
  call_ = nullptr;
  if (route_->codec.is_stream) return EndStream(answer.status());
  if (!answer.ok()) return Refuse(RefusalOf(answer.status()));
  answer_bytes_ = answer->size();
  service_.counts.answer_bytes += answer_bytes_;
  Answer(200, route_->codec.ContentType(), CorsHeaders(), *answer);
}

void Connection::OnMessage(const absl::StatusOr<std::string>& message) {
  if (is_complete_) return;
  if (!message.ok()) {
    if (call_) std::exchange(call_, nullptr)->Cancel();
    return EndStream(message.status());
  }
  std::string frame;
  AppendEnvelope(0, *message, &frame);
  AppendChunk(frame, &out_);
  is_paused_ = Unwritten() > kMaxOutputBytes;
  if (!is_paused_ && call_) call_->ReadOn();
  Flush();
}

void Connection::EndStream(const absl::Status& status) {
  if (is_complete_) return;
  std::string frame;
  AppendEnvelope(kEndStreamFlag, EndOfStream(status), &frame);
  AppendChunk(frame, &out_);
  out_ += kLastChunk;
  is_complete_ = true;
  // A reader that pauses may hold a stream that goes on, but not one that has ended.
  Await(kMaxSilence);
  Flush();
}

// ---- output

void Connection::Flush() {
  if (is_writing_ || state_ == State::kClosed) return;
  if (written_ == writing_.size()) {
    writing_.clear();
    written_ = 0;
    writing_.swap(out_);
  }
  if (writing_.empty()) {
    if (is_complete_) OnAnswered();
    return;
  }
  is_writing_ = true;
  socket_->Write(
      std::string_view(writing_).substr(written_, kWriteBytes),
      [self = shared_from_this()](bool ok, size_t bytes) { self->OnWritten(ok, bytes); });
}

void Connection::OnWritten(bool ok, size_t bytes) {
  is_writing_ = false;
  if (state_ == State::kClosed) return;
  if (!ok) return Close();
  written_ += bytes;
  // A reader of a stream may pause as long as it likes: it holds no more than the bound.
  if (due_ != Clock::time_point::max() && state_ == State::kAnswering) Await(kMaxSilence);
  if (is_paused_ && Unwritten() <= kMaxOutputBytes / 2) {
    is_paused_ = false;
    if (call_) call_->ReadOn();
  }
  Flush();
}

void Connection::OnAnswered() {
  --service_.counts.requests;
  GiveRoomBack();
  // A large answer's memory is freed with it, because the connection may stay open for long.
  out_ = std::string();
  writing_ = std::string();
  written_ = 0;
  call_ = nullptr;
  parser_ = nullptr;
  route_ = std::nullopt;
  refusal_ = std::nullopt;
  is_complete_ = false;
  is_paused_ = false;
  if (closes_ || is_draining_) {
    state_ = State::kClosing;
    in_.clear();
    socket_->EndWrites();
    Await(kMaxLinger);
  } else {
    state_ = State::kWaiting;
    Await(kMaxIdleTime);
    Parse();
  }
  ReadMore();
}

}  // namespace muster::http
