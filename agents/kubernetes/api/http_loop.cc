#include "agents/kubernetes/api/http_loop.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::kubernetes {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
// A connection whose other end is gone without a word is found out within a minute, whether the
// loop waits for it or has something to send; the kernel's own patience is a quarter of an hour.
constexpr long kKeepaliveSeconds = 20;
constexpr unsigned kUnansweredMilliseconds = 60'000;
// It is long enough to cost nothing; a new order wakes the thread.
constexpr int kMaxPollMilliseconds = 60'000;
// Bounds the header lines of one answer; the API server sends ten.
constexpr size_t kMaxHeaders = 200;
// Lower statuses only say that the answer is still to come.
constexpr long kFirstFinalStatus = 200;

struct CleanEasy {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct CleanMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct CleanShare {
  void operator()(CURLSH* share) const { curl_share_cleanup(share); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

long Milliseconds(absl::Duration duration) {
  return duration == absl::InfiniteDuration()
             ? 0
             : static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

// Returns whether the other end hung up while both agreed on TLS: it goes down, or a balancer has
// nothing behind it. libcurl has one code for that and for everything else that may go wrong then.
bool WasHungUp(std::string_view words) {
  return words.find("SSL_ERROR_SYSCALL") != words.npos ||
         words.find("Connection reset") != words.npos || words.find("unexpected eof") != words.npos;
}

// The server at that address is of another kind, or speaks HTTP without TLS.
bool SpeaksNoTls(std::string_view words) {
  return words.find("wrong version number") != words.npos ||
         words.find("packet length too long") != words.npos;
}

absl::Status TlsError(const std::string& text, std::string_view words) {
  if (WasHungUp(words)) return absl::UnavailableError(text);
  if (!SpeaksNoTls(words)) return absl::FailedPreconditionError(text);
  return absl::UnavailableError(
      text +
      "; what answers there does not speak TLS, so it is no API server, or one without https");
}

absl::Status CurlError(CURLcode code, std::string_view url, std::string_view words) {
  const std::string text = fmt::format("{}: {}", url, words);
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return absl::UnavailableError(text);
    case CURLE_SSL_CONNECT_ERROR:
      return TlsError(text, words);
    case CURLE_PEER_FAILED_VERIFICATION:
      return absl::FailedPreconditionError(
          text +
          "; server, certificate-authority and tls-server-name of the kubeconfig must be of "
          "one cluster");
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return absl::FailedPreconditionError(text);
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(text);
    default:
      return absl::AbortedError(text);
  }
}

int OnSocket(void*, curl_socket_t socket, curlsocktype) {
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMilliseconds,
             sizeof kUnansweredMilliseconds);
  return CURL_SOCKOPT_OK;
}

void SetBlob(CURL* curl, CURLoption option, const std::string& text) {
  if (text.empty()) return;
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, option, &blob);
}

void SetTls(CURL* curl, const HttpTls& tls) {
  SetBlob(curl, CURLOPT_CAINFO_BLOB, tls.ca_pem);
  // The authority of the file is the only one.
  if (!tls.ca_pem.empty()) curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  SetBlob(curl, CURLOPT_SSLCERT_BLOB, tls.certificate_pem);
  SetBlob(curl, CURLOPT_SSLKEY_BLOB, tls.key_pem);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, tls.skips_verify ? 0L : 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, tls.skips_verify ? 0L : 2L);
}

// Collects a whole answer for a thread that waits.
class Collector : public HttpSink {
 public:
  Collector(std::promise<absl::StatusOr<HttpAnswer>> promise, size_t max_bytes)
      : promise_(std::move(promise)), max_bytes_(max_bytes) {}

  void OnSentAgain() override { answer_.was_sent_again = true; }
  void OnStatus(int status, const std::map<std::string, std::string>& headers) override {
    answer_.status = status;
    answer_.headers = headers;
  }
  bool OnBytes(std::string_view bytes) override {
    is_too_long_ = answer_.body.size() + bytes.size() > max_bytes_;
    if (!is_too_long_) answer_.body.append(bytes);
    return !is_too_long_;
  }
  void OnEnd(const absl::Status& status) override {
    if (is_too_long_) {
      promise_.set_value(absl::ResourceExhaustedError(
          fmt::format("the answer is longer than {} KiB", max_bytes_ >> 10)));
    } else if (!status.ok()) {
      promise_.set_value(status);
    } else {
      promise_.set_value(std::move(answer_));
    }
  }

