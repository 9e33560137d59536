#include "broker/rpc/http_settings.h"

#include <fmt/format.h>

#include <string>

#include "absl/strings/str_split.h"
#include "broker/http/cors.h"
#include "broker/http/hosts.h"
#include "broker/rpc/listen_address.h"
#include "contract/text.h"

namespace muster::broker {
namespace {

// A path is a Unix socket.
absl::Status SetHttpListen(const std::string& value, std::string* listen) {
  if (value.empty() || value.starts_with('/')) {
    *listen = value;
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> address = CheckHttpListenAddress(value);
  if (!address.ok()) return address.status();
  *listen = *std::move(address);
  return absl::OkStatus();
}

absl::Status SetHttpTlsListen(const std::string& value, std::string* listen) {
  if (value.empty()) {
    listen->clear();
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> address = CheckTlsListenAddress(value);
  if (!address.ok()) return address.status();
  *listen = *std::move(address);
  return absl::OkStatus();
}

absl::Status SetOrigins(const std::string& value, std::vector<std::string>* origins) {
  origins->clear();
  for (const absl::string_view part : absl::StrSplit(ToAbsl(value), ',', absl::SkipWhitespace())) {
    const std::string origin(absl::StripAsciiWhitespace(part));
    if (absl::Status status = http::CheckOrigin(origin); !status.ok()) return status;
    origins->push_back(origin);
  }
  return absl::OkStatus();
}

absl::Status SetHosts(const std::string& value, std::vector<std::string>* hosts) {
  hosts->clear();
  for (const absl::string_view part : absl::StrSplit(ToAbsl(value), ',', absl::SkipWhitespace())) {
    const std::string host(absl::StripAsciiWhitespace(part));
    if (absl::Status status = http::CheckHost(host); !status.ok()) return status;
    hosts->push_back(host);
  }
  return absl::OkStatus();
}

absl::Status SetOpenMetrics(const std::string& value, bool* is_open) {
  if (value != "true" && value != "false") {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("\"{}\" is neither true nor false", value)));
  }
  *is_open = value == "true";
  return absl::OkStatus();
}

}  // namespace

std::vector<Setting> HttpSettings(Config* config) {
  http::HttpOptions* const http = &config->broker.http;
  return {
      {"http.listen",
       "where HTTP is served on this machine: loopback HOST:PORT, or the absolute path of a Unix "
       "socket [none]",
       [http](const std::string& value) { return SetHttpListen(value, &http->listen); }},
      {"http.tls_listen",
       "address for HTTP from other machines, IP:PORT, with the certificate of tls.listen, which "
       "it needs [none]",
       [http](const std::string& value) { return SetHttpTlsListen(value, &http->tls_listen); }},
      {.key = "http.allowed_origins",
       .help = "origins whose pages may call over HTTP, https://a.example,http://b.example [none]",
       .set =
           [http](const std::string& value) { return SetOrigins(value, &http->allowed_origins); },
       .is_list = true},
      {.key = "http.allowed_hosts",
       .help = "names by which http.listen may be asked for what needs no token, beside localhost, "
               "the machine's own name and addresses [none]",
       .set = [http](const std::string& value) { return SetHosts(value, &http->allowed_hosts); },
       .is_list = true},
      {"http.open_metrics",
       "whether /metrics answers callers without a token, true or false [false]",
       [http](const std::string& value) { return SetOpenMetrics(value, &http->open_metrics); }},
  };
}

absl::Status CheckHttp(const Config& config) {
  if (config.broker.http.tls_listen.empty() || !config.broker.tls.listen.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "http.tls_listen is set and tls.listen is not: HTTP from other machines uses the "
      "certificate that tls.listen has; set both");
}

}  // namespace muster::broker
