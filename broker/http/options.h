// The settings of the HTTP server.
#ifndef MUSTER_BROKER_HTTP_OPTIONS_H_
#define MUSTER_BROKER_HTTP_OPTIONS_H_

#include <string>
#include <vector>

#include "broker/http/page.h"

namespace muster::http {

struct TlsFiles {
  std::string certificate;  // with its chain, PEM
  std::string key;          // PEM
};

struct HttpOptions {
  // The path of a Unix socket, or IP:PORT of this machine alone; empty: none.
  std::string listen;
  std::string tls_listen;  // IP:PORT; empty: none
  // Pages of these origins may call, besides those of the broker's own host.
  std::vector<std::string> allowed_origins;
  // Names by which anybody may ask `listen` for what needs no credential, beside localhost and
  // addresses.
  std::vector<std::string> allowed_hosts;
  // /metrics answers callers without a token, too.
  bool open_metrics = false;
  // The web page; without files none is served.
  Page page = {};
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_OPTIONS_H_