 private:
  std::promise<absl::StatusOr<HttpAnswer>> promise_;
  const size_t max_bytes_;
  HttpAnswer answer_;
  bool is_too_long_ = false;
};

}  // namespace

// Describes one call under way.
struct HttpLoop::Transfer {
  CallId id = 0;
  HttpCall call;
  std::unique_ptr<HttpSink> sink;
  std::shared_ptr<CURLSH> connections;  // that it may use; outlives `curl`
  std::unique_ptr<CURL, CleanEasy> curl;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::unique_ptr<curl_slist, FreeList> connect_to;
  char words[CURL_ERROR_SIZE] = "";
  std::map<std::string, std::string> answer_headers;
  bool was_sent = false;
  bool has_status = false;
  bool is_unwanted = false;

  long Status() const {
    long status = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  void TellStatus() {
    if (!std::exchange(has_status, true))
      sink->OnStatus(static_cast<int>(Status()), answer_headers);
  }
};

struct HttpLoop::Order {
  CallId id = 0;
  std::unique_ptr<Transfer> transfer = {};  // begins
  bool resumes = false;                     // neither: is canceled
};

namespace {

void TakeHeader(std::string_view line, std::map<std::string, std::string>* headers) {
  // Each answer of a redirection or a proxy begins anew.
  if (line.starts_with("HTTP/")) headers->clear();
  const size_t colon = line.find(':');
  if (colon == line.npos || headers->size() >= kMaxHeaders) return;
  const std::string name = absl::AsciiStrToLower({line.data(), colon});
  const std::string_view value = line.substr(colon + 1);
  (*headers)[name] = std::string(absl::StripAsciiWhitespace({value.data(), value.size()}));
}

}  // namespace

// The part of the loop that its thread alone touches, but for Wake.
class HttpLoop::Engine {
 public:
  Engine() {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    multi_.reset(started == CURLE_OK ? curl_multi_init() : nullptr);
    curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
    ConnectAnew();
  }

  void Wake() { curl_multi_wakeup(multi_.get()); }

  void Add(std::unique_ptr<Transfer> transfer) {
    transfer->curl.reset(curl_easy_init());
    if (transfer->curl == nullptr || multi_ == nullptr) {
      transfer->sink->OnEnd(absl::UnavailableError("libcurl cannot be used"));
      return;
    }
    transfer->connections = connections_;
    curl_easy_setopt(transfer->curl.get(), CURLOPT_SHARE, connections_.get());
    SetUp(transfer.get());
    curl_multi_add_handle(multi_.get(), transfer->curl.get());
    transfers_.emplace(transfer->id, std::move(transfer));
  }

  void Cancel(CallId id) {
    if (const auto found = transfers_.find(id); found != transfers_.end())
      End(found, absl::CancelledError("the call was broken off"));
  }

  void Resume(CallId id) {
    if (const auto found = transfers_.find(id); found != transfers_.end())
      curl_easy_pause(found->second->curl.get(), CURLPAUSE_CONT);
  }

  void CancelAll() {
    while (!transfers_.empty()) Cancel(transfers_.begin()->first);
  }

