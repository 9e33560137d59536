// TLS for the sockets of net.cc, which alone includes it.
#ifndef MUSTER_BROKER_HTTP_TLS_H_
#define MUSTER_BROKER_HTTP_TLS_H_

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "broker/http/net.h"
#include "broker/http/options.h"

namespace muster::http {

// Has the certificate and the key, and reads them again when their files have changed. One thread.
class TlsContexts {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  // Returns FAILED_PRECONDITION if the files cannot be used.
  static absl::StatusOr<std::shared_ptr<TlsContexts>> Load(const TlsFiles& files);

  // Returns the context for the next handshake. If the new files cannot be used, the previous ones
  // stay in use.
  Context Current();

 private:
  explicit TlsContexts(TlsFiles files) : files_(std::move(files)) {}

  using Changed = std::pair<std::filesystem::file_time_type, std::filesystem::file_time_type>;
  Changed LookAtFiles() const;

  const TlsFiles files_;
  Context context_;
  Changed changed_;
  std::chrono::steady_clock::time_point looked_;
};

// The handshake begins with the first read.
std::unique_ptr<Socket> MakeTlsSocket(TlsContexts::Context context,
                                      boost::asio::generic::stream_protocol::socket socket);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_TLS_H_
