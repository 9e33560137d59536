// muster: jobs from the command line.
#include <fcntl.h>
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "clients/cli/completion.h"
#include "clients/cli/completion_scripts.h"
#include "clients/cli/config.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/first_file.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/invocation.h"
#include "clients/cli/report.h"
#include "clients/cli/sky/verbs.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/verbs.h"
#include "clients/cli/terminal.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/login/kept_login.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

int PrintVersion(Terminal& terminal, Format format) {
  switch (format) {
    case Format::kJson:
    case Format::kJsonLines:
      terminal.Out("{\"version\": \"" MUSTER_VERSION "\"}\n");
      return kOk;
    case Format::kYaml:
      terminal.Out("version: \"" MUSTER_VERSION "\"\n");
      return kOk;
    case Format::kName:
      terminal.Out(MUSTER_VERSION "\n");
      return kOk;
    default:
      terminal.Out("muster " MUSTER_VERSION "\n");
      return kOk;
  }
}

// The verbs that need a broker, and what does them. Main has done those of contexts and logins.
constexpr struct {
  Verb verb;
  int (*run)(Session& session);
} kVerbs[] = {
    {Verb::kSubmit, Submit},
    {Verb::kRun, Run},
    {Verb::kList, List},
    {Verb::kCount, Count},
    {Verb::kTop, Top},
    {Verb::kShow, Show},
    {Verb::kLogs, Logs},
    {Verb::kEvents, Events},
    {Verb::kWait, Wait},
    {Verb::kCancel, Cancel},
    {Verb::kSignal, Signal},
    {Verb::kUpdate, Update},
    {Verb::kRerun, Rerun},
    {Verb::kCopy, CopyFiles},
    {Verb::kHold, Hold},
    {Verb::kRelease, Release},
    {Verb::kMove, Move},
    {Verb::kWhy, Why},
    {Verb::kPlan, Plan},
    {Verb::kClusters, Clusters},
    {Verb::kCheck, Check},
    {Verb::kForget, Forget},
    {Verb::kWhoAmI, WhoAmI},
    {Verb::kTokenCreate, CreateToken},
    {Verb::kTokenList, ListTokens},
    {Verb::kTokenRevoke, RevokeToken},
    {Verb::kSecretSet, SetSecret},
    {Verb::kSecretList, ListSecrets},
    {Verb::kSecretDelete, DeleteSecret},
    {Verb::kProjectList, Projects},
    {Verb::kProjectCreate, Projects},
    {Verb::kProjectShow, Projects},
    {Verb::kProjectSet, Projects},
    {Verb::kProjectAdd, Projects},
    {Verb::kProjectRemove, Projects},
    {Verb::kProjectArchive, Projects},
    {Verb::kAuditList, ListAudit},
    {Verb::kAuditVerify, VerifyAudit},
    {Verb::kUsage, Usage},
    {Verb::kSbatch, Sbatch},
    {Verb::kSqueue, Squeue},
    {Verb::kScancel, Scancel},
    {Verb::kSacct, Sacct},
    {Verb::kSinfo, Sinfo},
    {Verb::kSky, Sky},
};

int Dispatch(Session& session) {
  if (session.call.verb == Verb::kVersion) return PrintVersion(session.terminal, session.format);
  for (const auto& [verb, run] : kVerbs) {
    if (verb == session.call.verb) return run(session);
  }
  return kError;
}

// Puts /dev/null in the place of a standard input that is closed: the next file that is opened
// would take its number, and a connection to the broker would be looked at as input for the job.
void HoldStandardInput() {
  if (fcntl(0, F_GETFD) < 0) open("/dev/null", O_RDONLY);
}

// Several streams break at once when the broker goes; one remark is enough for all of them.
std::function<void(const absl::Status&, absl::Duration)> InterruptionNote(Terminal* terminal) {
  constexpr int64_t kSilenceSeconds = 10;
  auto silent_until = std::make_shared<std::atomic<int64_t>>(0);
  return [terminal, silent_until](const absl::Status& why, absl::Duration patience) {
    const int64_t now = absl::ToUnixSeconds(absl::Now());
    if (silent_until->exchange(now + kSilenceSeconds) > now) return;
    terminal->Note(ToStd(why.message()));
    terminal->Note(fmt::format("trying again for up to {}; Ctrl-C to stop",
                               contract::FormatDuration(patience)));
  };
}