  // Moves all calls on; returns when something has come, or Wake was called.
  void Turn() {
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg == CURLMSG_DONE) Finish(message->easy_handle, message->data.result);
    }
    curl_multi_poll(multi_.get(), nullptr, 0, kMaxPollMilliseconds, nullptr);
  }

 private:
  using Transfers = std::map<CallId, std::unique_ptr<Transfer>>;

  // From now on calls have connections of their own; those under way keep theirs.
  void ConnectAnew() {
    connections_.reset(curl_share_init(), CleanShare());
    curl_share_setopt(connections_.get(), CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
  }

  static int OnSend(void* user, char*, char*, int, int) {
    auto* transfer = static_cast<Transfer*>(user);
    if (std::exchange(transfer->was_sent, true)) transfer->sink->OnSentAgain();
    return CURL_PREREQFUNC_OK;
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    const std::string_view line(data, size * count);
    TakeHeader(line, &transfer->answer_headers);
    // The head is whole. A stream's first byte may be a minute later.
    if (line == "\r\n" && transfer->Status() >= kFirstFinalStatus) transfer->TellStatus();
    return size * count;
  }

  static size_t OnBytes(char* data, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    transfer->TellStatus();
    if (!transfer->sink->MayTake()) return CURL_WRITEFUNC_PAUSE;
    if (transfer->sink->OnBytes({data, size * count})) return size * count;
    transfer->is_unwanted = true;
    return CURL_WRITEFUNC_ERROR;
  }

  static std::string InEnvironment(const char* name, const char* other_name) {
    for (const char* each : {name, other_name}) {
      const char* value = std::getenv(each);
      if (value != nullptr && *value != '\0') return value;
    }
    return "";
  }

  // Chooses the proxy as kubectl does: the kubeconfig's, whatever NO_PROXY says, or else that of
  // the environment, which is read as Go reads it. libcurl itself would not know HTTP_PROXY, and go
  // by ALL_PROXY. Source: golang.org/x/net/http/httpproxy. The hosts of NO_PROXY are libcurl's
  // matter.
  static void SetProxy(CURL* curl, const HttpCall& call) {
    std::string proxy = call.proxy_url;
    if (!proxy.empty()) {
      curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
    } else if (!IsOfThisMachine(call.url)) {
      proxy = call.url.starts_with("https:") ? InEnvironment("HTTPS_PROXY", "https_proxy")
                                             : InEnvironment("HTTP_PROXY", "http_proxy");
    }
    curl_easy_setopt(curl, CURLOPT_PROXY, proxy.c_str());
  }

  // kubectl asks no proxy of the environment for these hosts, whatever NO_PROXY says; so does this.
  static bool IsOfThisMachine(const std::string& text) {
    CURLU* url = curl_url();
    char* host = nullptr;
    bool is_so = false;
    if (curl_url_set(url, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
      const std::string_view name = host;
      is_so = name == "localhost" || name == "[::1]" || name.starts_with("127.");
    }
    curl_free(host);
    curl_url_cleanup(url);
    return is_so;
  }

  static void SetUp(Transfer* transfer) {
    CURL* curl = transfer->curl.get();
    const HttpCall& call = transfer->call;
    std::vector<std::string> lines = call.headers;
    lines.emplace_back("Expect:");  // no waiting for a "100 Continue"
    curl_slist* list = nullptr;
    for (const std::string& line : lines) list = curl_slist_append(list, line.c_str());
    transfer->headers.reset(list);
    curl_easy_setopt(curl, CURLOPT_URL, call.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    SetProxy(curl, call);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(curl, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, kKeepaliveSeconds);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, kKeepaliveSeconds);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, &OnSocket);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->words);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transfer->headers.get());
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(kConnectTimeout));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, Milliseconds(call.timeout));
    if (call.silence != absl::InfiniteDuration()) {
      curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
      curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                       static_cast<long>(absl::ToInt64Seconds(call.silence)));
    }
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, &Engine::OnSend);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Engine::OnBytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Engine::OnHeader);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (!call.body.empty()) {
      curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.data());
      curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(call.body.size()));
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
    SetTls(curl, call.tls);
    SetServerName(transfer);
  }

  // The name goes into the URL, so that the certificate is checked against it, and the connection
  // is made to the server's own address.
  static void SetServerName(Transfer* transfer) {
    const HttpCall& call = transfer->call;
    if (call.tls.server_name.empty()) return;
    CURLU* url = curl_url();
    char* host = nullptr;
    char* port = nullptr;
    char* renamed = nullptr;
    if (curl_url_set(url, CURLUPART_URL, call.url.c_str(), 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_HOST, call.tls.server_name.c_str(), 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &renamed, 0) == CURLUE_OK) {
      const std::string line = fmt::format("{}:{}:{}:{}", call.tls.server_name, port, host, port);
      transfer->connect_to.reset(curl_slist_append(nullptr, line.c_str()));
      curl_easy_setopt(transfer->curl.get(), CURLOPT_URL, renamed);
      curl_easy_setopt(transfer->curl.get(), CURLOPT_CONNECT_TO, transfer->connect_to.get());
    }
    curl_free(host);
    curl_free(port);
    curl_free(renamed);
    curl_url_cleanup(url);
  }

  void Finish(CURL* curl, CURLcode code) {
    Transfer* transfer = nullptr;
    curl_easy_getinfo(curl, CURLINFO_PRIVATE, &transfer);
    const auto found = transfers_.find(transfer->id);
    if (transfer->is_unwanted) {
      End(found, absl::CancelledError("no more was wanted"));
      return;
    }
    // After each 401 the server ends the connection, and libcurl may not read what came before
    // that. The status is all that this answer says.
    if (transfer->Status() == 401 && code == CURLE_PARTIAL_FILE) code = CURLE_OK;
    // The connection has broken, or its other end is gone without a word: others would wait there.
    if (code != CURLE_OK && transfer->connections == connections_) ConnectAnew();
    if (code == CURLE_OK) transfer->TellStatus();
    End(found, CurlError(code, transfer->call.url,
                         transfer->words[0] != '\0' ? transfer->words : curl_easy_strerror(code)));
  }

  void End(Transfers::iterator found, const absl::Status& status) {
    const std::unique_ptr<Transfer> transfer = std::move(found->second);
    transfers_.erase(found);
    curl_multi_remove_handle(multi_.get(), transfer->curl.get());
    transfer->sink->OnEnd(status);
  }

  std::unique_ptr<CURLM, CleanMulti> multi_;
  std::shared_ptr<CURLSH> connections_;  // of new calls
  Transfers transfers_;
};

