#include "broker/http/request.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <iterator>
#include <utility>

namespace muster::http {
namespace {

namespace beast = boost::beast;

std::string Text(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct RequestParser::Beast {
  beast::http::request_parser<beast::http::string_body> parser;
};

RequestParser::RequestParser() : beast_(std::make_unique<Beast>()) {
  beast_->parser.header_limit(kMaxHeadBytes);
  beast_->parser.body_limit(kMaxBodyBytes);
}

RequestParser::~RequestParser() = default;

Parsed RequestParser::Feed(std::string_view bytes, size_t* used) {
  namespace http = beast::http;
  auto& parser = beast_->parser;
  *used = 0;
  while (!parser.is_done()) {
    beast::error_code error;
    const std::string_view rest = bytes.substr(*used);
    // The parser asks for no empty buffer.
    if (rest.empty()) return Parsed::kNeedsMore;
    const size_t taken = parser.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    *used += taken;
    if (parser.is_header_done() && !std::exchange(has_head_, true)) {
      ReadHead();
      if (!IsPlainHead()) return Parsed::kMalformed;
      parser.eager(true);
      return Parsed::kHead;
    }
    if (error == http::error::need_more) return Parsed::kNeedsMore;
    if (error == http::error::header_limit) return Parsed::kHeadTooLarge;
    if (error == http::error::body_limit) {
      if (!std::exchange(has_head_, true)) ReadHead();
      return Parsed::kBodyTooLarge;
    }
    if (error) return Parsed::kMalformed;
    if (taken == 0 && !parser.is_done()) return Parsed::kNeedsMore;
  }
  return Parsed::kAll;
}

// A proxy in front and this parser must see the same requests (RFC 9112, sections 3.2 and 6.3):
// Beast takes a coding that it does not know for none, and the body for the next request.
bool RequestParser::IsPlainHead() const {
  namespace http = beast::http;
  const auto& message = beast_->parser.get();
  const auto [begin, end] = message.equal_range(http::field::transfer_encoding);
  const bool is_known =
      begin == end || (std::next(begin) == end && beast::iequals(begin->value(), "chunked"));
  const size_t hosts = message.count(http::field::host);
  return is_known && (hosts == 1 || (hosts == 0 && message.version() < 11));
}

void RequestParser::BoundBody(size_t bytes) { beast_->parser.body_limit(bytes); }

void RequestParser::ReadHead() {
  namespace http = beast::http;
  const auto& parser = beast_->parser;
  const auto& message = parser.get();
  const auto value = [&message](beast::string_view name) { return Text(message[name]); };
  const std::string target = Text(message.target());
  head_.method = Text(message.method_string());
  head_.path = target.substr(0, target.find('?'));
  head_.is_http11 = message.version() == 11;
  head_.keeps_alive = message.keep_alive();
  // A body that is too large is noticed before Beast reports the head as done.
  if (parser.is_header_done()) {
    if (const auto length = parser.content_length()) head_.content_length = *length;
  }
  head_.has_body = message.chunked() || head_.content_length.value_or(0) > 0;
  const auto [begin, end] = message.equal_range(http::field::authorization);
  for (auto field = begin; field != end; ++field) head_.credentials.push_back(Text(field->value()));
  head_.host = value("Host");
  head_.origin = value("Origin");
  head_.content_type = value("Content-Type");
  head_.accept_encoding = value("Accept-Encoding");
  head_.if_none_match = value("If-None-Match");
  head_.content_encoding = value("Content-Encoding");
  if (head_.content_encoding.empty()) head_.content_encoding = value("Connect-Content-Encoding");
  head_.expect = value("Expect");
  head_.protocol_version = value("Connect-Protocol-Version");
  head_.timeout_ms = value("Connect-Timeout-Ms");
}

std::string RequestParser::TakeBody() { return std::move(beast_->parser.get().body()); }

}  // namespace muster::http
