// Parses HTTP/1.1 requests as their bytes come. Only request.cc knows Boost.Beast.
#ifndef MUSTER_BROKER_HTTP_REQUEST_H_
#define MUSTER_BROKER_HTTP_REQUEST_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::http {

// This is enough for a token and a few names, as in gRPC's listeners, and the headers that browsers
// add.
inline constexpr size_t kMaxHeadBytes = 16 << 10;
// This is gRPC's largest message here, plus the head of its frame.
inline constexpr size_t kMaxBodyBytes = (16 << 20) + 5;

// The head of a request.
struct Head {
  std::string method;  // "POST"
  std::string path;    // without the query
  bool is_http11 = false;
  bool keeps_alive = false;
  std::optional<size_t> content_length;
  bool has_body = false;
  std::vector<std::string> credentials;  // each value of Authorization
  std::string host;
  std::string origin;
  std::string content_type;
  std::string accept_encoding;
  std::string if_none_match;
  std::string content_encoding;  // of a stream, Connect-Content-Encoding
  std::string expect;
  std::string protocol_version;  // Connect-Protocol-Version
  std::string timeout_ms;        // Connect-Timeout-Ms
};

enum class Parsed { kNeedsMore, kHead, kAll, kMalformed, kHeadTooLarge, kBodyTooLarge };

// One request. One thread.
class RequestParser {
 public:
  RequestParser();
  ~RequestParser();

  // Takes as many bytes as it can use, and stores their number in `used`. Returns kHead once,
  // before it takes a byte of the body.
  Parsed Feed(std::string_view bytes, size_t* used);

  // Call it after kHead: it makes a body of more bytes too large, as one above kMaxBodyBytes is.
  void BoundBody(size_t bytes);
  // Valid after kHead. After kBodyTooLarge it has the head alone.
  const Head& head() const { return head_; }
  // After kAll.
  std::string TakeBody();

 private:
  struct Beast;

  void ReadHead();
  bool IsPlainHead() const;

  std::unique_ptr<Beast> beast_;
  Head head_;
  bool has_head_ = false;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_REQUEST_H_
