// Verbs about secrets: secret set, list, rm. A value is read and sent, and never written.
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/secrets.h"
#include "contract/text.h"
#include "daemon/read_file.h"

namespace muster::cli {
namespace {

void Wipe(std::string* text) {
  explicit_bzero(text->data(), text->size());
  text->clear();
}

// Turns the terminal's echo off while it lives.
class HiddenInput {
 public:
  HiddenInput() : is_terminal_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_terminal_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  termios before_{};
  const bool is_terminal_;
};

absl::StatusOr<std::string> AskForValue(Session& session) {
  session.terminal.Err(fmt::format("Value of {} (not shown): ", session.call.secret.name));
  const HiddenInput hidden;
  std::string line;
  std::getline(std::cin, line);
  session.terminal.Err("\n");
  return line;
}

absl::StatusOr<std::string> ReadValue(Session& session) {
  const SecretFlags& flags = session.call.secret;
  const bool is_file = !flags.from_file.empty() && flags.from_file != "-";
  if (!is_file && isatty(STDIN_FILENO) != 0) return AskForValue(session);
  absl::StatusOr<std::string> value =
      ReadFile(is_file ? flags.from_file : "-", contract::kMaxSecretBytes + 1);
  if (value.ok() && !is_file && value->ends_with('\n')) value->pop_back();
  return value;
}

std::string OwnerText(const v1::Secret& secret) {
  return secret.has_project() ? fmt::format("project {}", Harmless(secret.project()))
                              : Harmless(secret.user());
}

absl::StatusOr<v1::ListSecretsResponse> AllSecrets(Session& session) {
  v1::ListSecretsResponse all;
  v1::ListSecretsRequest request;
  request.set_project(session.call.secret.project);
  do {
    auto page = session.client.ListSecrets(request);
    if (!page.ok()) return page.status();
    all.mutable_secrets()->MergeFrom(page->secrets());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

void PrintTable(Session& session, const v1::ListSecretsResponse& all) {
  const absl::Time now = absl::Now();
  Table table({{"NAME"}, {"OWNER"}, {"BYTES", 0, true}, {"SET"}, {"FOR"}}, session.style().look());
  for (const v1::Secret& secret : all.secrets()) {
    table.Add({{Harmless(secret.name())},
               {OwnerText(secret)},
               {fmt::format("{}", secret.size_bytes())},
               {Ago(secret.update_time(), now)},
               {secret.for_one_job() ? "one job" : "all jobs"}});
  }
  session.terminal.Out(table.Take());
}

}  // namespace

int SetSecret(Session& session) {
  const SecretFlags& flags = session.call.secret;
  absl::StatusOr<std::string> value = ReadValue(session);
  if (!value.ok()) return Fail(session, value.status());
  v1::SetSecretRequest request;
  request.set_name(flags.name);
  if (!flags.project.empty()) request.set_project(flags.project);
  request.set_value(*value);
  Wipe(&*value);
  const auto set = session.client.SetSecret(request);
  Wipe(request.mutable_value());
  if (!set.ok()) return Fail(session, set.status());
  if (session.ids_only()) {
    session.terminal.Out(Harmless(set->secret().name()) + "\n");
  } else if (session.for_people()) {
    session.terminal.Note(fmt::format("secret {} of {} has {} bytes",
                                      Harmless(set->secret().name()), OwnerText(set->secret()),
                                      set->secret().size_bytes()));
  } else {
    PrintMessage(session, *set);
  }
  return kOk;
}

int ListSecrets(Session& session) {
  const auto all = AllSecrets(session);
  if (!all.ok()) return Fail(session, all.status());
  if (session.ids_only()) {
    for (const v1::Secret& secret : all->secrets())
      session.terminal.Out(Harmless(secret.name()) + "\n");
  } else if (session.by_line()) {
    for (const v1::Secret& secret : all->secrets()) session.terminal.Out(LineOf(session, secret));
  } else if (!session.for_people()) {
    PrintMessage(session, *all);
  } else if (all->secrets().empty()) {
    session.terminal.Note("no secret yet; muster secret set NAME makes one");
  } else {
    PrintTable(session, *all);
  }
  return kOk;
}

int DeleteSecret(Session& session) {
  const SecretFlags& flags = session.call.secret;
  v1::DeleteSecretRequest request;
  request.set_name(flags.name);
  if (!flags.project.empty()) request.set_project(flags.project);
  const auto deleted = session.client.DeleteSecret(request);
  if (!deleted.ok()) return Fail(session, deleted.status());
  if (session.ids_only()) {
    session.terminal.Out(Harmless(flags.name) + "\n");
  } else if (session.for_people()) {
    session.terminal.Note(fmt::format("secret {} is removed", Harmless(flags.name)));
  } else {
    PrintMessage(session, *deleted);
  }
  return kOk;
}

}  // namespace muster::cli
