// muster-broker runs one broker over one state directory, until SIGTERM or SIGINT.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "broker/app/rights.h"
#include "broker/files/file_store.h"
#include "broker/http/page.h"
#include "broker/logs/archive.h"
#include "broker/rpc/broker.h"
#include "broker/rpc/broker_audit.h"
#include "broker/rpc/config.h"
#include "broker/rpc/grpc_log.h"
#include "broker/rpc/http_settings.h"
#include "broker/rpc/init_command.h"
#include "broker/rpc/notify_settings.h"
#include "broker/rpc/oidc_settings.h"
#include "broker/rpc/rotate_secrets_key.h"
#include "broker/store/sqlite/sqlite_store.h"
#include "contract/text.h"
#include "daemon/command_line.h"
#include "daemon/log.h"
#include "daemon/process.h"

namespace muster::broker {
namespace {

constexpr char kProgram[] = "muster-broker";
constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
// Seconds between two rounds of housekeeping.
constexpr int kHousekeepSeconds = 60;

int Fail(const absl::Status& status, int code = kExitError) {
  fmt::print(stderr, "muster-broker: {}\n", ToStd(status.message()));
  return code;
}

absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  const int error = errno;
  return absl::ErrnoToStatus(
      error,
      ToAbsl(fmt::format("cannot make the state directory {}; make it yourself, owned by the "
                         "broker's user, or choose another --state-dir",
                         path)));
}

// Ends the process at once after the store has failed: an acknowledgement could not be kept, so
// none may be sent.
[[noreturn]] void Die(const absl::Status& status) {
  LogEvent(spdlog::level::critical, "store_failed",
           {{"error", std::string(ToStd(status.message()))},
            {"remedy",
             "check the disk for space and errors, then start the broker again; whatever was "
             "acknowledged is on disk"}});
  std::_Exit(kExitError);
}

std::string PortFile(const Config& config) { return config.state_dir + "/broker.port"; }
std::string AuditFilePath(const Config& config) { return config.state_dir + "/audit.db"; }
std::string TlsPortFile(const Config& config) { return config.state_dir + "/broker.tls.port"; }
std::string HttpPortFile(const Config& config) { return config.state_dir + "/broker.http.port"; }
std::string HttpTlsPortFile(const Config& config) {
  return config.state_dir + "/broker.http.tls.port";
}

// Writes a port for scripts that asked for any free one. The file exists while the broker serves
// the port.
absl::Status WritePortFile(const std::string& path, int port) {
  std::remove(path.c_str());
  if (port == 0) return absl::OkStatus();
  std::ofstream file(path, std::ios::trunc);
  file << port << '\n';
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(ToAbsl(fmt::format("cannot write {}", path)));
}

// The page logs people in at the first identity provider alone.
std::vector<std::string> IssuersOfPage(const Config& config) {
  if (config.broker.people.empty()) return {};
  return {config.broker.people.front().jwt.issuer};
}

absl::StatusOr<std::unique_ptr<Broker>> StartBroker(Config config) {
  if (absl::Status status = MakeDirectory(config.state_dir); !status.ok()) return status;
  store::SqliteOptions store_options;
  store_options.directory = config.state_dir;
  store_options.request_memory = config.broker.core.request_memory;
  auto store = store::SqliteStore::Open(store_options);
  if (!store.ok()) return store.status();
  auto archive = logs::Archive::Open(config.state_dir + "/logs", config.logs, absl::Now);
  if (!archive.ok()) return archive.status();
  auto files = files::FileStore::Open(config.state_dir + "/files", config.files, absl::Now);
  if (!files.ok()) return files.status();
  config.broker.socket_path = config.state_dir + "/broker.sock";
  config.broker.token_file = config.state_dir + "/tokens.db";
  config.broker.secrets = SecretsOptionsOf(config.state_dir);
  config.broker.project_file = config.state_dir + "/projects.db";
  config.broker.notify.directory = config.state_dir + "/webhooks";
  config.broker.audit.log.path = AuditFilePath(config);
  config.broker.tls.files.ca_directory = config.state_dir + "/ca";
  config.broker.tls.database = config.state_dir + "/auth.db";
  return Broker::Start(config.broker, *std::move(store), *std::move(archive), *std::move(files),
                       Die);
}

int Serve(const Config& config) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // blocked before any thread begins
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  LeaveLocksUnwatched();
  ForbidCoreDumps();  // secrets are in memory while they are told
  StartLogging("muster-broker", config.json_logs, config.log_level);
  LogGrpcMessages();

