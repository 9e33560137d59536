#include "oidc/https.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "absl/strings/ascii.h"

namespace muster::oidc {
namespace {

constexpr char kLibrary[] = "libcurl.so.4";
constexpr std::string_view kCacheControl = "cache-control:";
constexpr std::string_view kMaxAge = "max-age=";

// Holds the functions of libcurl, which are null until they are loaded.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) get = nullptr;
  decltype(&curl_easy_strerror) words = nullptr;
  decltype(&curl_easy_escape) escape = nullptr;
  decltype(&curl_free) free = nullptr;
  decltype(&curl_slist_append) append = nullptr;
  decltype(&curl_slist_free_all) free_list = nullptr;
  bool is_ready = false;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Curl Load() {
  Curl curl;
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return curl;
  const bool has_all = Find(library, "curl_global_init", &curl.global_init) &&
                       Find(library, "curl_easy_init", &curl.init) &&
                       Find(library, "curl_easy_cleanup", &curl.cleanup) &&
                       Find(library, "curl_easy_setopt", &curl.set) &&
                       Find(library, "curl_easy_perform", &curl.perform) &&
                       Find(library, "curl_easy_getinfo", &curl.get) &&
                       Find(library, "curl_easy_strerror", &curl.words) &&
                       Find(library, "curl_easy_escape", &curl.escape) &&
                       Find(library, "curl_free", &curl.free) &&
                       Find(library, "curl_slist_append", &curl.append) &&
                       Find(library, "curl_slist_free_all", &curl.free_list);
  curl.is_ready = has_all && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return curl;
}

// Called by libcurl with what has come; another count than that of the bytes ends the transfer.
size_t KeepBody(char* data, size_t size, size_t count, void* user) {
  auto* body = static_cast<std::string*>(user);
  const size_t bytes = size * count;
  if (body->size() + bytes > kMaxAnswerBytes) return 0;
  body->append(data, bytes);
  return bytes;
}

// Called by libcurl with each line of the header.
size_t KeepHeader(char* data, size_t size, size_t count, void* user) {
  const size_t bytes = size * count;
  const std::string line = absl::AsciiStrToLower({data, bytes});
  const size_t at = line.find(kMaxAge);
  int64_t seconds = 0;
  if (!line.starts_with(kCacheControl) || at == line.npos) return bytes;
  const auto [_, error] =
      std::from_chars(line.data() + at + kMaxAge.size(), line.data() + line.size(), seconds);
  if (error == std::errc()) static_cast<HttpsAnswer*>(user)->max_age = absl::Seconds(seconds);
  return bytes;
}

// Called by libcurl about once a second; anything but 0 ends the transfer.
int LookForCancel(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(user))() ? 1 : 0;
}

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kSecure = "https://";

// Returns whether the URL has this scheme and names this machine.
bool IsLoopback(std::string_view url, std::string_view scheme) {
  if (!url.starts_with(scheme)) return false;
  url.remove_prefix(scheme.size());
  for (const std::string_view host : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!url.starts_with(host)) continue;
    const std::string_view rest = url.substr(host.size());
    if (rest.empty() || rest.front() == ':' || rest.front() == '/') return true;
  }
  return false;
}

std::string Encode(const Curl& curl, const std::string& text) {
  char* const escaped = curl.escape(nullptr, text.data(), static_cast<int>(text.size()));
  std::string encoded = escaped == nullptr ? "" : escaped;
  curl.free(escaped);
  return encoded;
}

std::string Form(const Curl& curl, const std::vector<std::pair<std::string, std::string>>& form) {
  std::string text;
  for (const auto& [name, value] : form) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, Encode(curl, value));
  }
  return text;
}

using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

Headers HeadersOf(const Curl& curl, const HttpsRequest& request) {
  curl_slist* list = nullptr;
  for (const std::string& line : request.headers) list = curl.append(list, line.c_str());
  return Headers(list, curl.free_list);
}

