// Requests of HTTP/1.1, parsed as their bytes come. Boost.Beast is behind it, in one file.
#ifndef MUSTER_BROKER_HTTP_REQUEST_H_
#define MUSTER_BROKER_HTTP_REQUEST_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::http {

// A token and a few names, as in gRPC's listeners; browsers add some of their own.
inline constexpr size_t kMaxHeadBytes = 16 << 10;
// gRPC's largest message here, and the head of its frame.
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

  // Takes bytes, as many as it can use, and says in `used` how many. kHead is returned once, before
  // a byte of the body is taken.
  Parsed Feed(std::string_view bytes, size_t* used);

  // After kHead: a body of more bytes is too large, as one above kMaxBodyBytes is.
  void BoundBody(size_t bytes);
  // After kHead. After kBodyTooLarge it has what came before the body.
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
