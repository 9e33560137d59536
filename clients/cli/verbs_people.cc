// Verbs about people: whoami, token, context.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "clients/cli/access_bundle.h"
#include "clients/cli/config.h"
#include "clients/cli/contexts.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/report.h"
#include "clients/cli/text.h"
#include "clients/cli/token_source.h"
#include "clients/cli/verbs.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "rpc/address.h"

namespace muster::cli {
namespace {

std::string_view TokenState(const v1::Token& token, absl::Time now) {
  if (token.has_revoke_time()) return "revoked";
  return ToTime(token.expire_time()) <= now ? "expired" : "live";
}

std::string Sentence(const v1::Token& token) {
  return fmt::format("token {} ({}) of {}, {}, until {}", token.id(), Harmless(token.name()),
                     Harmless(token.user()), RoleText(token.role()), Rfc3339(token.expire_time()));
}

std::string KnownByProvider(const v1::WhoAmIResponse& me) {
  std::string groups;
  for (const std::string& group : me.groups()) {
    groups += (groups.empty() ? ", of the groups " : ", ") + Harmless(group);
  }
  return fmt::format("by the identity provider until {}{}", Rfc3339(me.expire_time()), groups);
}

absl::StatusOr<v1::ListTokensResponse> AllTokens(Session& session, bool with_ended) {
  v1::ListTokensResponse all;
  v1::ListTokensRequest request;
  request.set_user(session.call.identity.user);
  request.set_include_ended(with_ended);
  do {
    auto page = session.client.ListTokens(request);
    if (!page.ok()) return page.status();
    for (v1::Token& token : *page->mutable_tokens()) {
      const bool is_wanted = !session.call.identity.service_accounts ||
                             std::string_view(token.user()).starts_with(kServiceAccountPrefix);
      if (is_wanted) all.add_tokens()->Swap(&token);
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

// The number that the user gave, or that of the live token with this name.
absl::StatusOr<uint64_t> TokenId(Session& session) {
  const std::string& name = session.call.identity.name;
  if (name.find_first_not_of("0123456789") == name.npos && name.size() < 19)
    return std::stoull(name);
  const auto all = AllTokens(session, false);
  if (!all.ok()) return all.status();
  uint64_t id = 0;
  for (const v1::Token& token : all->tokens()) {
    if (token.name() != name) continue;
    if (id != 0) {
      return absl::InvalidArgumentError(ToAbsl(fmt::format(
          "tokens {} and {} are named {}; give a number", id, token.id(), contract::Quoted(name))));
    }
    id = token.id();
  }
  if (id != 0) return id;
  return absl::NotFoundError(ToAbsl(
      fmt::format("no live token is named {}; see: muster token list", contract::Quoted(name))));
}

absl::Status WriteSecret(int fd, const std::string& path, const std::string& line) {
  const bool is_written =
      write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  close(fd);
  if (is_written) return absl::OkStatus();
  return absl::UnavailableError(
      ToAbsl(fmt::format("cannot write {}; revoke the token and make another one", path)));
}

// The form in which a new token is handed out: by itself, or in a bundle.
std::string SecretText(const v1::CreateTokenResponse& made, const v1::WhoAmIResponse& me) {
  return me.has_network() ? BundleText(me.network(), made.secret()) : made.secret() + "\n";
}

void PrintMade(Session& session, const v1::CreateTokenResponse& made,
               const v1::WhoAmIResponse& me) {
  if (session.for_people() || session.ids_only()) {
    if (!made.secret().empty()) session.terminal.Out(SecretText(made, me));
    session.terminal.Note(Sentence(made.token()) +
                          (made.secret().empty() ? "" : "; nobody can read it again"));
  } else {
    PrintMessage(session, made);
  }
}

// ---- contexts

int FailContext(Terminal& terminal, const absl::Status& status) {
  terminal.Err(ErrorText(status));
  return kUsage;
}

void PrintContexts(Terminal& terminal, Format format, bool quiet, const Contexts& contexts) {
  if (format == Format::kName || quiet) {
    for (const auto& [name, _] : contexts.by_name) terminal.Out(Harmless(name) + "\n");
    return;
  }
  if (contexts.by_name.empty()) {
    return terminal.Note("no context yet; muster context set NAME --broker ADDRESS makes one");
  }
  Table table({{"CURRENT"}, {"NAME"}, {"BROKER"}, {"TOKEN FILE"}}, terminal.colours());
  for (const auto& [name, context] : contexts.by_name) {
    table.Add({{name == contexts.current ? "*" : ""},
               {Harmless(name)},
               {Harmless(context.broker)},
               {context.token_file.empty() ? "-" : Harmless(context.token_file)}});
  }
  terminal.Out(table.Take());
}

absl::Status SetContext(const Invocation& call, const std::string& path, Contexts* contexts) {
  const std::string& name = call.identity.name;
  if (contract::HasControlCharacter(name) || name.size() > contract::kMaxQuotedBytes) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("{} is no name of a context: at most {} bytes, no control characters",
                           contract::Quoted(name), contract::kMaxQuotedBytes)));
  }
  const bool is_new = !contexts->by_name.contains(name);
  if (is_new && call.broker.empty()) {
    return absl::InvalidArgumentError("a new context needs --broker ADDRESS");
  }
  if (is_new && contexts->by_name.size() >= kMaxContexts) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("there are {} contexts, the most; delete some", kMaxContexts)));
  }
  NamedContext& context = contexts->by_name[name];
  if (!call.broker.empty()) {
    const absl::StatusOr<rpc::Address> address = rpc::ParseAddress(call.broker);
    if (!address.ok()) return address.status();
    context.broker = call.broker;
  }
  if (!call.token_file.empty()) {
    std::error_code ignored;
    context.token_file = std::filesystem::absolute(call.token_file, ignored).string();
  }
  if (!call.ca_file.empty() && !call.identity.fingerprint.empty()) {
    return absl::InvalidArgumentError("--ca-file and --fingerprint both say the CA; give one");
  }
  if (!call.ca_file.empty()) {
    std::error_code ignored;
    context.ca_file = std::filesystem::absolute(call.ca_file, ignored).string();
  }
  if (!call.identity.fingerprint.empty()) {
    absl::StatusOr<std::string> file =
        StoreCaByFingerprint(name, context.broker, call.identity.fingerprint, path);
    if (!file.ok()) return file.status();
    context.ca_file = *std::move(file);
  }
  return absl::OkStatus();
}

