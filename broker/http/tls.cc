#include "broker/http/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "contract/text.h"
#include "daemon/log.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using AnySocket = asio::generic::stream_protocol::socket;

// The files are checked this often, as by gRPC's network listener.
constexpr std::chrono::seconds kRefresh{1};
// Forward secrecy and authenticated encryption, as gRPC's network listener has it.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

// For clients that offer several protocols, the server chooses HTTP/1.1, the only one here.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11, sizeof(kHttp11) - 1, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

absl::StatusOr<TlsContexts::Context> MakeContext(const TlsFiles& files) {
  Error error;
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_cipher_list(native, kCiphers);
  SSL_CTX_set_alpn_select_cb(native, ChooseProtocol, nullptr);
  context->use_certificate_chain_file(files.certificate, error);
  if (!error) context->use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (!error) return context;
  return absl::FailedPreconditionError(
      ToAbsl(fmt::format("the certificate {} and the key {} cannot be used: {}", files.certificate,
                         files.key, error.message())));
}

class TlsSocket final : public Socket {
 public:
  TlsSocket(TlsContexts::Context context, AnySocket socket)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void Read(char* data, size_t size, Done done) override {
    if (!is_open_) {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [this, data, size, done](const Error& error) {
                                if (error) return done(false, 0);
                                is_open_ = true;
                                Read(data, size, done);
                              });
      return;
    }
    stream_.async_read_some(
        asio::buffer(data, size),
        [done = std::move(done)](const Error& error, size_t bytes) { done(!error, bytes); });
  }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(
        stream_, asio::buffer(bytes.data(), bytes.size()),
        [done = std::move(done)](const Error& error, size_t count) { done(!error, count); });
  }
  // TLS's own end is left out: every answer has its length, or its last chunk.
  void EndWrites() override {
    Error ignored;
    stream_.lowest_layer().shutdown(AnySocket::shutdown_send, ignored);
  }
  void Close() override {
    Error ignored;
    stream_.lowest_layer().close(ignored);
  }

 private:
  const TlsContexts::Context context_;
  asio::ssl::stream<AnySocket> stream_;
  bool is_open_ = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TlsContexts>> TlsContexts::Load(const TlsFiles& files) {
  auto contexts = std::shared_ptr<TlsContexts>(new TlsContexts(files));
  contexts->changed_ = contexts->LookAtFiles();
  contexts->looked_ = std::chrono::steady_clock::now();
  auto context = MakeContext(files);
  if (!context.ok()) return context.status();
  contexts->context_ = *std::move(context);
  return contexts;
}

TlsContexts::Changed TlsContexts::LookAtFiles() const {
  std::error_code ignored;
  return {std::filesystem::last_write_time(files_.certificate, ignored),
          std::filesystem::last_write_time(files_.key, ignored)};
}

TlsContexts::Context TlsContexts::Current() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kRefresh) return context_;
  looked_ = now;
  const Changed changed = LookAtFiles();
  if (changed == changed_) return context_;
  auto context = MakeContext(files_);
  if (context.ok()) {
    context_ = *std::move(context);
    changed_ = changed;
  } else {
    LogEvent(spdlog::level::warn, "http_certificate_unread",
             {{"error", std::string(ToStd(context.status().message()))}});
  }
  return context_;
}

std::unique_ptr<Socket> MakeTlsSocket(TlsContexts::Context context, AnySocket socket) {
  return std::make_unique<TlsSocket>(std::move(context), std::move(socket));
}

}  // namespace muster::http
