#include "clients/cli/access_bundle.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "clients/cli/token_source.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/characters.h"
#include "contract/file_tree.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"
#include "pki/certificates.h"
#include "pki/shown_certificates.h"
#include "rpc/address.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxBundleBytes = pki::kMaxPemBytes + 4096;
constexpr size_t kMaxFileNameBytes = 64;
constexpr mode_t kOwnersOnly = 0600;
// Somebody waits at the command.
constexpr absl::Duration kPinPatience = absl::Seconds(15);

absl::Status Invalid(std::string_view text) { return absl::InvalidArgumentError(ToAbsl(text)); }

// The beginning of the names of a context's own files.
absl::StatusOr<std::string> OwnFiles(const std::string& name, const std::string& contexts_path) {
  const auto is_plain = [](char c) { return contract::IsLetter(c) || contract::IsDigit(c); };
  const bool is_good = !name.empty() && name.size() <= kMaxFileNameBytes &&
                       is_plain(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
                         return is_plain(c) || c == '-' || c == '_' || c == '.';
                       });
  if (!is_good) {
    return Invalid(
        fmt::format("{} cannot be the name of a context with files of its own; use 1 to "
                    "{} letters, digits, '-', '_' and '.', a letter or digit first",
                    contract::Quoted(name), kMaxFileNameBytes));
  }
  const std::string directory = contexts_path.substr(0, contexts_path.rfind('/')) + "/contexts";
  if (absl::Status status = MakeDirectories(directory); !status.ok()) return status;
  return fmt::format("{}/{}", directory, name);
}

absl::StatusOr<rpc::Address> ParseTlsAddress(const std::string& text) {
  absl::StatusOr<rpc::Address> address = rpc::ParseAddress(text);
  if (!address.ok() || address->is_tls) return address;
  return Invalid(fmt::format("broker address {} is not one of TLS; write tls:HOST:PORT",
                             contract::Quoted(text)));
}

}  // namespace

absl::Status CheckHasNetwork(const v1::WhoAmIResponse& me) {
  if (!me.has_network()) {
    return absl::FailedPreconditionError(
        "the broker has no network listener, so that nobody reaches it from another machine; its "
        "operator runs muster-broker init, sets tls.listen and starts it again");
  }
  if (!me.network().ca_certificate().empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(ToAbsl(fmt::format(
      "the broker does not show its CA; its operator adds that certificate to the end of the file "
      "in tls.certificate, or hands it out: muster context set NAME --broker {} --ca-file PATH "
      "--token-file PATH",
      contract::Quoted(me.network().address()))));
}

std::string BundleText(const v1::NetworkAddress& network, std::string_view token) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "broker" << YAML::Value << YAML::DoubleQuoted << network.address();
  out << YAML::Key << "token" << YAML::Value << YAML::DoubleQuoted << std::string(token);
  out << YAML::Key << "ca" << YAML::Value << YAML::Literal << network.ca_certificate();
  out << YAML::EndMap;
  return fmt::format("# Secret. Read by: muster context import NAME\n{}\n", out.c_str());
}

absl::StatusOr<AccessBundle> ReadBundle(std::string_view source, std::string_view text) {
  const auto documents = client::LoadYaml(source, text, kMaxBundleBytes);
  if (!documents.ok()) return documents.status();
  client::YamlReader in(source, text);
  AccessBundle bundle;
  for (const YAML::Node& document : *documents) {
    if (document.IsNull()) continue;
    in.Mapping({document, ""},
               {{"broker", [&](const client::YamlValue& v) { in.Text(v, &bundle.broker); }},
                {"token", [&](const client::YamlValue& v) { in.Text(v, &bundle.token); }},
                {"ca", [&](const client::YamlValue& v) { in.Text(v, &bundle.ca); }}});
  }
  if (!in.status().ok()) return in.status();
  if (bundle.broker.empty() || bundle.token.empty() || bundle.ca.empty()) {
    return Invalid(
        fmt::format("{} is no whole bundle: it needs broker, token and ca; take all "
                    "that muster token create --bundle has written",
                    source));
  }
  if (const auto address = ParseTlsAddress(bundle.broker); !address.ok()) return address.status();
  const absl::StatusOr<std::string> token = CheckToken(bundle.token, source);
  if (!token.ok()) return token.status();
  bundle.token = *token;
  if (absl::Status status = pki::SplitCertificates(bundle.ca).status(); !status.ok()) {
    return Invalid(fmt::format("ca in {} has no whole certificate: {}; take the bundle again",
                               source, ToStd(status.message())));
  }
  return bundle;
}

absl::Status ImportContext(const std::string& name, const std::string& file,
                           const std::string& contexts_path, Contexts* contexts) {
  const absl::StatusOr<std::string> own = OwnFiles(name, contexts_path);
  if (!own.ok()) return own.status();
  const absl::StatusOr<std::string> text = ReadFile(file.empty() ? "-" : file, kMaxBundleBytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<AccessBundle> bundle =
      ReadBundle(file.empty() ? "standard input" : file, *text);
  if (!bundle.ok()) return bundle.status();
  NamedContext context{
      .broker = bundle->broker, .token_file = *own + ".token", .ca_file = *own + ".ca.pem"};
  absl::Status status = WriteFileWhole(context.token_file, bundle->token + "\n", kOwnersOnly);
  if (status.ok()) status = WriteFileWhole(context.ca_file, bundle->ca, kOwnersOnly);
  if (!status.ok()) return status;
  contexts->by_name[name] = std::move(context);
  contexts->current = name;
  return absl::OkStatus();
}

absl::StatusOr<std::string> StoreCaByFingerprint(const std::string& name, const std::string& broker,
                                                 const std::string& fingerprint,
                                                 const std::string& contexts_path) {
  const absl::StatusOr<rpc::Address> address = ParseTlsAddress(broker);
  if (!address.ok()) return address.status();
  // openssl x509 -fingerprint has capitals, and a colon between two bytes.
  std::string digits = absl::AsciiStrToLower(ToAbsl(fingerprint));
  std::erase(digits, ':');
  if (!contract::IsSha256(digits)) {
    return Invalid(
        fmt::format("{} is no fingerprint: it is the SHA-256 of the CA, 64 digits 0-9 "
                    "and a-f; muster whoami on the broker's host shows it",
                    contract::Quoted(fingerprint)));
  }
  const absl::StatusOr<std::string> own = OwnFiles(name, contexts_path);
  if (!own.ok()) return own.status();
  const absl::StatusOr<std::string> ca =
      pki::ShownCa(broker.substr(std::string_view("tls:").size()), digits, kPinPatience);
  if (!ca.ok()) return ca.status();
  std::string path = *own + ".ca.pem";
  if (absl::Status status = WriteFileWhole(path, *ca, kOwnersOnly); !status.ok()) return status;
  return path;
}

}  // namespace muster::cli
