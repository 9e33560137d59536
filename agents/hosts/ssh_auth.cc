#include "agents/hosts/ssh_auth.h"

#include <libssh2.h>

#include <memory>
#include <string>
#include <string_view>

#include "agents/hosts/ssh_key_file.h"
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
      "there. libssh2 signs with RSA keys as OpenSSH 8.8 and later refuse it; use an ed25519 or "
      "ecdsa key",
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

absl::Status LogInWithFile(const SshConfig& config, SshSession* session,
                           const Credentials& credentials) {
  const absl::StatusOr<std::string> key = ReadKeyFile(config.key_file);
  if (!key.ok()) return key.status();
  const absl::StatusOr<int> rc = session->Repeat("logging in", credentials.left(), [&] {
    return libssh2_userauth_publickey_frommemory(session->raw(), config.user.data(),
                                                 config.user.size(), nullptr, 0, key->data(),
                                                 key->size(), "");
  });
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
  // The key behind `previous` (null: the first one); null: there is none.
  libssh2_agent_publickey* Next(libssh2_agent_publickey* previous) {
    libssh2_agent_publickey* key = nullptr;
    return libssh2_agent_get_identity(agent_, &key, previous) == 0 ? key : nullptr;
  }
  int LogIn(const std::string& user, libssh2_agent_publickey* key) {
    return libssh2_agent_userauth(agent_, user.c_str(), key);
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
    const absl::StatusOr<int> rc = session->Repeat("logging in", credentials.left(),
                                                   [&] { return agent.LogIn(config.user, key); });
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