  auto broker = StartBroker(config);
  if (!broker.ok()) return Fail(broker.status());
  absl::Status ports = WritePortFile(PortFile(config), (*broker)->port());
  ports.Update(WritePortFile(TlsPortFile(config), (*broker)->tls_port()));
  ports.Update(WritePortFile(HttpPortFile(config), (*broker)->http_port()));
  ports.Update(WritePortFile(HttpTlsPortFile(config), (*broker)->http_tls_port()));
  if (!ports.ok()) return Fail(ports);
  LogEvent(spdlog::level::info, "serving",
           {{"version", MUSTER_VERSION},
            {"socket", config.state_dir + "/broker.sock"},
            {"port", fmt::format("{}", (*broker)->port())},
            {"tls_port", fmt::format("{}", (*broker)->tls_port())},
            {"http_port", fmt::format("{}", (*broker)->http_port())},
            {"http_tls_port", fmt::format("{}", (*broker)->http_tls_port())}});
  for (;;) {
    const timespec patience{kHousekeepSeconds, 0};
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal > 0) {
      LogEvent(spdlog::level::info, "shutting_down", {{"signal", strsignal(signal)}});
      break;
    }
    (*broker)->Housekeep();
  }
  std::remove(PortFile(config).c_str());
  std::remove(TlsPortFile(config).c_str());
  std::remove(HttpPortFile(config).c_str());
  std::remove(HttpTlsPortFile(config).c_str());
  (*broker)->Shutdown();
  LogEvent(spdlog::level::info, "stopped");
  return 0;
}

int Init(const Config& config, const std::vector<std::string>& names) {
  if (absl::Status status = MakeDirectory(config.state_dir); !status.ok()) return Fail(status);
  const absl::StatusOr<std::string> done = InitBroker(config.state_dir, names, absl::Now());
  if (!done.ok()) return Fail(done.status());
  if (absl::Status status = RecordInit(AuditFilePath(config), absl::Now()); !status.ok()) {
    return Fail(status);
  }
  fmt::print("{}", *done);
  return 0;
}

int Rotate(const Config& config) {
  LeaveLocksUnwatched();
  StartLogging("muster-broker", config.json_logs, "warn");
  const absl::StatusOr<std::string> done = RotateSecretsKey(config.state_dir);
  if (!done.ok()) return Fail(done.status());
  fmt::print("{}", *done);
  return 0;
}

int Main(int argc, char** argv) {
  Config config;
  std::vector<Setting> settings = SettingsOf(&config);
  CLI::App app("Keeps jobs and hands them to clusters.", "muster-broker");
  app.set_version_flag("--version", std::string("muster-broker ") + MUSTER_VERSION);
  std::string config_file;
  app.add_option("--config", config_file,
                 "settings file (YAML); flags and MUSTER_BROKER_* override it");
  bool only_rights = false;
  app.add_flag("--rights", only_rights, "print which role may make which call, and exit");
  std::map<std::string, std::string> flags;
  for (const Setting& setting : settings) {
    app.add_option_function<std::string>(
        FlagName(setting.key),
        [&flags, key = setting.key](const std::string& value) { flags[key] = value; },
        setting.help);
  }
  std::vector<std::string> names;
  CLI::App* init = app.add_subcommand(
      "init", "make a CA and the broker's certificate in STATE/ca, for tls.listen, and exit");
  init->fallthrough();
  init->add_option("--name", names,
                   "a host name or IP address by which agents call the broker; several times: "
                   "all of them; this host's name is there by itself");
  CLI::App* rotate = app.add_subcommand(
      "rotate-secrets-key",
      "seal all secrets with a new key, and exit; the broker must not run meanwhile");
  rotate->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    const std::string words =
        UnknownWords(kProgram, app.remaining(/*recurse=*/true), settings, {"--config", "--rights"});
    return Fail(absl::InvalidArgumentError(words), kExitUsage);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }

  if (only_rights) {
    fmt::print("{}", RightsTable());
    return 0;
  }
  if (config_file.empty()) {
    if (const char* path = std::getenv("MUSTER_BROKER_CONFIG")) config_file = path;
  }
  std::map<std::string, std::string> given;
  NoteGiven(&settings, &given);
  absl::Status status;
  if (!config_file.empty()) status = ApplyYamlFile(config_file, kProgram, settings);
  if (status.ok()) status = ApplyEnvironment(std::getenv, kProgram, settings);
  if (status.ok()) status = ApplyFlags(flags, settings);
  if (status.ok()) status = FinishLease(&config);
  if (status.ok()) status = FinishOidc(&config);
  if (status.ok()) status = CheckHttp(config);
  if (status.ok()) status = FinishNotify(&config);
  config.broker.http.page = http::PageFor(http::BuiltAssets(), IssuersOfPage(config));
  config.broker.audit.settings = TextOfGiven(given);
  if (!status.ok()) return Fail(status, kExitUsage);
  if (config.state_dir.empty()) {
    return Fail(absl::InvalidArgumentError(
                    "--state-dir DIR is required; it holds everything that the broker "
                    "must not lose"),
                kExitUsage);
  }
  if (rotate->parsed()) return Rotate(config);
  return init->parsed() ? Init(config, names) : Serve(config);
}

}  // namespace
}  // namespace muster::broker

// Only a lack of memory can throw, and ends the program either way.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) { return muster::broker::Main(argc, argv); }
