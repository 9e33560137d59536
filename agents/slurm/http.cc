#include "agents/slurm/http.h"

#include <curl/curl.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// A queue of twenty thousand jobs fits; more is no answer to one agent.
constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr std::string_view kUnix = "unix:";

struct Cleaner {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, Cleaner>;
using Headers = std::unique_ptr<curl_slist, Cleaner>;

// Called by libcurl with what has come; less than all of it ends the transfer.
size_t Keep(char* data, size_t size, size_t count, void* user) {
  auto* body = static_cast<std::string*>(user);
  const size_t bytes = size * count;
  if (body->size() + bytes > kMaxAnswerBytes) return 0;
  body->append(data, bytes);
  return bytes;
}

Headers MakeHeaders(const HttpRequest& request) {
  std::vector<std::string> lines = request.headers;
  // The empty "Expect" avoids the wait for a "100 Continue".
  lines.insert(lines.end(), {"Accept: application/json", "Expect:"});
  if (!request.body.empty()) lines.emplace_back("Content-Type: application/json");
  curl_slist* list = nullptr;
  for (const std::string& line : lines) list = curl_slist_append(list, line.c_str());
  return Headers(list);
}

absl::Status ErrorOf(CURLcode code, std::string_view url, std::string_view words) {
  const std::string text = fmt::format("{}: {}", url, words);
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::UnavailableError(text);
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(text);
    case CURLE_WRITE_ERROR:
      return absl::AbortedError(
          fmt::format("{}: the answer is longer than {} MiB", url, kMaxAnswerBytes >> 20));
    default:
      return absl::AbortedError(text);
  }
}

class CurlHttp : public Http {
 public:
  explicit CurlHttp(std::string url) : url_(std::move(url)) {
    if (url_.starts_with(kUnix)) {
      socket_ = url_.substr(kUnix.size());
      base_ = "http://localhost";
    } else {
      base_ = url_.ends_with('/') ? url_.substr(0, url_.size() - 1) : url_;
    }
  }

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
    // Each request has a handle of its own: libcurl repeats a request whose kept connection turns
    // out to be dead, and a submission must not be repeated.
    const Handle handle(kStarted == CURLE_OK ? curl_easy_init() : nullptr);
    if (handle == nullptr) return absl::UnavailableError("libcurl cannot be used");
    CURL* curl = handle.get();
    const Headers headers = MakeHeaders(request);
    const std::string url = base_ + request.path;
    HttpResponse response;
    char words[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(absl::ToInt64Milliseconds(kConnectTimeout)));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(absl::ToInt64Milliseconds(request.timeout)));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response.body);
    if (!socket_.empty()) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
    if (!request.body.empty()) {
      curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    const CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK)
      return ErrorOf(code, url_, words[0] != '\0' ? words : curl_easy_strerror(code));
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    return response;
  }

 private:
  // These are constant after construction.
  const std::string url_;
  std::string base_;
  std::string socket_;  // empty: a network address
};

}  // namespace

absl::Status CheckHttpUrl(const std::string& url) {
  bool good = url.starts_with("unix:/") && url.size() > 6;
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = std::string_view(url).substr(scheme.size());
    const size_t slash = rest.find('/');
    good = !rest.empty() && slash != 0 && rest.find('@') == rest.npos &&
           (slash == rest.npos || slash + 1 == rest.size());
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is none of http://HOST:PORT, https://HOST:PORT and unix:/PATH", url));
}

std::unique_ptr<Http> MakeHttp(const std::string& url) { return std::make_unique<CurlHttp>(url); }

}  // namespace muster::slurm
