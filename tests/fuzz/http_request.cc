// The bytes that a connection over HTTP brings: a request, in pieces, its route, the frames of its
// body, and its JSON.
#include <algorithm>
#include <string>
#include <variant>

#include "broker/http/codec.h"
#include "broker/http/cors.h"
#include "broker/http/envelope.h"
#include "broker/http/error_body.h"
#include "broker/http/json_codec.h"
#include "broker/http/methods.h"
#include "broker/http/request.h"
#include "broker/http/route.h"
#include "muster/v1/jobs_service.pb.h"
#include "tests/fuzz/input.h"

namespace {

namespace http = muster::http;

struct Read {
  http::Parsed parsed = http::Parsed::kNeedsMore;
  size_t left = 0;  // bytes behind the request
  std::string body;
};

// Feeds the bytes as they come over a connection, in pieces of a size.
Read ReadRequest(std::string_view bytes, size_t piece) {
  http::RequestParser parser;
  Read read;
  std::string in;
  while (read.parsed == http::Parsed::kNeedsMore || read.parsed == http::Parsed::kHead) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    in += next;
    size_t used = 0;
    read.parsed = parser.Feed(in, &used);
    muster::fuzz::Require(used <= in.size(), "no more is used than there is");
    in.erase(0, used);
    if (read.parsed == http::Parsed::kNeedsMore && bytes.empty()) break;
  }
  if (read.parsed == http::Parsed::kAll) read.body = parser.TakeBody();
  read.left = in.size() + bytes.size();
  return read;
}

void ReadBody(std::string_view body) {
  // The name is asked of the type, so that the linker keeps the type.
  static const std::string type = muster::v1::SubmitJobRequest::descriptor()->full_name();
  const auto frames = http::SplitEnvelopes(body);
  if (frames.ok()) {
    std::string again;
    for (const std::string_view frame : *frames) http::AppendEnvelope(0, frame, &again);
    muster::fuzz::Require(again == body, "frames are what was taken apart");
  }
  const auto bytes = http::FromJson(type, body);
  if (!bytes.ok()) {
    static_cast<void>(http::ErrorBody(bytes.status()));
    return;
  }
  muster::fuzz::Require(http::ToJson(type, *bytes).ok(), "what was read can be written");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const http::Methods methods({"muster.v1.JobsService"});
  static const http::Cors cors({"https://page.example"});
  const std::string text(muster::fuzz::TextOf(data, size));

  const Read whole = ReadRequest(text, std::max<size_t>(text.size(), 1));
  const Read slow = ReadRequest(text, 7);
  if (whole.parsed == http::Parsed::kAll) {
    muster::fuzz::Require(slow.parsed == http::Parsed::kAll && slow.body == whole.body,
                          "pieces make the same request");
    muster::fuzz::Require(slow.left == whole.left, "pieces end where the whole ends");
    ReadBody(whole.body);
  }
  ReadBody(text);
  http::RequestParser parser;
  size_t used = 0;
  if (parser.Feed(text, &used) == http::Parsed::kHead) {
    const auto decided = http::RouteOf(parser.head(), methods, cors, {});
    if (const auto* refusal = std::get_if<http::Refusal>(&decided)) {
      muster::fuzz::Require(!refusal->status.ok() && refusal->http_status >= 400,
                            "a refusal is an error");
    }
  }
  return 0;
}
