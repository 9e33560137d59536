#include "agents/hosts/ssh_auth.h"

#include <libssh2.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agents/hosts/ssh_agent_sign.h"
#include "agents/hosts/ssh_key_file.h"
#include "agents/hosts/ssh_rsa_key.h"
#include "agents/hosts/steady_now.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// sshd hangs up after 6 refused keys by default (MaxAuthTries), the question for its methods being
// one of them.
constexpr int kMaxAgentKeys = 5;

struct Credentials {
  std::string methods;  // that the host takes
  absl::Duration until;

  absl::Duration left() const { return until - SteadyNow(); }
};

absl::Status Denied(const SshConfig& config, const SshSession& session,
                    const Credentials& credentials, std::string_view what) {
  return absl::PermissionDeniedError(fmt::format(
      "{} does not let {} in: {} (it takes: {}). Add the public key to ~{}/.ssh/authorized_keys "
      "there",
      session.host().ToString(), config.user, what, credentials.methods, config.user));
}

// Asks for the methods. True: the host lets the user in without any.
absl::StatusOr<bool> AskMethods(const SshConfig& config, SshSession* session,
                                Credentials* credentials) {
  const char* methods = nullptr;
  const absl::StatusOr<int> rc = session->Repeat("logging in", credentials->left(), [&] {
    methods = libssh2_userauth_list(session->raw(), config.user.data(),
                                    static_cast<unsigned>(config.user.size()));
    return methods == nullptr ? libssh2_session_last_errno(session->raw()) : 0;
  });
  if (!rc.ok()) return rc.status();
  if (methods == nullptr) {
    if (libssh2_userauth_authenticated(session->raw()) != 0) return true;
    return session->Fault("it does not say how to log in");
  }
  credentials->methods = methods;
  return false;
}

using Signer = std::function<std::optional<std::string>(std::string_view data)>;

// Called by libssh2, which frees the signature.
int SignFor(LIBSSH2_SESSION*, unsigned char** signature, size_t* size, const unsigned char* data,
            size_t data_size, void** signer) {
  const std::optional<std::string> made =
      (*static_cast<const Signer*>(*signer))({reinterpret_cast<const char*>(data), data_size});
  if (!made.has_value()) return -1;
  *signature = static_cast<unsigned char*>(std::malloc(made->size()));
  if (*signature == nullptr) return -1;
  std::copy(made->begin(), made->end(), *signature);
  *size = made->size();
  return 0;
}

// Logs in with a public key as AsSha2Key makes it. Returns libssh2's code; 0: the host lets the
// user in.
absl::StatusOr<int> LogInWithSha2(const SshConfig& config, SshSession* session,
                                  const Credentials& credentials, const std::string& public_key,
                                  const Signer& signer) {
  void* abstract = const_cast<Signer*>(&signer);
  return session->Repeat("logging in", credentials.left(), [&] {
    return libssh2_userauth_publickey(session->raw(), config.user.c_str(),
                                      reinterpret_cast<const unsigned char*>(public_key.data()),
                                      public_key.size(), &SignFor, &abstract);
  });
}

absl::StatusOr<int> LogInWithKey(const SshConfig& config, SshSession* session,
                                 const Credentials& credentials, const std::string& key) {
  if (const std::optional<RsaKey> rsa = RsaKey::Parse(key)) {
    const absl::StatusOr<int> rc =
        LogInWithSha2(config, session, credentials, rsa->public_key(),
                      [&](std::string_view data) { return rsa->Sign(data); });
    if (!rc.ok() || *rc == 0 || session->is_broken()) return rc;
    // A server from before 2016 knows SHA-1 only.
  }
  return session->Repeat("logging in", credentials.left(), [&] {
    return libssh2_userauth_publickey_frommemory(session->raw(), config.user.data(),
                                                 config.user.size(), nullptr, 0, key.data(),
                                                 key.size(), "");
  });
}