// The login of the context, if there is one and no token goes before it.
absl::Status AddLogin(Verb verb, const Config& config, client::ClientOptions* options) {
  if (verb == Verb::kLogin || verb == Verb::kLogout) {
    options->token.clear();
    return absl::OkStatus();
  }
  if (!config.token.empty() || config.login_file.empty()) return absl::OkStatus();
  auto login = client::KeptLogin::Open(config.login_file, config.broker);
  if (absl::IsNotFound(login.status())) return absl::OkStatus();
  if (!login.ok()) return login.status();
  options->credential = *std::move(login);
  return absl::OkStatus();
}

// gRPC's own remarks about a connection would stand beside ours, which say more. They come back for
// those who ask by gRPC's variable.
void SilenceGrpc() {
  if (getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

int Main(int argc, char** argv) {
  SilenceGrpc();
  std::variant<Invocation, int> parsed = ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  Invocation& call = std::get<Invocation>(parsed);
  // Lives as long as the process: threads that are never joined write through it.
  Terminal& terminal = *new Terminal(call.quiet);
  if (call.verb == Verb::kVersion) {
    return PrintVersion(terminal, call.format.value_or(Format::kTable));
  }
  const auto environment = [](const char* name) -> const char* { return getenv(name); };
  if (call.verb == Verb::kCompletion) {
    terminal.Out(CompletionScript(call.shell));
    return kOk;
  }
  if (call.verb == Verb::kInit) return Init(call, terminal);
  if (call.verb == Verb::kSchema) return Schema(terminal);
  if (call.verb == Verb::kComplete) return PrintCompletion(call, terminal, environment);
  if (IsContextVerb(call.verb)) return Context(call, terminal, environment);
  const absl::StatusOr<Config> config = LoadConfig(call, environment);
  if (!config.ok()) {
    WriteError(terminal, call.format.value_or(Format::kTable), config.status());
    return kUsage;
  }
  if (config->broker.empty()) {
    terminal.Err(
        fmt::format("muster: no broker is named: use --broker ADDRESS, set MUSTER_BROKER, or write "
                    "`broker: ADDRESS` in {}; ADDRESS is unix:PATH, HOST:PORT or tls:HOST:PORT\n",
                    ConfigPath(environment)));
    return kUsage;
  }
  std::optional<OnInterrupt> interrupt;
  const bool is_sky_wait = call.verb == Verb::kSky && !call.words.empty() &&
                           (call.words[0] == "exec" || call.words[0] == "logs");
  if (call.wait || call.verb == Verb::kSbatch || is_sky_wait) {
    interrupt.emplace(&terminal,
                      "interrupted before the broker had answered; muster list shows what it has");
  }
  client::ClientOptions options;
  options.address = config->broker;
  options.address_origin = config->broker_origin;
  options.token = config->token;
  options.ca = config->ca;
  if (absl::Status status = AddLogin(call.verb, *config, &options); !status.ok()) {
    WriteError(terminal, config->format, status);
    return kUsage;
  }
  options.on_interruption = InterruptionNote(&terminal);
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Create(options);
  if (!client.ok()) {
    WriteError(terminal, config->format, client.status());
    return kUsage;
  }
  client::Client& connected = *client->release();
  if (absl::Status status = ResolveTasks(connected, &call.jobs); !status.ok()) {
    WriteError(terminal, config->format, status);
    return CodeFor(status);
  }
  Session session{call,
                  config->format,
                  connected,
                  terminal,
                  interrupt ? &*interrupt : nullptr,
                  config->broker.starts_with("unix:"),
                  config->leave_behind};
  if (call.verb == Verb::kLogin) return Login(session, *config);
  if (call.verb == Verb::kLogout) return Logout(session, *config);
  return Dispatch(session);
}

}  // namespace
}  // namespace muster::cli

int main(int argc, char** argv) {
  int code = muster::cli::kError;
  muster::cli::HoldStandardInput();
  try {
    code = muster::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    // Our own code can only run out of memory; the libraries' errors are caught where they are
    // called.
    fprintf(stderr, "muster: %s\n", error.what());
  }
  // Help goes through stdio. Results have been written, and the broker keeps the rest: tearing gRPC
  // down would only take time.
  fflush(stdout);
  _exit(code);
}