absl::Status ChangeContexts(const Invocation& call, const Environment& environment,
                            const std::string& path, Contexts* contexts) {
  const std::string& name = call.identity.name;
  if (call.verb == Verb::kContextSet) return SetContext(call, path, contexts);
  if (call.verb == Verb::kContextImport) {
    return ImportContext(name, call.identity.file, path, contexts);
  }
  if (!contexts->by_name.contains(name)) return NoSuchContext(*contexts, name);
  if (call.verb == Verb::kContextUse) {
    contexts->current = name;
  } else {
    contexts->by_name.erase(name);
    unlink(LoginPath(environment, name).c_str());
    if (contexts->current == name) contexts->current.clear();
  }
  return absl::OkStatus();
}

}  // namespace

std::string RoleText(v1::AccessRole role) {
  constexpr std::string_view kPrefix = "ACCESS_ROLE_";
  const std::string& name = v1::AccessRole_Name(role);
  if (role == v1::ACCESS_ROLE_UNSPECIFIED || !name.starts_with(kPrefix)) return "unknown";
  return absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

int WhoAmI(Session& session) {
  const auto me = session.client.WhoAmI({});
  if (!me.ok()) return Fail(session, me.status());
  if (session.ids_only()) {
    session.terminal.Out(Harmless(me->user()) + "\n");
    return kOk;
  }
  if (!session.for_people()) {
    PrintMessage(session, *me);
    return kOk;
  }
  std::string known = "by the Unix socket";
  if (me->credential() == v1::CREDENTIAL_KIND_TOKEN) known = "by " + Sentence(me->token());
  if (me->credential() == v1::CREDENTIAL_KIND_OIDC) known = KnownByProvider(*me);
  if (me->credential() == v1::CREDENTIAL_KIND_NONE) known = "as nobody: over TCP without a token";
  session.terminal.Out(
      fmt::format("{}, {}, known {}\n", Harmless(me->user()), RoleText(me->role()), known));
  if (me->has_network()) {
    session.terminal.Out(fmt::format(
        "over the network: {}, CA {}\n", Harmless(me->network().address()),
        me->network().ca_fingerprint().empty() ? "unknown"
                                               : Harmless(me->network().ca_fingerprint())));
  }
  for (const v1::Membership& membership : me->memberships()) {
    const std::string by = membership.group().empty()
                               ? ""
                               : fmt::format(", by group {}", Harmless(membership.group()));
    session.terminal.Out(fmt::format("project {}: {}{}\n", Harmless(membership.project()),
                                     RoleText(membership.role()), by));
  }
  return kOk;
}

int CreateToken(Session& session) {
  const IdentityFlags& flags = session.call.identity;
  v1::CreateTokenRequest request;
  request.set_name(flags.name);
  request.set_user(flags.user);
  request.set_role(flags.role);
  if (flags.lifetime)
    request.mutable_lifetime()->set_seconds(absl::ToInt64Seconds(*flags.lifetime));
  // Anything missing is told before a token is made. Empty: no bundle is wanted.
  v1::WhoAmIResponse me;
  if (flags.bundle) {
    auto asked = session.client.WhoAmI({});
    const absl::Status status = asked.ok() ? CheckHasNetwork(*asked) : asked.status();
    if (!status.ok()) return Fail(session, status);
    me = *std::move(asked);
  }
  // The file first: a token that can be kept nowhere would be lost.
  int fd = -1;
  if (!flags.file.empty()) {
    const absl::StatusOr<int> made = MakeTokenFile(flags.file);
    if (!made.ok()) return Fail(session, made.status());
    fd = *made;
  }
  auto made = session.client.CreateToken(request);
  if (!made.ok()) {
    if (fd >= 0) {
      close(fd);
      unlink(flags.file.c_str());
    }
    return Fail(session, made.status());
  }
  if (fd >= 0) {
    const absl::Status status = WriteSecret(fd, flags.file, SecretText(*made, me));
    made->clear_secret();
    if (!status.ok()) return Fail(session, status);
  }
  PrintMade(session, *made, me);
  return kOk;
}

int ListTokens(Session& session) {
  const auto all = AllTokens(session, session.call.identity.all);
  if (!all.ok()) return Fail(session, all.status());
  const absl::Time now = absl::Now();
  if (session.ids_only()) {
    for (const v1::Token& token : all->tokens()) {
      session.terminal.Out(fmt::format("{}\n", token.id()));
    }
  } else if (session.by_line()) {
    for (const v1::Token& token : all->tokens()) session.terminal.Out(LineOf(session, token));
  } else if (!session.for_people()) {
    PrintMessage(session, *all);
  } else if (all->tokens().empty()) {
    session.terminal.Note("no token");
  } else {
    Table table({{"ID", 0, true}, {"NAME"}, {"USER"}, {"ROLE"}, {"STATE"}, {"EXPIRES"}, {"USED"}},
                session.style().look());
    for (const v1::Token& token : all->tokens()) {
      table.Add({{fmt::format("{}", token.id())},
                 {Harmless(token.name())},
                 {Harmless(token.user())},
                 {RoleText(token.role())},
                 {std::string(TokenState(token, now))},
                 {Ago(token.expire_time(), now)},
                 {Ago(token.last_use_time(), now)}});
    }
    session.terminal.Out(table.Take());
  }
  return kOk;
}

int RevokeToken(Session& session) {
  const absl::StatusOr<uint64_t> id = TokenId(session);
  if (!id.ok()) return Fail(session, id.status());
  v1::RevokeTokenRequest request;
  request.set_id(*id);
  const auto revoked = session.client.RevokeToken(request);
  if (!revoked.ok()) return Fail(session, revoked.status());
  if (session.ids_only()) {
    for (const v1::Token& token : revoked->tokens()) {
      session.terminal.Out(fmt::format("{}\n", token.id()));
    }
  } else if (!session.for_people()) {
    PrintMessage(session, *revoked);
  } else {
    for (const v1::Token& token : revoked->tokens()) {
      session.terminal.Note("revoked: " + Sentence(token));
    }
    if (revoked->tokens().empty()) session.terminal.Note("it was revoked already");
  }
  return kOk;
}

bool IsContextVerb(Verb verb) {
  return verb == Verb::kContextList || verb == Verb::kContextUse || verb == Verb::kContextSet ||
         verb == Verb::kContextImport || verb == Verb::kContextDelete;
}

int Context(const Invocation& call, Terminal& terminal, const Environment& environment) {
  const std::string path = ContextsPath(environment);
  if (path.empty()) {
    return FailContext(terminal,
                       absl::FailedPreconditionError("there is no place for contexts: set HOME or "
                                                     "XDG_CONFIG_HOME"));
  }
  absl::StatusOr<Contexts> contexts = ReadContexts(path);
  if (!contexts.ok()) return FailContext(terminal, contexts.status());
  if (call.verb == Verb::kContextList) {
    PrintContexts(terminal, call.format.value_or(Format::kTable), call.quiet, *contexts);
    return kOk;
  }
  absl::Status status = ChangeContexts(call, environment, path, &*contexts);
  if (status.ok()) status = WriteContexts(path, *contexts);
  if (!status.ok()) return FailContext(terminal, status);
  const bool is_idle = call.verb == Verb::kContextSet && contexts->current != call.identity.name;
  if (is_idle) {
    terminal.Note(fmt::format("muster context use {} makes it the current one",
                              Harmless(call.identity.name)));
  }
  if (call.verb == Verb::kContextImport) {
    terminal.Note(fmt::format("{} is the current context now; muster whoami asks its broker",
                              Harmless(call.identity.name)));
  }
  return kOk;
}

}  // namespace muster::cli