absl::Status LogInWithFile(const SshConfig& config, SshSession* session,
                           const Credentials& credentials) {
  const absl::StatusOr<std::string> key = ReadKeyFile(config.key_file);
  if (!key.ok()) return key.status();
  const absl::StatusOr<int> rc = LogInWithKey(config, session, credentials, *key);
  if (!rc.ok()) return rc.status();
  if (*rc == 0) return absl::OkStatus();
  if (session->is_broken()) return session->Fault("logging in failed");
  if (*rc != LIBSSH2_ERROR_AUTHENTICATION_FAILED && *rc != LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED) {
    const absl::Status fault = session->Fault("reading the key");
    return absl::FailedPreconditionError(fmt::format(
        "the SSH key \"{}\" cannot be used ({}); make one that can: ssh-keygen -t ed25519 -N ''",
        config.key_file, std::string(fault.message().data(), fault.message().size())));
  }
  return Denied(config, *session, credentials,
                fmt::format("it refuses the key \"{}\"", config.key_file));
}

class Agent {
 public:
  explicit Agent(LIBSSH2_SESSION* session) : agent_(libssh2_agent_init(session)) {}
  ~Agent() {
    if (agent_ == nullptr) return;
    libssh2_agent_disconnect(agent_);
    libssh2_agent_free(agent_);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  bool Connect(const std::string& socket) {
    if (agent_ == nullptr) return false;
    libssh2_agent_set_identity_path(agent_, socket.c_str());
    return libssh2_agent_connect(agent_) == 0 && libssh2_agent_list_identities(agent_) == 0;
  }
  // Returns the key behind `previous`, or the first one if that is null; null if there is none.
  libssh2_agent_publickey* Next(libssh2_agent_publickey* previous) {
    libssh2_agent_publickey* key = nullptr;
    return libssh2_agent_get_identity(agent_, &key, previous) == 0 ? key : nullptr;
  }
  // RSA keys sign by SHA-2 alone, because one more try for each would make sshd hang up before the
  // right key.
  absl::StatusOr<int> LogIn(const SshConfig& config, SshSession* session,
                            const Credentials& credentials, libssh2_agent_publickey* key) {
    const std::string_view blob(reinterpret_cast<const char*>(key->blob), key->blob_len);
    if (const std::optional<std::string> sha2 = AsSha2Key(blob)) {
      return LogInWithSha2(config, session, credentials, *sha2, [&](std::string_view data) {
        const absl::StatusOr<std::string> signature =
            SignWithAgent(config.agent_socket, blob, data, credentials.left());
        return signature.ok() ? std::optional(*signature) : std::nullopt;
      });
    }
    return session->Repeat("logging in", credentials.left(), [&] {
      return libssh2_agent_userauth(agent_, config.user.c_str(), key);
    });
  }

 private:
  LIBSSH2_AGENT* agent_;
};

absl::Status LogInWithAgent(const SshConfig& config, SshSession* session,
                            const Credentials& credentials) {
  Agent agent(session->raw());
  if (!agent.Connect(config.agent_socket)) {
    return absl::FailedPreconditionError(
        fmt::format("ssh-agent does not answer at \"{}\"; start it and ssh-add the key, or set "
                    "ssh_key to a key's file",
                    config.agent_socket));
  }
  int tried = 0;
  for (libssh2_agent_publickey* key = agent.Next(nullptr); key != nullptr && tried < kMaxAgentKeys;
       key = agent.Next(key)) {
    ++tried;
    const absl::StatusOr<int> rc = agent.LogIn(config, session, credentials, key);
    if (!rc.ok()) return rc.status();
    if (*rc == 0) return absl::OkStatus();
    if (!session->is_broken()) continue;
    if (tried == 1) return session->Fault("logging in failed");
    return Denied(config, *session, credentials,
                  fmt::format("it hung up after {} keys of ssh-agent", tried));
  }
  return Denied(config, *session, credentials,
                fmt::format("it refuses the {} keys of ssh-agent that were tried (at most {})",
                            tried, kMaxAgentKeys));
}

}  // namespace

absl::Status LogIn(const SshConfig& config, SshSession* session) {
  Credentials credentials;
  credentials.until = SteadyNow() + config.auth_timeout;
  const absl::StatusOr<bool> is_in = AskMethods(config, session, &credentials);
  if (!is_in.ok()) return is_in.status();
  if (*is_in) return absl::OkStatus();
  if (credentials.methods.find("publickey") == std::string::npos) {
    return Denied(config, *session, credentials, "it takes no public keys");
  }
  return config.key_file.empty() ? LogInWithAgent(config, session, credentials)
                                 : LogInWithFile(config, session, credentials);
}

}  // namespace muster::hosts
