// HTTP/1.1 and HTTP/2 requests over a few kept connections, driven by one thread.
#ifndef MUSTER_AGENTS_KUBERNETES_API_HTTP_LOOP_H_
#define MUSTER_AGENTS_KUBERNETES_API_HTTP_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// The proof of the server's identity, and the connection's own certificate.
struct HttpTls {
  std::string ca_pem;  // empty: the machine's authorities
  std::string server_name;
  bool skips_verify = false;
  std::string certificate_pem;
  std::string key_pem;
};

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  std::string proxy_url;  // empty: as HTTPS_PROXY and NO_PROXY say
  HttpTls tls;
  // Bounds the whole call. Infinite is for streams.
  absl::Duration timeout = absl::Seconds(30);
  // A call that brings no byte for so long is broken off. Infinite: never. Whole seconds.
  absl::Duration silence = absl::InfiniteDuration();
};

using HttpCallId = uint64_t;

// Takes what one call brings, on the loop's thread: it must not block, nor call the loop's Send.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Comes before all else, on the thread of HttpLoop::Start.
  virtual void OnStart(HttpCallId /*id*/) {}
  // The call goes out a second time, because a kept connection broke before a byte of an answer had
  // come: nobody knows whether the server has heard the first one.
  virtual void OnSentAgain() {}
  // Once, before any byte, as soon as the answer begins. Header names are in small letters.
  virtual void OnStatus(int status, const std::map<std::string, std::string>& headers) = 0;
  // Returns whether OnBytes may be called now. false: the server waits until HttpLoop::Resume.
  virtual bool MayTake() { return true; }
  // Returns false if no more is wanted, and the call ends as CANCELLED.
  virtual bool OnBytes(std::string_view bytes) = 0;
  // Comes last, and once. OK: the answer is whole. UNAVAILABLE: the server was not reached, and has
  // done nothing; FAILED_PRECONDITION: it was, but its certificates do not name it, and nothing was
  // sent; DEADLINE_EXCEEDED and ABORTED: nobody knows what the server has done; CANCELLED.
  virtual void OnEnd(const absl::Status& status) = 0;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
  bool was_sent_again = false;  // see HttpSink::OnSentAgain
};

// Any thread may use it.
class HttpLoop {
 public:
  using CallId = HttpCallId;

  HttpLoop();
  // Ends all calls as CANCELLED.
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  CallId Start(HttpCall call, std::unique_ptr<HttpSink> sink);
  // Its OnEnd follows, unless it has been called.
  void Cancel(CallId id);
  // Its sink may take bytes again.
  void Resume(CallId id);
  // Waits for the whole answer, whatever its status is; errors as in OnEnd, and RESOURCE_EXHAUSTED
  // for one of more than max_bytes. Not from the loop's thread.
  absl::StatusOr<HttpAnswer> Send(HttpCall call, size_t max_bytes);

 private:
  struct Transfer;
  struct Order;
  class Engine;

  void Give(Order order);
  void Run();

  const std::unique_ptr<Engine> engine_;
  Mutex mutex_;
  std::vector<Order> orders_ ABSL_GUARDED_BY(mutex_);
  CallId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_HTTP_LOOP_H_