HttpLoop::HttpLoop() : engine_(std::make_unique<Engine>()), thread_([this] { Run(); }) {}

HttpLoop::~HttpLoop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  engine_->Wake();
  thread_.join();
}

HttpLoop::CallId HttpLoop::Start(HttpCall call, std::unique_ptr<HttpSink> sink) {
  auto transfer = std::make_unique<Transfer>();
  transfer->call = std::move(call);
  transfer->sink = std::move(sink);
  CallId id = 0;
  {
    const MutexLock lock(mutex_);
    id = ++last_id_;
    transfer->id = id;
    transfer->sink->OnStart(id);
    orders_.push_back({id, std::move(transfer)});
  }
  engine_->Wake();
  return id;
}

void HttpLoop::Cancel(CallId id) { Give({.id = id}); }

void HttpLoop::Resume(CallId id) { Give({.id = id, .resumes = true}); }

void HttpLoop::Give(Order order) {
  {
    const MutexLock lock(mutex_);
    orders_.push_back(std::move(order));
  }
  engine_->Wake();
}

absl::StatusOr<HttpAnswer> HttpLoop::Send(HttpCall call, size_t max_bytes) {
  std::promise<absl::StatusOr<HttpAnswer>> promise;
  std::future<absl::StatusOr<HttpAnswer>> answer = promise.get_future();
  Start(std::move(call), std::make_unique<Collector>(std::move(promise), max_bytes));
  return answer.get();
}

void HttpLoop::Run() {
  while (true) {
    std::vector<Order> orders;
    bool stopping = false;
    {
      const MutexLock lock(mutex_);
      orders.swap(orders_);
      stopping = stopping_;
    }
    for (Order& order : orders) {
      if (order.transfer != nullptr) {
        engine_->Add(std::move(order.transfer));
      } else if (order.resumes) {
        engine_->Resume(order.id);
      } else {
        engine_->Cancel(order.id);
      }
    }
    if (stopping) {
      engine_->CancelAll();
      return;
    }
    engine_->Turn();
  }
}

}  // namespace muster::kubernetes