// `body` outlives the exchange.
void SetBody(const Curl& curl, CURL* handle, const std::string& body) {
  curl.set(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl.set(handle, CURLOPT_POSTFIELDS, body.c_str());
}

absl::Status ErrorOf(CURLcode code, const std::string& url, std::string_view words) {
  if (code == CURLE_WRITE_ERROR) {
    return absl::UnavailableError(
        fmt::format("{}: the answer is longer than {} KiB", url, kMaxAnswerBytes >> 10));
  }
  return absl::UnavailableError(fmt::format("{}: {}", url, words));
}

}  // namespace

absl::Status CheckUrl(std::string_view url) {
  const size_t end = url.find('/', kSecure.size());
  const std::string_view host = url.substr(0, end);
  bool is_good =
      (url.starts_with(kSecure) && host.size() > kSecure.size()) || IsLoopback(url, kPlain);
  for (const char c : url) is_good = is_good && c > ' ' && c < 0x7f;
  if (is_good && host.find('@') == host.npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the URL must be https://HOST..., in ASCII and without a user; http:// is taken for a "
      "loopback address alone");
}

absl::StatusOr<HttpsAnswer> Exchange(const HttpsRequest& request) {
  static const Curl library = Load();
  if (!library.is_ready) {
    return absl::UnavailableError(fmt::format("{} cannot be loaded; install libcurl4", kLibrary));
  }
  if (absl::Status status = CheckUrl(request.url); !status.ok()) return status;
  const std::unique_ptr<CURL, decltype(library.cleanup)> handle(library.init(), library.cleanup);
  if (handle == nullptr) return absl::UnavailableError("libcurl has no memory");
  CURL* const curl = handle.get();
  HttpsAnswer answer;
  char words[CURL_ERROR_SIZE] = "";
  library.set(curl, CURLOPT_URL, request.url.c_str());
  const bool is_plain = IsLoopback(request.url, kPlain);
  library.set(curl, CURLOPT_PROTOCOLS_STR, is_plain ? "http" : "https");
  // No proxy reaches this machine.
  if (is_plain || IsLoopback(request.url, kSecure)) library.set(curl, CURLOPT_PROXY, "");
  library.set(curl, CURLOPT_NOSIGNAL, 1L);
  library.set(curl, CURLOPT_ERRORBUFFER, words);
  library.set(curl, CURLOPT_CONNECTTIMEOUT_MS,
              static_cast<long>(absl::ToInt64Milliseconds(kConnectTimeout)));
  library.set(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(kTimeout)));
  library.set(curl, CURLOPT_WRITEFUNCTION, &KeepBody);
  library.set(curl, CURLOPT_WRITEDATA, &answer.body);
  library.set(curl, CURLOPT_HEADERFUNCTION, &KeepHeader);
  library.set(curl, CURLOPT_HEADERDATA, &answer);
  curl_blob ca{const_cast<char*>(request.ca.data()), request.ca.size(), CURL_BLOB_NOCOPY};
  if (!request.ca.empty()) {
    library.set(curl, CURLOPT_CAINFO_BLOB, &ca);
    library.set(curl, CURLOPT_CAPATH, nullptr);
  }
  if (request.is_cancelled) {
    library.set(curl, CURLOPT_NOPROGRESS, 0L);
    library.set(curl, CURLOPT_XFERINFOFUNCTION, &LookForCancel);
    library.set(curl, CURLOPT_XFERINFODATA, &request.is_cancelled);
    // Else the end of the exchange waits for a name server that does not answer. The thread that
    // asks it ends by itself.
    library.set(curl, CURLOPT_QUICK_EXIT, 1L);
  }
  const std::string form = request.form ? Form(library, *request.form) : "";
  if (request.body || request.form) SetBody(library, curl, request.body ? *request.body : form);
  const Headers headers = HeadersOf(library, request);
  if (headers != nullptr) library.set(curl, CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = library.perform(curl);
  if (code != CURLE_OK)
    return ErrorOf(code, request.url, words[0] != '\0' ? words : library.words(code));
  long status = 0;
  library.get(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  curl_off_t pause = 0;
  library.get(curl, CURLINFO_RETRY_AFTER, &pause);
  if (pause > 0) answer.retry_after = absl::Seconds(pause);
  return answer;
}

}  // namespace muster::oidc
